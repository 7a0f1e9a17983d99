/* Answers of cuDNN that are remembered, and workspaces of round sizes.
 *
 * Why:   Caffe asks for algorithms and workspace sizes again before every forward pass (Reshape). Since cuDNN 8 a question takes a
 *        good part of a millisecond: MobileNet-SSD became ten times slower with cuDNN than without.
 *        And Caffe cuts one allocation into slices of the size that it was told: unless that is a round number, the second slice is not
 *        aligned and the backward pass dies (misaligned address, CUDNN_STATUS 5003).
 * Since: cuDNN 8; older ones answer at once and with round sizes.
 * Whom:  every tree with cuDNN layers, those with `_v7` calls of their own too.
 *
 * A question is remembered by what its descriptors hold, not by where they are: Caffe sets them anew each time. Solver threads of
 * several GPUs ask at once, each for its own device.
 */
#ifndef CAFFEUP_CUDNN_REMEMBER_H_
#define CAFFEUP_CUDNN_REMEMBER_H_

#include <stddef.h>
#include <algorithm>
#include <map>
#include <mutex>
#include <vector>

namespace caffeup_cudnn {

enum Kind { kForward, kBackwardFilter, kBackwardData };

/* Everything that an answer depends on, as numbers. */
class Question {
 public:
  explicit Question(Kind kind) : readable_(true) {
    words_.reserve(80);
    int device = 0;
    require(cudaGetDevice(&device) == cudaSuccess);
    number(kind).number(device);
  }
  Question& number(long long word) {
    words_.push_back(word);
    return *this;
  }
  Question& tensor(cudnnTensorDescriptor_t tensor) {
    cudnnDataType_t type = CUDNN_DATA_FLOAT;
    int count = 0, sizes[CUDNN_DIM_MAX] = {}, strides[CUDNN_DIM_MAX] = {};
    require(cudnnGetTensorNdDescriptor(tensor, CUDNN_DIM_MAX, &type, &count, sizes, strides) == CUDNN_STATUS_SUCCESS);
    return number(type).numbers(sizes, count).numbers(strides, count);
  }
  Question& filter(cudnnFilterDescriptor_t filter) {
    cudnnDataType_t type = CUDNN_DATA_FLOAT;
    cudnnTensorFormat_t format = CUDNN_TENSOR_NCHW;
    int count = 0, sizes[CUDNN_DIM_MAX] = {};
    require(cudnnGetFilterNdDescriptor(filter, CUDNN_DIM_MAX, &type, &format, &count, sizes) == CUDNN_STATUS_SUCCESS);
    return number(type).number(format).numbers(sizes, count);
  }
  Question& convolution(cudnnConvolutionDescriptor_t convolution) {
    cudnnConvolutionMode_t mode = CUDNN_CONVOLUTION;
    cudnnDataType_t type = CUDNN_DATA_FLOAT;
    cudnnMathType_t math = CUDNN_DEFAULT_MATH;
    const int most = CUDNN_DIM_MAX - 2;
    int count = 0, groups = 1, pads[most] = {}, strides[most] = {}, dilations[most] = {};
    require(cudnnGetConvolutionNdDescriptor(convolution, most, &count, pads, strides, dilations, &mode, &type) ==
            CUDNN_STATUS_SUCCESS);
    require(cudnnGetConvolutionMathType(convolution, &math) == CUDNN_STATUS_SUCCESS);
    require(cudnnGetConvolutionGroupCount(convolution, &groups) == CUDNN_STATUS_SUCCESS);
    number(mode).number(type).number(math).number(groups);
    return numbers(pads, count).numbers(strides, count).numbers(dilations, count);
  }
  /* Whether all could be read; otherwise cuDNN is asked each time. */
  bool readable() const { return readable_; }
  bool operator<(const Question& other) const { return words_ < other.words_; }

