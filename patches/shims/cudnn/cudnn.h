/* cudnn.h, with what each release of cuDNN took away from the code of earlier years.
 *
 * Why:   cuDNN changes the signatures of its calls with every major release and drops the old ones; and what still compiles
 *        has come to mean something else (unaligned workspaces, TF32, slow questions, a replaced symbol).
 * Since: cuDNN 5 (descriptors), 6 (convolution descriptor), 8 (algorithm getters); each file below says its own.
 * Whom:  every tree with cuDNN layers.
 *
 * Each file below has one job, and none where the real header still has the thing.
 *
 * The real header comes before the guard: where two trees' shims are on the path, each leads on to the next.
 */
#include_next <cudnn.h>

#ifndef CAFFEUP_CUDNN_H_
#define CAFFEUP_CUDNN_H_

#if defined(__cplusplus) && defined(CUDNN_MAJOR)
#include <cuda_runtime.h>

#include <caffeup/cudnn_error.h>
#if CUDNN_MAJOR >= 5
#include <caffeup/cudnn_old_calls.h>
#endif
#if CUDNN_MAJOR >= 8
#include <caffeup/cudnn_math.h>
#include <caffeup/cudnn_remember.h>
#include <caffeup/cudnn_algorithms.h>
#include <caffeup/cudnn_workspace.h>
#endif
#endif

#endif  /* CAFFEUP_CUDNN_H_ */
