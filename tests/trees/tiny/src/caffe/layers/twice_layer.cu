#include <cuda_runtime.h>

#include "caffe/layers/twice_layer.hpp"

namespace caffe {

template <typename Dtype>
__global__ void TwiceForward(const int n, const Dtype* in, Dtype* out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    out[i] = in[i] * Dtype(2);
  }
}

template <typename Dtype>
void TwiceLayer<Dtype>::Forward_gpu(const std::vector<Dtype>& bottom, std::vector<Dtype>* top) {
  const int n = static_cast<int>(bottom.size());
  Dtype *in = NULL, *out = NULL;
  top->resize(bottom.size());
  CHECK(cudaMalloc(&in, n * sizeof(Dtype)) == cudaSuccess);
  CHECK(cudaMalloc(&out, n * sizeof(Dtype)) == cudaSuccess);
  CHECK(cudaMemcpy(in, bottom.data(), n * sizeof(Dtype), cudaMemcpyHostToDevice) == cudaSuccess);
  TwiceForward<Dtype><<<(n + 255) / 256, 256>>>(n, in, out);
  CHECK(cudaMemcpy(top->data(), out, n * sizeof(Dtype), cudaMemcpyDeviceToHost) == cudaSuccess);
  cudaFree(in);
  cudaFree(out);
}

template void TwiceLayer<float>::Forward_gpu(const std::vector<float>&, std::vector<float>*);
template void TwiceLayer<double>::Forward_gpu(const std::vector<double>&, std::vector<double>*);

}  // namespace caffe
