/* Calls of cuDNN 2 to 5 in their old form.
 *
 * Why:   forks keep the cuDNN calls of their day, with fewer arguments (rbgirshick/caffe-fast-rcnn#14, MhLiao/TextBoxes_plusplus#6).
 * Since: cuDNN 4 made biases be added without a mode and the backward passes take an algorithm; cuDNN 5 put NaN propagation into
 *        the pooling descriptor and the format into the filter descriptor, and made the activation a descriptor; cuDNN 6 made the
 *        type to compute in an argument of the convolution descriptor, and left out the names in `_v3` and `_v4` by and by.
 * Whom:  forks written for cuDNN 2 to 5.
 *
 * Overloads: a call with today's arguments means cuDNN's own function, as before.
 */
#ifndef CAFFEUP_CUDNN_OLD_CALLS_H_
#define CAFFEUP_CUDNN_OLD_CALLS_H_

/* ---- cuDNN 5: descriptors ---- */

inline cudnnStatus_t cudnnSetFilter4dDescriptor(cudnnFilterDescriptor_t filter, cudnnDataType_t type, int k, int c, int h, int w) {
  return cudnnSetFilter4dDescriptor(filter, type, CUDNN_TENSOR_NCHW, k, c, h, w);
}

inline cudnnStatus_t cudnnSetPooling2dDescriptor(cudnnPoolingDescriptor_t pooling, cudnnPoolingMode_t mode, int window_h, int window_w,
                                                 int pad_h, int pad_w, int stride_h, int stride_w) {
  return cudnnSetPooling2dDescriptor(pooling, mode, CUDNN_PROPAGATE_NAN, window_h, window_w, pad_h, pad_w, stride_h, stride_w);
}

inline cudnnStatus_t cudnnSetPoolingNdDescriptor(cudnnPoolingDescriptor_t pooling, cudnnPoolingMode_t mode, int count,
                                                 const int window[], const int pads[], const int strides[]) {
  return cudnnSetPoolingNdDescriptor(pooling, mode, CUDNN_PROPAGATE_NAN, count, window, pads, strides);
}

namespace caffeup_cudnn {

/* A descriptor for the time of one call; making one touches no GPU. */
class Activation {
 public:
  explicit Activation(cudnnActivationMode_t mode) : descriptor_(), status_(cudnnCreateActivationDescriptor(&descriptor_)) {
    if (status_ != CUDNN_STATUS_SUCCESS) return;
    status_ = cudnnSetActivationDescriptor(descriptor_, mode, CUDNN_PROPAGATE_NAN, 0.0);
    if (status_ != CUDNN_STATUS_SUCCESS) cudnnDestroyActivationDescriptor(descriptor_);
  }
  ~Activation() {
    if (status_ == CUDNN_STATUS_SUCCESS) cudnnDestroyActivationDescriptor(descriptor_);
  }
  cudnnActivationDescriptor_t descriptor() const { return descriptor_; }
  cudnnStatus_t status() const { return status_; }

 private:
  Activation(const Activation&);
  Activation& operator=(const Activation&);
  cudnnActivationDescriptor_t descriptor_;
  cudnnStatus_t status_;
};

}  // namespace caffeup_cudnn

inline cudnnStatus_t cudnnActivationForward(cudnnHandle_t handle, cudnnActivationMode_t mode, const void* alpha,
                                            cudnnTensorDescriptor_t x_desc, const void* x, const void* beta,
                                            cudnnTensorDescriptor_t y_desc, void* y) {
  const caffeup_cudnn::Activation activation(mode);
  if (activation.status() != CUDNN_STATUS_SUCCESS) return activation.status();
  return cudnnActivationForward(handle, activation.descriptor(), alpha, x_desc, x, beta, y_desc, y);
}

