/* A convolution whose workspace turns out too small for its algorithm is computed by another algorithm.
 *
 * Why:   trees that were brought to cuDNN 8 by hand guess: OpenPose's takes algorithm 1 for the weights' gradient and twice what the
 *        forward pass needs as its workspace. Where that is too little cuDNN refuses (CUDNN_STATUS_BAD_PARAM,
 *        workSpaceSizeInBytes < requiredWorkspace).
 * Since: cuDNN 8, which took out the questions that gave an algorithm for a limit.
 * Whom:  trees with `_v7` calls or fixed algorithms of their own.
 *
 * cuDNN is asked first: a call that it takes costs nothing more. One that it refuses for another reason is refused as before.
 */
#ifndef CAFFEUP_CUDNN_WORKSPACE_H_
#define CAFFEUP_CUDNN_WORKSPACE_H_

namespace caffeup_cudnn {

/* Calls `compute(algorithm)`; where the workspace is too small for it, or cuDNN has no such algorithm for these shapes, again with
 * what `choose(&another)` says. A refused call has computed nothing. */
template <typename Algorithm, typename Compute, typename SizeOf, typename Choose>
cudnnStatus_t within(Algorithm algorithm, size_t bytes, Compute compute, SizeOf size_of, Choose choose) {
  const cudnnStatus_t refused = compute(algorithm);
  if (refused == CUDNN_STATUS_SUCCESS) return refused;
  size_t needed = 0;
  if (size_of(algorithm, &needed) == CUDNN_STATUS_SUCCESS && needed <= bytes) return refused;
  Algorithm another = algorithm;
  if (choose(&another) != CUDNN_STATUS_SUCCESS || another == algorithm) return refused;
  return compute(another);
}

inline cudnnStatus_t convolution_forward(cudnnHandle_t handle, const void* alpha, cudnnTensorDescriptor_t x_desc, const void* x,
                                         cudnnFilterDescriptor_t w_desc, const void* w, cudnnConvolutionDescriptor_t convolution,
                                         cudnnConvolutionFwdAlgo_t algorithm, void* workspace, size_t bytes, const void* beta,
                                         cudnnTensorDescriptor_t y_desc, void* y) {
  typedef cudnnConvolutionFwdAlgo_t Algorithm;
  return within(
      algorithm, bytes,
      [&](Algorithm one) {
        return cudnnConvolutionForward(handle, alpha, x_desc, x, w_desc, w, convolution, one, workspace, bytes, beta, y_desc, y);
      },
      [&](Algorithm one, size_t* size) { return forward_size(handle, x_desc, w_desc, convolution, y_desc, one, size); },
      [&](Algorithm* another) {
        return cudnnGetConvolutionForwardAlgorithm(handle, x_desc, w_desc, convolution, y_desc,
                                                   CUDNN_CONVOLUTION_FWD_SPECIFY_WORKSPACE_LIMIT, bytes, another);
      });
}

inline cudnnStatus_t convolution_backward_filter(cudnnHandle_t handle, const void* alpha, cudnnTensorDescriptor_t x_desc,
                                                 const void* x, cudnnTensorDescriptor_t dy_desc, const void* dy,
                                                 cudnnConvolutionDescriptor_t convolution, cudnnConvolutionBwdFilterAlgo_t algorithm,
                                                 void* workspace, size_t bytes, const void* beta, cudnnFilterDescriptor_t dw_desc,
                                                 void* dw) {
  typedef cudnnConvolutionBwdFilterAlgo_t Algorithm;
  return within(
      algorithm, bytes,
      [&](Algorithm one) {
        return cudnnConvolutionBackwardFilter(handle, alpha, x_desc, x, dy_desc, dy, convolution, one, workspace, bytes, beta,
                                              dw_desc, dw);
      },
      [&](Algorithm one, size_t* size) { return backward_filter_size(handle, x_desc, dy_desc, convolution, dw_desc, one, size); },
      [&](Algorithm* another) {
        return cudnnGetConvolutionBackwardFilterAlgorithm(handle, x_desc, dy_desc, convolution, dw_desc,
                                                          CUDNN_CONVOLUTION_BWD_FILTER_SPECIFY_WORKSPACE_LIMIT, bytes, another);
      });
}

inline cudnnStatus_t convolution_backward_data(cudnnHandle_t handle, const void* alpha, cudnnFilterDescriptor_t w_desc, const void* w,
                                               cudnnTensorDescriptor_t dy_desc, const void* dy,
                                               cudnnConvolutionDescriptor_t convolution, cudnnConvolutionBwdDataAlgo_t algorithm,
                                               void* workspace, size_t bytes, const void* beta, cudnnTensorDescriptor_t dx_desc,
                                               void* dx) {
  typedef cudnnConvolutionBwdDataAlgo_t Algorithm;
  return within(
      algorithm, bytes,
      [&](Algorithm one) {
        return cudnnConvolutionBackwardData(handle, alpha, w_desc, w, dy_desc, dy, convolution, one, workspace, bytes, beta, dx_desc,
                                            dx);
      },
      [&](Algorithm one, size_t* size) { return backward_data_size(handle, w_desc, dy_desc, convolution, dx_desc, one, size); },
      [&](Algorithm* another) {
        return cudnnGetConvolutionBackwardDataAlgorithm(handle, w_desc, dy_desc, convolution, dx_desc,
                                                        CUDNN_CONVOLUTION_BWD_DATA_SPECIFY_WORKSPACE_LIMIT, bytes, another);
      });
}

/* The calls of cuDNN 2, which name no algorithm (cudnn_old_calls.h). */
inline cudnnStatus_t convolution_backward_filter(cudnnHandle_t handle, const void* alpha, cudnnTensorDescriptor_t x_desc,
                                                 const void* x, cudnnTensorDescriptor_t dy_desc, const void* dy,
                                                 cudnnConvolutionDescriptor_t convolution, const void* beta,
                                                 cudnnFilterDescriptor_t dw_desc, void* dw) {
  return cudnnConvolutionBackwardFilter(handle, alpha, x_desc, x, dy_desc, dy, convolution, beta, dw_desc, dw);
}

inline cudnnStatus_t convolution_backward_data(cudnnHandle_t handle, const void* alpha, cudnnFilterDescriptor_t w_desc, const void* w,
                                               cudnnTensorDescriptor_t dy_desc, const void* dy,
                                               cudnnConvolutionDescriptor_t convolution, const void* beta,
                                               cudnnTensorDescriptor_t dx_desc, void* dx) {
  return cudnnConvolutionBackwardData(handle, alpha, w_desc, w, dy_desc, dy, convolution, beta, dx_desc, dx);
}

}  // namespace caffeup_cudnn

#define cudnnConvolutionForward caffeup_cudnn::convolution_forward
#define cudnnConvolutionBackwardFilter caffeup_cudnn::convolution_backward_filter
#define cudnnConvolutionBackwardData caffeup_cudnn::convolution_backward_data

#endif  /* CAFFEUP_CUDNN_WORKSPACE_H_ */
