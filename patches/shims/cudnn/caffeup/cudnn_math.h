/* Convolutions of float in float.
 *
 * Why:   a descriptor that is left at CUDNN_DEFAULT_MATH may round its inputs to TF32 (10 bits) on Ampere and newer, which moves
 *        results by 1e-3 to 2e-2 against what old Caffe gave; with CUDNN_FMA_MATH they agree to 1e-6.
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