 private:
  void require(bool holds) { readable_ = readable_ && holds; }
  Question& numbers(const int* values, int count) {
    if (!readable_) return *this;  /* nothing was written to them */
    number(count);
    words_.insert(words_.end(), values, values + count);
    return *this;
  }
  std::vector<long long> words_;
  bool readable_;
};

/* Answers by question; when full it starts anew, so that a program with ever new shapes does not grow. */
template <typename Answer>
class Memory {
 public:
  bool recall(const Question& question, Answer* answer) {
    std::lock_guard<std::mutex> lock(mutex_);
    typename std::map<Question, Answer>::const_iterator found = answers_.find(question);
    if (found == answers_.end()) return false;
    *answer = found->second;
    return true;
  }
  void keep(const Question& question, const Answer& answer) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (answers_.size() >= kMost) answers_.clear();
    answers_[question] = answer;
  }

 private:
  static const size_t kMost = 4096;
  std::mutex mutex_;
  std::map<Question, Answer> answers_;
};

/* Never destroyed: nets with static storage may ask while the program ends. */
template <typename Answer>
Memory<Answer>& memory() {
  static Memory<Answer>* one = new Memory<Answer>;
  return *one;
}

/* Calls `ask(&answer)` unless the answer is known. cuDNN is not asked under the lock: other devices would wait. */
template <typename Answer, typename Ask>
cudnnStatus_t remembered(const Question& question, Answer* answer, Ask ask) {
  if (question.readable() && memory<Answer>().recall(question, answer)) return CUDNN_STATUS_SUCCESS;
  const cudnnStatus_t status = ask(answer);
  if (status == CUDNN_STATUS_SUCCESS && question.readable()) memory<Answer>().keep(question, *answer);
  return status;
}

inline size_t round_up(size_t bytes) {
  const size_t alignment = 256;  /* that of cudaMalloc */
  return bytes > static_cast<size_t>(-1) - alignment ? bytes : (bytes + alignment - 1) / alignment * alignment;
}

/* The algorithms that cuDNN knows for a question, best first, without those that are not exact (cudnn_math.h). */
template <typename Perf, typename Ask>
cudnnStatus_t remembered_list(Question question, cudnnFilterDescriptor_t filter, int most, int* found, Perf* results, Ask ask) {
  std::vector<Perf> list;
  const cudnnStatus_t status = remembered(question.number(most), &list, [&](std::vector<Perf>* answer) {
    answer->resize(most > 0 ? most : 0);
    int count = 0;
    const cudnnStatus_t asked = ask(&count, answer->data());
    answer->resize(std::max(0, std::min(count, most)));
    answer->erase(std::remove_if(answer->begin(), answer->end(), [&](const Perf& one) { return !exact(one.algo, filter); }),
                  answer->end());
    for (Perf& one : *answer) one.memory = round_up(one.memory);
    return asked;
  });
  if (status != CUDNN_STATUS_SUCCESS) return status;
  *found = static_cast<int>(list.size());
  std::copy(list.begin(), list.end(), results);
  return status;
}

inline cudnnStatus_t forward_list(cudnnHandle_t handle, cudnnTensorDescriptor_t x, cudnnFilterDescriptor_t w,
                                  cudnnConvolutionDescriptor_t convolution, cudnnTensorDescriptor_t y, int most, int* found,
                                  cudnnConvolutionFwdAlgoPerf_t* results) {
  const Question question = Question(kForward).tensor(x).filter(w).convolution(convolution).tensor(y);
  return remembered_list(question, w, most, found, results, [&](int* count, cudnnConvolutionFwdAlgoPerf_t* list) {
    return cudnnGetConvolutionForwardAlgorithm_v7(handle, x, w, convolution, y, most, count, list);
  });
}

inline cudnnStatus_t backward_filter_list(cudnnHandle_t handle, cudnnTensorDescriptor_t x, cudnnTensorDescriptor_t dy,
                                          cudnnConvolutionDescriptor_t convolution, cudnnFilterDescriptor_t dw, int most, int* found,
                                          cudnnConvolutionBwdFilterAlgoPerf_t* results) {
  const Question question = Question(kBackwardFilter).tensor(x).tensor(dy).convolution(convolution).filter(dw);
  return remembered_list(question, dw, most, found, results, [&](int* count, cudnnConvolutionBwdFilterAlgoPerf_t* list) {
    return cudnnGetConvolutionBackwardFilterAlgorithm_v7(handle, x, dy, convolution, dw, most, count, list);
  });
}

