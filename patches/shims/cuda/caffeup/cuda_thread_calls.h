/* The cudaThread… calls under their names of CUDA 3.
 *
 * Why:   they have been called cudaDevice… since CUDA 4.
 * Since: CUDA 13.0 no longer has the old names.
 * Whom:  forks with kernels of 2014 and before.
 */
#ifndef CAFFEUP_CUDA_THREAD_CALLS_H_
#define CAFFEUP_CUDA_THREAD_CALLS_H_

inline cudaError_t cudaThreadSynchronize() { return cudaDeviceSynchronize(); }
inline cudaError_t cudaThreadExit() { return cudaDeviceReset(); }
inline cudaError_t cudaThreadSetLimit(cudaLimit limit, size_t value) { return cudaDeviceSetLimit(limit, value); }
inline cudaError_t cudaThreadGetLimit(size_t* value, cudaLimit limit) { return cudaDeviceGetLimit(value, limit); }
inline cudaError_t cudaThreadSetCacheConfig(cudaFuncCache config) { return cudaDeviceSetCacheConfig(config); }
inline cudaError_t cudaThreadGetCacheConfig(cudaFuncCache* config) { return cudaDeviceGetCacheConfig(config); }

#endif  /* CAFFEUP_CUDA_THREAD_CALLS_H_ */
