/*
 * Convolution through cuDNN with one handle and one workspace for all layers.
 *
 * Copyright (c) 2026, the caffeup authors. All rights reserved.
 *
 * Redistribution and use in source and binary forms, with or without
 * modification, are permitted provided that the following conditions are met:
 *
 * 1. Redistributions of source code must retain the above copyright notice,
 *    this list of conditions and the following disclaimer.
 * 2. Redistributions in binary form must reproduce the above copyright notice,
 *    this list of conditions and the following disclaimer in the documentation
 *    and/or other materials provided with the distribution.
 *
 * THIS SOFTWARE IS PROVIDED BY THE COPYRIGHT HOLDERS AND CONTRIBUTORS "AS IS"
 * AND ANY EXPRESS OR IMPLIED WARRANTIES, INCLUDING, BUT NOT LIMITED TO, THE
 * IMPLIED WARRANTIES OF MERCHANTABILITY AND FITNESS FOR A PARTICULAR PURPOSE
 * ARE DISCLAIMED. IN NO EVENT SHALL THE COPYRIGHT OWNER OR CONTRIBUTORS BE
 * LIABLE FOR ANY DIRECT, INDIRECT, INCIDENTAL, SPECIAL, EXEMPLARY, OR
 * CONSEQUENTIAL DAMAGES (INCLUDING, BUT NOT LIMITED TO, PROCUREMENT OF
 * SUBSTITUTE GOODS OR SERVICES; LOSS OF USE, DATA, OR PROFITS; OR BUSINESS
 * INTERRUPTION) HOWEVER CAUSED AND ON ANY THEORY OF LIABILITY, WHETHER IN
 * CONTRACT, STRICT LIABILITY, OR TORT (INCLUDING NEGLIGENCE OR OTHERWISE)
 * ARISING IN ANY WAY OUT OF THE USE OF THIS SOFTWARE, EVEN IF ADVISED OF THE
 * POSSIBILITY OF SUCH DAMAGE.
 */

#ifdef USE_CUDNN
#include "caffe/layers/cudnn_shared_conv_layer.hpp"

#include <boost/thread/tss.hpp>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#ifndef CAFFEUP_TF32
#define CAFFEUP_TF32 0
#endif

namespace caffe {

namespace cudnn {

namespace {

// What the layers of one thread share on one device. Work of one thread on the
// default stream is done in its order, so one workspace serves every layer.
class Shared {
 public:
  // Of the calling thread, on its current device.
  static Shared& Get() {
    typedef std::map<int, shared_ptr<Shared> > Devices;
    // Never destroyed: at the program's end CUDA may be gone before it.
    static boost::thread_specific_ptr<Devices>& devices =
        *new boost::thread_specific_ptr<Devices>;
    if (!devices.get()) { devices.reset(new Devices); }
    int device;
    CUDA_CHECK(cudaGetDevice(&device));
    shared_ptr<Shared>& shared = (*devices)[device];
    if (!shared) { shared.reset(new Shared); }
    return *shared;
  }

  ~Shared() {
    cudaFree(workspace_);
    cudnnDestroy(handle_);
  }

  cudnnHandle_t handle() const { return handle_; }
  void* workspace() const { return workspace_; }
  // The most that an algorithm may take.
  size_t limit() const { return limit_; }
  int multiprocessors() const { return multiprocessors_; }

  // Whether the workspace is that large, now.
  bool Reserve(size_t bytes) {
    if (bytes <= size_) { return true; }
    void* larger = Allocate(bytes);
    if (!larger) {  // once more with what the old one has taken
      cudaFree(workspace_);
      larger = Allocate(bytes);
      if (!larger) {
        workspace_ = Allocate(size_);
        size_ = workspace_ ? size_ : 0;
        return false;
      }
    } else {
      cudaFree(workspace_);  // waits for what still uses it
    }
    workspace_ = larger;
    size_ = bytes;
    return true;
  }

 private:
  Shared() : workspace_(NULL), size_(0) {
    CUDNN_CHECK(cudnnCreate(&handle_));
    size_t free_bytes, all_bytes;
    CUDA_CHECK(cudaMemGetInfo(&free_bytes, &all_bytes));
    const size_t most = 256 << 20;
    limit_ = std::min(most, all_bytes / 32);
    int device;
    CUDA_CHECK(cudaGetDevice(&device));
    CUDA_CHECK(cudaDeviceGetAttribute(&multiprocessors_,
        cudaDevAttrMultiProcessorCount, device));
  }