inline cudnnStatus_t backward_data_list(cudnnHandle_t handle, cudnnFilterDescriptor_t w, cudnnTensorDescriptor_t dy,
                                        cudnnConvolutionDescriptor_t convolution, cudnnTensorDescriptor_t dx, int most, int* found,
                                        cudnnConvolutionBwdDataAlgoPerf_t* results) {
  const Question question = Question(kBackwardData).filter(w).tensor(dy).convolution(convolution).tensor(dx);
  return remembered_list(question, w, most, found, results, [&](int* count, cudnnConvolutionBwdDataAlgoPerf_t* list) {
    return cudnnGetConvolutionBackwardDataAlgorithm_v7(handle, w, dy, convolution, dx, most, count, list);
  });
}

/* How much workspace an algorithm takes, rounded up. */
template <typename Ask>
cudnnStatus_t remembered_size(Question question, int algorithm, size_t* bytes, Ask ask) {
  return remembered(question.number(algorithm), bytes, [&](size_t* answer) {
    const cudnnStatus_t status = ask(answer);
    if (status == CUDNN_STATUS_SUCCESS) *answer = round_up(*answer);
    return status;
  });
}

inline cudnnStatus_t forward_size(cudnnHandle_t handle, cudnnTensorDescriptor_t x, cudnnFilterDescriptor_t w,
                                  cudnnConvolutionDescriptor_t convolution, cudnnTensorDescriptor_t y,
                                  cudnnConvolutionFwdAlgo_t algorithm, size_t* bytes) {
  const Question question = Question(kForward).tensor(x).filter(w).convolution(convolution).tensor(y);
  return remembered_size(question, algorithm, bytes, [&](size_t* answer) {
    return cudnnGetConvolutionForwardWorkspaceSize(handle, x, w, convolution, y, algorithm, answer);
  });
}

inline cudnnStatus_t backward_filter_size(cudnnHandle_t handle, cudnnTensorDescriptor_t x, cudnnTensorDescriptor_t dy,
                                          cudnnConvolutionDescriptor_t convolution, cudnnFilterDescriptor_t dw,
                                          cudnnConvolutionBwdFilterAlgo_t algorithm, size_t* bytes) {
  const Question question = Question(kBackwardFilter).tensor(x).tensor(dy).convolution(convolution).filter(dw);
  return remembered_size(question, algorithm, bytes, [&](size_t* answer) {
    return cudnnGetConvolutionBackwardFilterWorkspaceSize(handle, x, dy, convolution, dw, algorithm, answer);
  });
}

inline cudnnStatus_t backward_data_size(cudnnHandle_t handle, cudnnFilterDescriptor_t w, cudnnTensorDescriptor_t dy,
                                        cudnnConvolutionDescriptor_t convolution, cudnnTensorDescriptor_t dx,
                                        cudnnConvolutionBwdDataAlgo_t algorithm, size_t* bytes) {
  const Question question = Question(kBackwardData).filter(w).tensor(dy).convolution(convolution).tensor(dx);
  return remembered_size(question, algorithm, bytes, [&](size_t* answer) {
    return cudnnGetConvolutionBackwardDataWorkspaceSize(handle, w, dy, convolution, dx, algorithm, answer);
  });
}

}  // namespace caffeup_cudnn

#define cudnnGetConvolutionForwardAlgorithm_v7 caffeup_cudnn::forward_list
#define cudnnGetConvolutionBackwardFilterAlgorithm_v7 caffeup_cudnn::backward_filter_list
#define cudnnGetConvolutionBackwardDataAlgorithm_v7 caffeup_cudnn::backward_data_list
#define cudnnGetConvolutionForwardWorkspaceSize caffeup_cudnn::forward_size
#define cudnnGetConvolutionBackwardFilterWorkspaceSize caffeup_cudnn::backward_filter_size
#define cudnnGetConvolutionBackwardDataWorkspaceSize caffeup_cudnn::backward_data_size

#endif  /* CAFFEUP_CUDNN_REMEMBER_H_ */
