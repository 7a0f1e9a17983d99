/* Warp functions without `_sync`.
 *
 * Why:   kernels of earlier years call __shfl and __ballot, which newer GPUs do not have.
 * Since: CUDA 9, for compute capability 7.0 and newer.
 * Whom:  forks with reductions of their own.
 *
 * The old ones spoke of the threads of a warp that were active at that moment: so do these. They are macros, as the toolkit goes on
 * declaring the functions, and only for the pass that makes a newer GPU's code, as cuda_fp16.h declares some of its own in the others.
 * __any and __all are left alone: libcu++ has types of these names.
 */
#ifndef CAFFEUP_CUDA_WARP_H_
#define CAFFEUP_CUDA_WARP_H_

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 700
#define __shfl(...) __shfl_sync(__activemask(), __VA_ARGS__)
#define __shfl_up(...) __shfl_up_sync(__activemask(), __VA_ARGS__)
#define __shfl_down(...) __shfl_down_sync(__activemask(), __VA_ARGS__)
#define __shfl_xor(...) __shfl_xor_sync(__activemask(), __VA_ARGS__)
#define __ballot(...) __ballot_sync(__activemask(), __VA_ARGS__)
#endif

#endif  /* CAFFEUP_CUDA_WARP_H_ */
