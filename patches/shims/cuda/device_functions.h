/* device_functions.h: what it held is in cuda_runtime.h.
 *
 * Why:   src/caffe/util/math_functions.cu and kernels of forks include this private header of CUDA (BVLC/caffe PR 6681).
 * Since: CUDA 10 warns, in each file; a later toolkit no longer has it.
 * Whom:  every tree.
 */
#ifndef CAFFEUP_DEVICE_FUNCTIONS_H_
#define CAFFEUP_DEVICE_FUNCTIONS_H_

#include <cuda_runtime.h>

#if !defined(CUDART_VERSION) || CUDART_VERSION < 10000
#include_next <device_functions.h>
#endif

#endif  /* CAFFEUP_DEVICE_FUNCTIONS_H_ */
