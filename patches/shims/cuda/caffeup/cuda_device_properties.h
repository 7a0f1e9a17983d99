/* cudaDeviceProp with the fields that CUDA 13 removed.
 *
 * Why:   Caffe::DeviceQuery (src/caffe/common.cpp) and test_platform.cpp print them (NVIDIA/cuda-samples#382).
 * Since: CUDA 13.0; they are now asked for with cudaDeviceGetAttribute.
 * Whom:  every tree.
 */
#ifndef CAFFEUP_CUDA_DEVICE_PROPERTIES_H_
#define CAFFEUP_CUDA_DEVICE_PROPERTIES_H_

struct caffeup_cudaDeviceProp : public cudaDeviceProp {
  int clockRate;
  int deviceOverlap;
  int kernelExecTimeoutEnabled;
  int computeMode;
  int maxTexture1DLinear;
  int memoryClockRate;
  int singleToDoublePrecisionPerfRatio;
  int cooperativeMultiDeviceLaunch; /* of no device since CUDA 13 */
};

inline cudaError_t cudaGetDeviceProperties(caffeup_cudaDeviceProp* properties, int device) {
  const cudaError_t status = cudaGetDeviceProperties(static_cast<cudaDeviceProp*>(properties), device);
  if (status != cudaSuccess) return status;
  properties->cooperativeMultiDeviceLaunch = 0;
  struct { cudaDeviceAttr attribute; int* field; } const lost[] = {
      {cudaDevAttrClockRate, &properties->clockRate},
      {cudaDevAttrGpuOverlap, &properties->deviceOverlap},
      {cudaDevAttrKernelExecTimeout, &properties->kernelExecTimeoutEnabled},
      {cudaDevAttrComputeMode, &properties->computeMode},
      {cudaDevAttrMaxTexture1DLinearWidth, &properties->maxTexture1DLinear},
      {cudaDevAttrMemoryClockRate, &properties->memoryClockRate},
      {cudaDevAttrSingleToDoublePrecisionPerfRatio, &properties->singleToDoublePrecisionPerfRatio},
  };
  for (size_t at = 0; at < sizeof(lost) / sizeof(lost[0]); ++at) {
    const cudaError_t asked = cudaDeviceGetAttribute(lost[at].field, lost[at].attribute, device);
    if (asked != cudaSuccess) return asked;
  }
  return cudaSuccess;
}

#define cudaDeviceProp caffeup_cudaDeviceProp

#endif  /* CAFFEUP_CUDA_DEVICE_PROPERTIES_H_ */