  static void* Allocate(size_t bytes) {
    void* place = NULL;
    if (bytes == 0 || cudaMalloc(&place, bytes) != cudaSuccess) {
      cudaGetLastError();  // or the next check of a kernel would report it
      return NULL;
    }
    return place;
  }

  cudnnHandle_t handle_;
  void* workspace_;
  size_t size_, limit_;
  int multiprocessors_;

  DISABLE_COPY_AND_ASSIGN(Shared);
};

// The algorithms for one direction, best first, and what one of them takes.
cudnnStatus_t Ask(cudnnHandle_t handle, const SharedConv& s, int most,
    int* count, cudnnConvolutionFwdAlgoPerf_t* list) {
  return cudnnGetConvolutionForwardAlgorithm_v7(handle, s.bottom, s.filter,
      s.conv, s.top, most, count, list);
}

cudnnStatus_t Ask(cudnnHandle_t handle, const SharedConv& s, int most,
    int* count, cudnnConvolutionBwdFilterAlgoPerf_t* list) {
  return cudnnGetConvolutionBackwardFilterAlgorithm_v7(handle, s.bottom, s.top,
      s.conv, s.filter, most, count, list);
}

cudnnStatus_t Ask(cudnnHandle_t handle, const SharedConv& s, int most,
    int* count, cudnnConvolutionBwdDataAlgoPerf_t* list) {
  return cudnnGetConvolutionBackwardDataAlgorithm_v7(handle, s.filter, s.top,
      s.conv, s.bottom, most, count, list);
}

cudnnStatus_t Size(cudnnHandle_t handle, const SharedConv& s,
    cudnnConvolutionFwdAlgo_t algorithm, size_t* bytes) {
  return cudnnGetConvolutionForwardWorkspaceSize(handle, s.bottom, s.filter,
      s.conv, s.top, algorithm, bytes);
}

cudnnStatus_t Size(cudnnHandle_t handle, const SharedConv& s,
    cudnnConvolutionBwdFilterAlgo_t algorithm, size_t* bytes) {
  return cudnnGetConvolutionBackwardFilterWorkspaceSize(handle, s.bottom, s.top,
      s.conv, s.filter, algorithm, bytes);
}

cudnnStatus_t Size(cudnnHandle_t handle, const SharedConv& s,
    cudnnConvolutionBwdDataAlgo_t algorithm, size_t* bytes) {
  return cudnnGetConvolutionBackwardDataWorkspaceSize(handle, s.filter, s.top,
      s.conv, s.bottom, algorithm, bytes);
}

// Winograd's transforms lose digits as kernels grow: cuDNN 9.14 is off by 2e-6
// with 3x3, and by 4e-4 (forward) to 9e-4 (weights) with 5x5.
bool IsExact(cudnnConvolutionFwdAlgo_t algorithm, int kernel) {
  return kernel <= 3 ||
      algorithm != CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD_NONFUSED;
}

bool IsExact(cudnnConvolutionBwdFilterAlgo_t algorithm, int kernel) {
  return kernel <= 3 ||
      algorithm != CUDNN_CONVOLUTION_BWD_FILTER_ALGO_WINOGRAD_NONFUSED;
}

bool IsExact(cudnnConvolutionBwdDataAlgo_t algorithm, int kernel) {
  return kernel <= 3 ||
      algorithm != CUDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD_NONFUSED;
}

// cuDNN 9 puts IMPLICIT_PRECOMP_GEMM first, but takes the host 100 us for a
// call of it with a 1x1 kernel, against 20 for IMPLICIT_GEMM. The GPU does the
// work below in about that time (a third of what its multiprocessors could).
bool IsSlowToCall(cudnnConvolutionFwdAlgo_t algorithm, const SharedConv& s,
    int multiprocessors) {
  const size_t macs_of_multiprocessor = 8 << 20;
  return CUDNN_MAJOR >= 9 && s.kernel == 1 &&
      algorithm == CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM &&
      s.macs < macs_of_multiprocessor * multiprocessors;
}

// The backward ones of few host calls add up in an order that changes.
template <typename Algorithm>
bool IsSlowToCall(Algorithm, const SharedConv&, int) { return false; }

// The first that cuDNN can do within the limit and the memory that is left;
// one that is slow to call where there is no other.
template <typename Perf, typename Algorithm>
cudnnStatus_t Choose(const SharedConv& s, SharedChoice<Algorithm>* choice) {
  Shared& shared = Shared::Get();
  const int most = 16;  // more than there are
  Perf list[most];
  int count = 0;
  cudnnStatus_t status = Ask(shared.handle(), s, most, &count, list);
  if (status != CUDNN_STATUS_SUCCESS) { return status; }
  status = CUDNN_STATUS_NOT_SUPPORTED;
  for (int i = 0; i < 2 * count; ++i) {
    const Perf& entry = list[i % count];
    const bool slow =
        IsSlowToCall(entry.algo, s, shared.multiprocessors());
    size_t bytes = 0;
    // An entry may speak of another math type than the descriptor's.
    if (slow != (i >= count) || entry.status != CUDNN_STATUS_SUCCESS ||
        !IsExact(entry.algo, s.kernel) ||
        Size(shared.handle(), s, entry.algo, &bytes) != CUDNN_STATUS_SUCCESS) {
      continue;
    }
    if (bytes > shared.limit() || !shared.Reserve(bytes)) {
      status = CUDNN_STATUS_ALLOC_FAILED;
      continue;
    }
    choice->algorithm = entry.algo;
    choice->workspace = bytes;
    return CUDNN_STATUS_SUCCESS;
  }
  return status;
}

// One of the two values of stride, pad or dilation. Read through reflection,
// because ConvolutionParameter has changed: these fields were single numbers
// before they were lists, and dilation and axis are younger than the rest.
int Geometry(const ConvolutionParameter& param, const std::string& name,
    int axis, int otherwise) {
  const google::protobuf::Descriptor* const type = param.GetDescriptor();
  const google::protobuf::Reflection* const values = param.GetReflection();
  const google::protobuf::FieldDescriptor* field =
      type->FindFieldByName(name + (axis ? "_w" : "_h"));
  if (field && values->HasField(param, field)) {
    return values->GetUInt32(param, field);
  }
  field = type->FindFieldByName(name);
  if (!field) { return otherwise; }
  if (!field->is_repeated()) {
    return values->HasField(param, field) ? values->GetUInt32(param, field)
                                          : otherwise;
  }
  const int size = values->FieldSize(param, field);
  return size == 0 ? otherwise :
      values->GetRepeatedUInt32(param, field, size == 1 ? 0 : axis);
}

int ChannelAxis(const ConvolutionParameter& param, int axes) {
  const google::protobuf::FieldDescriptor* const field =
      param.GetDescriptor()->FindFieldByName("axis");
  const int axis = field ? param.GetReflection()->GetInt32(param, field) : 1;
  return axis < 0 ? axis + axes : axis;
}

}  // namespace

}  // namespace cudnn

template <typename Dtype>
CuDNNSharedConvLayer<Dtype>::~CuDNNSharedConvLayer() {
  if (!created_) { return; }
  cudnnDestroyTensorDescriptor(shape_.bottom);
  cudnnDestroyTensorDescriptor(shape_.top);
  cudnnDestroyTensorDescriptor(shape_.bias);
  cudnnDestroyFilterDescriptor(shape_.filter);
  cudnnDestroyConvolutionDescriptor(shape_.conv);
}

// Whether nothing has changed since the last Reshape.
template <typename Dtype>
bool CuDNNSharedConvLayer<Dtype>::same_shapes(
    const vector<Blob<Dtype>*>& bottom,
    const vector<Blob<Dtype>*>& top) const {
  for (size_t i = 0; i < bottom.size(); ++i) {
    if (bottom[i]->shape() != bottom_size_) { return false; }
  }
  for (size_t i = 0; i < top.size(); ++i) {
    if (top[i]->shape() != top_size_) { return false; }
  }
  return true;
}

// Whether it is cuDNN's to compute.
template <typename Dtype>
bool CuDNNSharedConvLayer<Dtype>::is_suitable(
    const Blob<Dtype>& bottom) const {
  const ConvolutionParameter& param = this->layer_param_.convolution_param();
  const bool by_name = param.engine() == ConvolutionParameter_Engine_CUDNN;
  const int axis = cudnn::ChannelAxis(param, bottom.num_axes());
  if (bottom.num_axes() != axis + 3) {
    CHECK(!by_name) << "Layer " << this->layer_param_.name() << ": cuDNN takes "
        << "inputs of 2 spatial axes (height and width). "
        << "Use 'engine: CAFFE' for general ND convolution.";
    return false;
  }
  const bool is_product = bottom.count() == bottom.count(axis) &&
      param.group() == 1 && this->blobs_[0]->count(2) == 1;
  bool is_plain = true;
  for (int i = 0; i < 2; ++i) {
    is_plain = is_plain && cudnn::Geometry(param, "stride", i, 1) == 1 &&
        cudnn::Geometry(param, "pad", i, 0) == 0;
  }
  return by_name || !is_product || !is_plain;
}

template <typename Dtype>
void CuDNNSharedConvLayer<Dtype>::Reshape(
    const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {
  if (same_shapes(bottom, top)) { return; }
  ConvolutionLayer<Dtype>::Reshape(bottom, top);
  bottom_size_ = bottom[0]->shape();
  top_size_ = top[0]->shape();
  suitable_ = is_suitable(*bottom[0]);
  described_ = false;
}

// Not before the GPU computes: a net on the CPU needs none.
template <typename Dtype>
void CuDNNSharedConvLayer<Dtype>::describe() {
  if (described_) { return; }
  if (!created_) {
    CUDNN_CHECK(cudnnCreateTensorDescriptor(&shape_.bottom));
    CUDNN_CHECK(cudnnCreateTensorDescriptor(&shape_.top));
    CUDNN_CHECK(cudnnCreateTensorDescriptor(&shape_.bias));
    CUDNN_CHECK(cudnnCreateFilterDescriptor(&shape_.filter));
    CUDNN_CHECK(cudnnCreateConvolutionDescriptor(&shape_.conv));
    created_ = true;
  }
  const ConvolutionParameter& param = this->layer_param_.convolution_param();
  const Blob<Dtype>& weights = *this->blobs_[0];
  const cudnnDataType_t type = cudnn::dataType<Dtype>::type;
  const int axis = cudnn::ChannelAxis(param, bottom_size_.size());
  int num = 1;
  for (int i = 0; i < axis; ++i) { num *= bottom_size_[i]; }
  CUDNN_CHECK(cudnnSetTensor4dDescriptor(shape_.bottom, CUDNN_TENSOR_NCHW, type,
      num, bottom_size_[axis], bottom_size_[axis + 1],
      bottom_size_[axis + 2]));
  CUDNN_CHECK(cudnnSetTensor4dDescriptor(shape_.top, CUDNN_TENSOR_NCHW, type,
      num, top_size_[axis], top_size_[axis + 1], top_size_[axis + 2]));
  CUDNN_CHECK(cudnnSetTensor4dDescriptor(shape_.bias, CUDNN_TENSOR_NCHW, type,
      1, top_size_[axis], 1, 1));
  CUDNN_CHECK(cudnnSetFilter4dDescriptor(shape_.filter, type, CUDNN_TENSOR_NCHW,
      weights.shape(0), weights.shape(1), weights.shape(2),
      weights.shape(3)));
  int stride[2], pad[2], dilation[2];
  for (int i = 0; i < 2; ++i) {
    stride[i] = cudnn::Geometry(param, "stride", i, 1);
    pad[i] = cudnn::Geometry(param, "pad", i, 0);
    dilation[i] = cudnn::Geometry(param, "dilation", i, 1);
  }
  CUDNN_CHECK(cudnnSetConvolution2dDescriptor(shape_.conv, pad[0], pad[1],
      stride[0], stride[1], dilation[0], dilation[1],
      CUDNN_CROSS_CORRELATION, type));
  CUDNN_CHECK(cudnnSetConvolutionGroupCount(shape_.conv, param.group()));
#if CUDNN_MAJOR >= 8 && !CAFFEUP_TF32
  CUDNN_CHECK(cudnnSetConvolutionMathType(shape_.conv, CUDNN_FMA_MATH));
#endif
  shape_.kernel = std::max(weights.shape(2), weights.shape(3));
  shape_.macs = size_t(num) * weights.count() * top_size_[axis + 1] *
      top_size_[axis + 2];
  forward_.asked = backward_filter_.asked = backward_data_.asked = false;
  described_ = true;
}

// Whether this direction can be computed by cuDNN, now.
template <typename Dtype>
template <typename Perf, typename Algorithm>
bool CuDNNSharedConvLayer<Dtype>::ready(
    cudnn::SharedChoice<Algorithm>* choice) {
  describe();
  // The workspace may be that of another thread than before.
  if (choice->asked && choice->possible &&
      !cudnn::Shared::Get().Reserve(choice->workspace)) {
    choice->asked = false;
  }
  if (!choice->asked) {
    const cudnnStatus_t status = cudnn::Choose<Perf>(shape_, choice);
    choice->asked = true;
    choice->possible = status == CUDNN_STATUS_SUCCESS;
    if (!choice->possible) {
      LOG(WARNING) << "Layer " << this->layer_param_.name() << " is computed "
          << "without cuDNN, which says: " << cudnnGetErrorString(status);
    }
  }
  return choice->possible;
}

template <typename Dtype>
void CuDNNSharedConvLayer<Dtype>::Forward_gpu(
    const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {
  if (top[0]->count() == 0) { return; }
  if (!suitable_ ||
      !ready<cudnnConvolutionFwdAlgoPerf_t>(&forward_)) {
    return ConvolutionLayer<Dtype>::Forward_gpu(bottom, top);
  }
  const cudnn::Shared& shared = cudnn::Shared::Get();
  const void* const one = cudnn::dataType<Dtype>::one;
  const void* const zero = cudnn::dataType<Dtype>::zero;
  for (size_t i = 0; i < bottom.size(); ++i) {
    Dtype* const top_data = top[i]->mutable_gpu_data();
    CUDNN_CHECK(cudnnConvolutionForward(shared.handle(), one,
        shape_.bottom, bottom[i]->gpu_data(),
        shape_.filter, this->blobs_[0]->gpu_data(), shape_.conv,
        forward_.algorithm, shared.workspace(), forward_.workspace, zero,
        shape_.top, top_data));
    if (this->bias_term_) {
      CUDNN_CHECK(cudnnAddTensor(shared.handle(), one, shape_.bias,
          this->blobs_[1]->gpu_data(), one, shape_.top, top_data));
    }
  }
}

template <typename Dtype>
void CuDNNSharedConvLayer<Dtype>::Backward_gpu(
    const vector<Blob<Dtype>*>& top, const vector<bool>& propagate_down,
    const vector<Blob<Dtype>*>& bottom) {
  if (top[0]->count() == 0) { return; }
  const bool weights = this->param_propagate_down(0);
  const bool bias = this->bias_term_ && this->param_propagate_down(1);
  const bool data = std::find(propagate_down.begin(), propagate_down.end(),
      true) != propagate_down.end();
  if (!suitable_ ||
      (weights && !ready<cudnnConvolutionBwdFilterAlgoPerf_t>(
          &backward_filter_)) ||
      (data && !ready<cudnnConvolutionBwdDataAlgoPerf_t>(&backward_data_))) {
    return ConvolutionLayer<Dtype>::Backward_gpu(top, propagate_down, bottom);
  }
  describe();  // where only the bias is asked for
  const cudnn::Shared& shared = cudnn::Shared::Get();
  const void* const one = cudnn::dataType<Dtype>::one;
  const void* const zero = cudnn::dataType<Dtype>::zero;
  for (size_t i = 0; i < top.size(); ++i) {
    const Dtype* const top_diff = top[i]->gpu_diff();
    if (bias) {
      CUDNN_CHECK(cudnnConvolutionBackwardBias(shared.handle(), one,
          shape_.top, top_diff, one, shape_.bias,
          this->blobs_[1]->mutable_gpu_diff()));
    }
    if (weights) {
      CUDNN_CHECK(cudnnConvolutionBackwardFilter(shared.handle(), one,
          shape_.bottom, bottom[i]->gpu_data(), shape_.top, top_diff,
          shape_.conv, backward_filter_.algorithm, shared.workspace(),
          backward_filter_.workspace, one, shape_.filter,
          this->blobs_[0]->mutable_gpu_diff()));
    }
    if (propagate_down[i]) {
      CUDNN_CHECK(cudnnConvolutionBackwardData(shared.handle(), one,
          shape_.filter, this->blobs_[0]->gpu_data(), shape_.top, top_diff,
          shape_.conv, backward_data_.algorithm, shared.workspace(),
          backward_data_.workspace, zero, shape_.bottom,
          bottom[i]->mutable_gpu_diff()));
    }
  }
}

INSTANTIATE_CLASS(CuDNNSharedConvLayer);

}  // namespace caffe
#endif  // USE_CUDNN
