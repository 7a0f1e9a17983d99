/* The three questions for a convolution's algorithm as they were up to cuDNN 7.
 *
 * Why:   Caffe's cudnn_conv_layer.cpp and cudnn_deconv_layer.cpp ask them (weiliu89/caffe#1025, BVLC/caffe#6970).
 * Since: cuDNN 8 took them and their preferences out; what is left ends in `_v7` and knows no limit of the workspace.
 * Whom:  every tree without `_v7` calls of its own.
 *
 * The best algorithm whose workspace keeps within the limit is taken, as cuDNN did, and remembered with the limit (cudnn_remember.h).
 */
#ifndef CAFFEUP_CUDNN_ALGORITHMS_H_
#define CAFFEUP_CUDNN_ALGORITHMS_H_

typedef enum {
  CUDNN_CONVOLUTION_FWD_NO_WORKSPACE = 0,
  CUDNN_CONVOLUTION_FWD_PREFER_FASTEST = 1,
  CUDNN_CONVOLUTION_FWD_SPECIFY_WORKSPACE_LIMIT = 2
} cudnnConvolutionFwdPreference_t;

typedef enum {
  CUDNN_CONVOLUTION_BWD_FILTER_NO_WORKSPACE = 0,
  CUDNN_CONVOLUTION_BWD_FILTER_PREFER_FASTEST = 1,
  CUDNN_CONVOLUTION_BWD_FILTER_SPECIFY_WORKSPACE_LIMIT = 2
} cudnnConvolutionBwdFilterPreference_t;

typedef enum {
  CUDNN_CONVOLUTION_BWD_DATA_NO_WORKSPACE = 0,
  CUDNN_CONVOLUTION_BWD_DATA_PREFER_FASTEST = 1,
  CUDNN_CONVOLUTION_BWD_DATA_SPECIFY_WORKSPACE_LIMIT = 2
} cudnnConvolutionBwdDataPreference_t;

namespace caffeup_cudnn {

inline size_t limit_of(int preference, size_t bytes) {
  const int no_workspace = 0, prefer_fastest = 1;
  if (preference == no_workspace) return 0;
  return preference == prefer_fastest ? static_cast<size_t>(-1) : bytes;
}

/* `size_of` asks once more: an entry may speak of another math type than the descriptor has. cuDNN is as slow to say no as to say
 * yes, and a no is not remembered: so what is picked must be. */
template <typename Perf, typename Algorithm, typename SizeOf>
cudnnStatus_t pick(const Perf* list, int count, size_t limit, Algorithm* algorithm, SizeOf size_of) {
  for (int at = 0; at < count; ++at) {
    size_t bytes = 0;
    if (list[at].status != CUDNN_STATUS_SUCCESS || list[at].memory > limit) continue;
    if (size_of(list[at].algo, &bytes) != CUDNN_STATUS_SUCCESS || bytes > limit) continue;
    *algorithm = list[at].algo;
    return CUDNN_STATUS_SUCCESS;
  }
  return CUDNN_STATUS_NOT_SUPPORTED;
}

}  // namespace caffeup_cudnn

inline cudnnStatus_t cudnnGetConvolutionForwardAlgorithm(cudnnHandle_t handle, cudnnTensorDescriptor_t x, cudnnFilterDescriptor_t w,
                                                         cudnnConvolutionDescriptor_t convolution, cudnnTensorDescriptor_t y,
                                                         cudnnConvolutionFwdPreference_t preference, size_t bytes,
                                                         cudnnConvolutionFwdAlgo_t* algorithm) {
  using namespace caffeup_cudnn;
  compute_in_type_of(x, convolution);
  const size_t limit = limit_of(preference, bytes);
  const Question question = Question(kForward).tensor(x).filter(w).convolution(convolution).tensor(y).number(limit);
  return remembered(question, algorithm, [&](cudnnConvolutionFwdAlgo_t* answer) {
    cudnnConvolutionFwdAlgoPerf_t list[CUDNN_CONVOLUTION_FWD_ALGO_COUNT];
    int count = 0;
    const cudnnStatus_t status = forward_list(handle, x, w, convolution, y, CUDNN_CONVOLUTION_FWD_ALGO_COUNT, &count, list);
    if (status != CUDNN_STATUS_SUCCESS) return status;
    return pick(list, count, limit, answer, [&](cudnnConvolutionFwdAlgo_t one, size_t* size) {
      return forward_size(handle, x, w, convolution, y, one, size);
    });
  });
}

inline cudnnStatus_t cudnnGetConvolutionBackwardFilterAlgorithm(cudnnHandle_t handle, cudnnTensorDescriptor_t x,
                                                                cudnnTensorDescriptor_t dy, cudnnConvolutionDescriptor_t convolution,
                                                                cudnnFilterDescriptor_t dw,
                                                                cudnnConvolutionBwdFilterPreference_t preference, size_t bytes,
                                                                cudnnConvolutionBwdFilterAlgo_t* algorithm) {
  using namespace caffeup_cudnn;
  compute_in_type_of(x, convolution);
  const size_t limit = limit_of(preference, bytes);
  const Question question = Question(kBackwardFilter).tensor(x).tensor(dy).convolution(convolution).filter(dw).number(limit);
  return remembered(question, algorithm, [&](cudnnConvolutionBwdFilterAlgo_t* answer) {
    const int most = CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT;
    cudnnConvolutionBwdFilterAlgoPerf_t list[most];
    int count = 0;
    const cudnnStatus_t status = backward_filter_list(handle, x, dy, convolution, dw, most, &count, list);
    if (status != CUDNN_STATUS_SUCCESS) return status;
    return pick(list, count, limit, answer, [&](cudnnConvolutionBwdFilterAlgo_t one, size_t* size) {
      return backward_filter_size(handle, x, dy, convolution, dw, one, size);
    });
  });
}

inline cudnnStatus_t cudnnGetConvolutionBackwardDataAlgorithm(cudnnHandle_t handle, cudnnFilterDescriptor_t w,
                                                              cudnnTensorDescriptor_t dy, cudnnConvolutionDescriptor_t convolution,
                                                              cudnnTensorDescriptor_t dx,
                                                              cudnnConvolutionBwdDataPreference_t preference, size_t bytes,
                                                              cudnnConvolutionBwdDataAlgo_t* algorithm) {
  using namespace caffeup_cudnn;
  compute_in_type_of(dy, convolution);
  const size_t limit = limit_of(preference, bytes);
  const Question question = Question(kBackwardData).filter(w).tensor(dy).convolution(convolution).tensor(dx).number(limit);
  return remembered(question, algorithm, [&](cudnnConvolutionBwdDataAlgo_t* answer) {
    const int most = CUDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT;
    cudnnConvolutionBwdDataAlgoPerf_t list[most];
    int count = 0;
    const cudnnStatus_t status = backward_data_list(handle, w, dy, convolution, dx, most, &count, list);
    if (status != CUDNN_STATUS_SUCCESS) return status;
    return pick(list, count, limit, answer, [&](cudnnConvolutionBwdDataAlgo_t one, size_t* size) {
      return backward_data_size(handle, w, dy, convolution, dx, one, size);
    });
  });
}

#endif  /* CAFFEUP_CUDNN_ALGORITHMS_H_ */
