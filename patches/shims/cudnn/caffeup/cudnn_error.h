/* What CUDNN_CHECK prints: cuDNN's own words, and how much memory the GPU has left.
 *
 * Why:   Caffe defines a global inline cudnnGetErrorString(cudnnStatus_t) of its own, which has the very name of cuDNN's: inside
 *        libcaffe it replaces cuDNN's symbol, knows no status newer than the tree, and brings 37 warnings a file with cuDNN 9.
 * Since: cuDNN 2, where Caffe's function comes from; cudnnGetLastErrorString came with cuDNN 9.
 * Whom:  every tree with cuDNN layers (include/caffe/util/cudnn.hpp).
 *
 * The macro reads two ways. In a call, Asked() is a value, and the function below is meant. In a definition it declares a second
 * parameter (a function that returns Asked), so that the tree's own function becomes another overload, which nobody calls.
 */
#ifndef CAFFEUP_CUDNN_ERROR_H_
#define CAFFEUP_CUDNN_ERROR_H_

#include <stdio.h>
#include <string.h>

namespace caffeup_cudnn {

struct Asked {};

/* One line: the log's first line is the one that people paste. */
inline void append(char* text, size_t room, const char* before, const char* words) {
  size_t used = strlen(text);
  snprintf(text + used, room - used, "%s%s", before, words);
  for (char* at = text + used; *at != '\0'; ++at) {
    if (*at == '\n' || *at == '\r') *at = ' ';
  }
}

inline void describe(cudnnStatus_t status, char* text, size_t room) {
  text[0] = '\0';
  append(text, room, "", cudnnGetErrorString(status));
#if CUDNN_MAJOR >= 9
  char last[512] = "";
  cudnnGetLastErrorString(last, sizeof(last));
  last[sizeof(last) - 1] = '\0';
  if (last[0] != '\0') append(text, room, "; cuDNN says: ", last);
#endif
  size_t free_bytes = 0, all_bytes = 0;
  if (cudaMemGetInfo(&free_bytes, &all_bytes) == cudaSuccess) {
    char memory[96];
    snprintf(memory, sizeof(memory), "%lu MiB free of %lu MiB", static_cast<unsigned long>(free_bytes >> 20),
             static_cast<unsigned long>(all_bytes >> 20));
    append(text, room, "; GPU memory: ", memory);
  }
}

}  // namespace caffeup_cudnn

inline const char* caffeup_cudnn_error(cudnnStatus_t status, caffeup_cudnn::Asked) {
#if __cplusplus >= 201103L
  static thread_local char text[1024];
#else
  static __thread char text[1024];
#endif
  caffeup_cudnn::describe(status, text, sizeof(text));
  return text;
}

#define cudnnGetErrorString(status) caffeup_cudnn_error(status, caffeup_cudnn::Asked())

/* The tree's own function switches over the statuses of its time. */
#pragma GCC diagnostic ignored "-Wswitch"

#endif  /* CAFFEUP_CUDNN_ERROR_H_ */
