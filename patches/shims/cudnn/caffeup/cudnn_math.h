/* Convolutions of float in float.
 *
 * Why:   a descriptor that is left at CUDNN_DEFAULT_MATH may round its inputs to TF32 (10 bits) on Ampere and newer, which moves
 *        results by 1e-3 to 2e-2 against what old Caffe gave; with CUDNN_FMA_MATH they agree to 1e-6. But Winograd's transforms
 *        lose digits as kernels grow: 2e-6 with 3x3, 4e-4 (forward) to 9e-4 (weights) with 5x5, so those are not offered to Caffe.
 * Since: cuDNN 8, where CUDNN_FMA_MATH came too.
 * Whom:  every tree with cuDNN layers. -DCAFFEUP_TF32=1 (`caffeup up --tf32`) leaves it to cuDNN.
 *
 * A tree that asks for tensor cores by name (CUDNN_TENSOR_OP_MATH) gets them.
 */
#ifndef CAFFEUP_CUDNN_MATH_H_
#define CAFFEUP_CUDNN_MATH_H_

#ifndef CAFFEUP_TF32
#define CAFFEUP_TF32 0
#endif

namespace caffeup_cudnn {

inline bool loses_digits(cudnnConvolutionFwdAlgo_t one) { return one == CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD_NONFUSED; }
inline bool loses_digits(cudnnConvolutionBwdFilterAlgo_t one) { return one == CUDNN_CONVOLUTION_BWD_FILTER_ALGO_WINOGRAD_NONFUSED; }
inline bool loses_digits(cudnnConvolutionBwdDataAlgo_t one) { return one == CUDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD_NONFUSED; }

/* Whether an algorithm is as exact as float for kernels of this size. */
template <typename Algorithm>
bool exact(Algorithm one, cudnnFilterDescriptor_t filter) {
  if (CAFFEUP_TF32 || !loses_digits(one)) return true;
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  cudnnTensorFormat_t format = CUDNN_TENSOR_NCHW;
  int count = 0, sizes[CUDNN_DIM_MAX] = {};
  const int first_of_kernel = 2, exact_up_to = 3;
  if (cudnnGetFilterNdDescriptor(filter, CUDNN_DIM_MAX, &type, &format, &count, sizes) != CUDNN_STATUS_SUCCESS) return true;
  for (int at = first_of_kernel; at < count; ++at) {
    if (sizes[at] > exact_up_to) return false;
  }
  return true;
}

}  // namespace caffeup_cudnn

#if !CAFFEUP_TF32
namespace caffeup_cudnn {

inline cudnnStatus_t set_math_type(cudnnConvolutionDescriptor_t convolution, cudnnMathType_t type) {
  return cudnnSetConvolutionMathType(convolution, type == CUDNN_DEFAULT_MATH ? CUDNN_FMA_MATH : type);
}

inline cudnnStatus_t create_convolution(cudnnConvolutionDescriptor_t* convolution) {
  const cudnnStatus_t status = cudnnCreateConvolutionDescriptor(convolution);
  return status == CUDNN_STATUS_SUCCESS ? set_math_type(*convolution, CUDNN_DEFAULT_MATH) : status;
}

}  // namespace caffeup_cudnn

#define cudnnSetConvolutionMathType caffeup_cudnn::set_math_type
#define cudnnCreateConvolutionDescriptor caffeup_cudnn::create_convolution
#endif

#endif  /* CAFFEUP_CUDNN_MATH_H_ */