inline cudnnStatus_t cudnnActivationBackward(cudnnHandle_t handle, cudnnActivationMode_t mode, const void* alpha,
                                             cudnnTensorDescriptor_t y_desc, const void* y, cudnnTensorDescriptor_t dy_desc,
                                             const void* dy, cudnnTensorDescriptor_t x_desc, const void* x, const void* beta,
                                             cudnnTensorDescriptor_t dx_desc, void* dx) {
  const caffeup_cudnn::Activation activation(mode);
  if (activation.status() != CUDNN_STATUS_SUCCESS) return activation.status();
  return cudnnActivationBackward(handle, activation.descriptor(), alpha, y_desc, y, dy_desc, dy, x_desc, x, beta, dx_desc, dx);
}

/* Names of cuDNN 4 with the arguments of today. Macros: cuDNN 5 and 6 still declare some of them. */
#define cudnnSetFilter4dDescriptor_v3 cudnnSetFilter4dDescriptor
#define cudnnSetFilter4dDescriptor_v4 cudnnSetFilter4dDescriptor
#define cudnnSetPooling2dDescriptor_v3 cudnnSetPooling2dDescriptor
#define cudnnSetPooling2dDescriptor_v4 cudnnSetPooling2dDescriptor
#define cudnnActivationForward_v3 cudnnActivationForward
#define cudnnActivationForward_v4 cudnnActivationForward
#define cudnnActivationBackward_v3 cudnnActivationBackward
#define cudnnActivationBackward_v4 cudnnActivationBackward
#define cudnnAddTensor_v3 cudnnAddTensor
#define cudnnConvolutionBackwardFilter_v3 cudnnConvolutionBackwardFilter
#define cudnnConvolutionBackwardData_v3 cudnnConvolutionBackwardData

/* ---- cuDNN 6: the type to compute in ---- */

#if CUDNN_MAJOR >= 6
/* Which type a net has is not among the arguments: compute_in_type_of() below sets it right when the algorithm is asked for. */
inline cudnnStatus_t cudnnSetConvolution2dDescriptor(cudnnConvolutionDescriptor_t convolution, int pad_h, int pad_w, int stride_h,
                                                     int stride_w, int upscale_h, int upscale_w, cudnnConvolutionMode_t mode) {
  return cudnnSetConvolution2dDescriptor(convolution, pad_h, pad_w, stride_h, stride_w, upscale_h, upscale_w, mode, CUDNN_DATA_FLOAT);
}

namespace caffeup_cudnn {

/* Data of double are computed in double; cuDNN knows no other way. */
inline void compute_in_type_of(cudnnTensorDescriptor_t data, cudnnConvolutionDescriptor_t convolution) {
  cudnnDataType_t type = CUDNN_DATA_FLOAT, computed = CUDNN_DATA_FLOAT;
  int unused[CUDNN_DIM_MAX], more[CUDNN_DIM_MAX], count = 0;
  cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
  if (cudnnGetTensorNdDescriptor(data, CUDNN_DIM_MAX, &type, &count, unused, more) != CUDNN_STATUS_SUCCESS) return;
  if (type != CUDNN_DATA_DOUBLE) return;
  const int most = CUDNN_DIM_MAX - 2;
  int pads[CUDNN_DIM_MAX], strides[CUDNN_DIM_MAX], dilations[CUDNN_DIM_MAX];
  if (cudnnGetConvolutionNdDescriptor(convolution, most, &count, pads, strides, dilations, &mode, &computed) != CUDNN_STATUS_SUCCESS)
    return;
  if (computed != type) cudnnSetConvolutionNdDescriptor(convolution, count, pads, strides, dilations, mode, type);
}

}  // namespace caffeup_cudnn

