/* The three questions for a convolution's algorithm as they were up to cuDNN 7.
 *
 * Why:   Caffe's cudnn_conv_layer.cpp and cudnn_deconv_layer.cpp ask them (weiliu89/caffe#1025, BVLC/caffe#6970).
 * Since: cuDNN 8 took them and their preferences out; what is left ends in `_v7` and knows no limit of the workspace.
 * Whom:  every tree without `_v7` calls of its own.
 *
 * The best algorithm whose workspace keeps within the limit is taken, as cuDNN did; its `_v7` answers are remembered (cudnn_remember.h).
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

/* `size_of` asks once more: an entry may speak of another math type than the descriptor has. */
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
                                                         cudnnConvolutionFwdPreference_t preference, size_t limit,
                                                         cudnnConvolutionFwdAlgo_t* algorithm) {
  caffeup_cudnn::compute_in_type_of(x, convolution);
  cudnnConvolutionFwdAlgoPerf_t list[CUDNN_CONVOLUTION_FWD_ALGO_COUNT];
  int count = 0;
  const cudnnStatus_t status =
      caffeup_cudnn::forward_list(handle, x, w, convolution, y, CUDNN_CONVOLUTION_FWD_ALGO_COUNT, &count, list);
  if (status != CUDNN_STATUS_SUCCESS) return status;
  return caffeup_cudnn::pick(list, count, caffeup_cudnn::limit_of(preference, limit), algorithm,
                             [&](cudnnConvolutionFwdAlgo_t one, size_t* bytes) {
                               return caffeup_cudnn::forward_size(handle, x, w, convolution, y, one, bytes);
                             });
}

inline cudnnStatus_t cudnnGetConvolutionBackwardFilterAlgorithm(cudnnHandle_t handle, cudnnTensorDescriptor_t x,
                                                                cudnnTensorDescriptor_t dy, cudnnConvolutionDescriptor_t convolution,
                                                                cudnnFilterDescriptor_t dw,
                                                                cudnnConvolutionBwdFilterPreference_t preference, size_t limit,
                                                                cudnnConvolutionBwdFilterAlgo_t* algorithm) {
  caffeup_cudnn::compute_in_type_of(x, convolution);
  cudnnConvolutionBwdFilterAlgoPerf_t list[CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT];
  int count = 0;
  const cudnnStatus_t status =
      caffeup_cudnn::backward_filter_list(handle, x, dy, convolution, dw, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT, &count, list);
  if (status != CUDNN_STATUS_SUCCESS) return status;
  return caffeup_cudnn::pick(list, count, caffeup_cudnn::limit_of(preference, limit), algorithm,
                             [&](cudnnConvolutionBwdFilterAlgo_t one, size_t* bytes) {
                               return caffeup_cudnn::backward_filter_size(handle, x, dy, convolution, dw, one, bytes);
                             });
}

inline cudnnStatus_t cudnnGetConvolutionBackwardDataAlgorithm(cudnnHandle_t handle, cudnnFilterDescriptor_t w,
                                                              cudnnTensorDescriptor_t dy, cudnnConvolutionDescriptor_t convolution,
                                                              cudnnTensorDescriptor_t dx,
                                                              cudnnConvolutionBwdDataPreference_t preference, size_t limit,
                                                              cudnnConvolutionBwdDataAlgo_t* algorithm) {
  caffeup_cudnn::compute_in_type_of(dy, convolution);
  cudnnConvolutionBwdDataAlgoPerf_t list[CUDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT];
  int count = 0;
  const cudnnStatus_t status =
      caffeup_cudnn::backward_data_list(handle, w, dy, convolution, dx, CUDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT, &count, list);
  if (status != CUDNN_STATUS_SUCCESS) return status;
  return caffeup_cudnn::pick(list, count, caffeup_cudnn::limit_of(preference, limit), algorithm,
                             [&](cudnnConvolutionBwdDataAlgo_t one, size_t* bytes) {
                               return caffeup_cudnn::backward_data_size(handle, w, dy, convolution, dx, one, bytes);
                             });
}

#endif  /* CAFFEUP_CUDNN_ALGORITHMS_H_ */
