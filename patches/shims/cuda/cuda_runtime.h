/* cuda_runtime.h, with what later toolkits took away.
 *
 * Why:   code of earlier years uses calls, fields and warp functions that CUDA 9 to 13 dropped.
 * Since: each file below says its own.
 * Whom:  every tree; nvcc includes this header before anything else, in each .cu file.
 *
 * The real header comes before the guard: where two trees' shims are on the path, each leads on to the next.
 */
#include_next <cuda_runtime.h>

#ifndef CAFFEUP_CUDA_RUNTIME_H_
#define CAFFEUP_CUDA_RUNTIME_H_

#if defined(__cplusplus) && defined(CUDART_VERSION)
#if CUDART_VERSION >= 13000
#include <caffeup/cuda_device_properties.h>
#include <caffeup/cuda_thread_calls.h>
#endif
#if defined(__CUDACC__) && CUDART_VERSION >= 9000
#include <caffeup/cuda_warp.h>
#endif
#endif

#endif  /* CAFFEUP_CUDA_RUNTIME_H_ */