#if CUDNN_MAJOR < 8
namespace caffeup_cudnn {

template <typename Preference, typename Algorithm>
cudnnStatus_t forward_algorithm(cudnnHandle_t handle, cudnnTensorDescriptor_t x, cudnnFilterDescriptor_t w,
                                cudnnConvolutionDescriptor_t convolution, cudnnTensorDescriptor_t y, Preference preference,
                                size_t limit, Algorithm* algorithm) {
  compute_in_type_of(x, convolution);
  return cudnnGetConvolutionForwardAlgorithm(handle, x, w, convolution, y, preference, limit, algorithm);
}

template <typename Preference, typename Algorithm>
cudnnStatus_t backward_filter_algorithm(cudnnHandle_t handle, cudnnTensorDescriptor_t x, cudnnTensorDescriptor_t dy,
                                        cudnnConvolutionDescriptor_t convolution, cudnnFilterDescriptor_t dw, Preference preference,
                                        size_t limit, Algorithm* algorithm) {
  compute_in_type_of(x, convolution);
  return cudnnGetConvolutionBackwardFilterAlgorithm(handle, x, dy, convolution, dw, preference, limit, algorithm);
}

template <typename Preference, typename Algorithm>
cudnnStatus_t backward_data_algorithm(cudnnHandle_t handle, cudnnFilterDescriptor_t w, cudnnTensorDescriptor_t dy,
                                      cudnnConvolutionDescriptor_t convolution, cudnnTensorDescriptor_t dx, Preference preference,
                                      size_t limit, Algorithm* algorithm) {
  compute_in_type_of(dy, convolution);
  return cudnnGetConvolutionBackwardDataAlgorithm(handle, w, dy, convolution, dx, preference, limit, algorithm);
}

}  // namespace caffeup_cudnn

#define cudnnGetConvolutionForwardAlgorithm caffeup_cudnn::forward_algorithm
#define cudnnGetConvolutionBackwardFilterAlgorithm caffeup_cudnn::backward_filter_algorithm
#define cudnnGetConvolutionBackwardDataAlgorithm caffeup_cudnn::backward_data_algorithm
#endif
#endif

/* ---- cuDNN 4: what cuDNN 2 had ---- */

enum caffeup_cudnnAddMode_t { CUDNN_ADD_IMAGE = 0, CUDNN_ADD_SAME_HW = 0, CUDNN_ADD_FEATURE_MAP = 1, CUDNN_ADD_SAME_CHW = 1,
                              CUDNN_ADD_SAME_C = 2, CUDNN_ADD_FULL_TENSOR = 3 };

/* The shape of the bias says what the mode said. */
inline cudnnStatus_t cudnnAddTensor(cudnnHandle_t handle, caffeup_cudnnAddMode_t, const void* alpha, cudnnTensorDescriptor_t bias_desc,
                                    const void* bias, const void* beta, cudnnTensorDescriptor_t data_desc, void* data) {
  return cudnnAddTensor(handle, alpha, bias_desc, bias, beta, data_desc, data);
}

/* cuDNN 2 had one algorithm for each backward pass, without a workspace: number 0 of today. */
inline cudnnStatus_t cudnnConvolutionBackwardFilter(cudnnHandle_t handle, const void* alpha, cudnnTensorDescriptor_t x_desc,
                                                    const void* x, cudnnTensorDescriptor_t dy_desc, const void* dy,
                                                    cudnnConvolutionDescriptor_t convolution, const void* beta,
                                                    cudnnFilterDescriptor_t dw_desc, void* dw) {
  return cudnnConvolutionBackwardFilter(handle, alpha, x_desc, x, dy_desc, dy, convolution, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0, NULL,
                                        0, beta, dw_desc, dw);
}

inline cudnnStatus_t cudnnConvolutionBackwardData(cudnnHandle_t handle, const void* alpha, cudnnFilterDescriptor_t w_desc,
                                                  const void* w, cudnnTensorDescriptor_t dy_desc, const void* dy,
                                                  cudnnConvolutionDescriptor_t convolution, const void* beta,
                                                  cudnnTensorDescriptor_t dx_desc, void* dx) {
  return cudnnConvolutionBackwardData(handle, alpha, w_desc, w, dy_desc, dy, convolution, CUDNN_CONVOLUTION_BWD_DATA_ALGO_0, NULL, 0,
                                      beta, dx_desc, dx);
}

#endif  /* CAFFEUP_CUDNN_OLD_CALLS_H_ */
