/*
 * Depthwise convolution for Caffe: each channel has its own filter.
 *
 * Copyright (c) 2026, the caffeup authors. All rights reserved.
 *
 * Redistribution and use in source and binary forms, with or without
 * modification, are permitted provided that the following conditions are met:
 *
 * 1. Redistributions of source code must retain the above copyright notice,
 *    this list of conditions and the following disclaimer.
 * 2. Redistributions in binary form must reproduce the above copyright notice,
 *    this list of conditions and the following disclaimer in the documentation
 *    and/or other materials provided with the distribution.
 *
 * THIS SOFTWARE IS PROVIDED BY THE COPYRIGHT HOLDERS AND CONTRIBUTORS "AS IS"
 * AND ANY EXPRESS OR IMPLIED WARRANTIES, INCLUDING, BUT NOT LIMITED TO, THE
 * IMPLIED WARRANTIES OF MERCHANTABILITY AND FITNESS FOR A PARTICULAR PURPOSE
 * ARE DISCLAIMED. IN NO EVENT SHALL THE COPYRIGHT OWNER OR CONTRIBUTORS BE
 * LIABLE FOR ANY DIRECT, INDIRECT, INCIDENTAL, SPECIAL, EXEMPLARY, OR
 * CONSEQUENTIAL DAMAGES (INCLUDING, BUT NOT LIMITED TO, PROCUREMENT OF
 * SUBSTITUTE GOODS OR SERVICES; LOSS OF USE, DATA, OR PROFITS; OR BUSINESS
 * INTERRUPTION) HOWEVER CAUSED AND ON ANY THEORY OF LIABILITY, WHETHER IN
 * CONTRACT, STRICT LIABILITY, OR TORT (INCLUDING NEGLIGENCE OR OTHERWISE)
 * ARISING IN ANY WAY OUT OF THE USE OF THIS SOFTWARE, EVEN IF ADVISED OF THE
 * POSSIBILITY OF SUCH DAMAGE.
 */

// The kernels know nothing of Caffe. With DEPTHWISE_CONV_STANDALONE defined,
// this file compiles without Caffe's headers; bench/depthwise uses it so.
//
// How they work. A warp walks down a strip of neighbouring columns, one row at
// a time. Every lane loads its own columns of the row, each element once, and
// gets its neighbours' columns from their registers by warp shuffles; the sums
// of the rows under way stay in registers too. There is no shared memory tile
// and no barrier, rows need no alignment, and planes of any size are packed
// side by side: lanes are numbered through all the planes, so that a 10x10 map
// fills the machine as well as a 150x150 one. At both ends of a warp, and of a
// row, some lanes only supply their neighbours; warps overlap by that much.

#ifdef DEPTHWISE_CONV_STANDALONE
#include "depthwise_conv_layer.hpp"
#else
#include "caffe/layers/depthwise_conv_layer.hpp"
#endif

#include <cuda_runtime.h>
#include <stdint.h>

#include <algorithm>

namespace caffe {
namespace depthwise {

enum { kWarp = 32, kWarpsPerBlock = 4, kGenericThreads = 256 };

// ---------------------------------------------------------------------------
// What differs between CUDA 8 and CUDA 13.

template <typename T>
__device__ __forceinline__ T lane_above(T value, int hop) {
#if CUDART_VERSION >= 9000
  return __shfl_down_sync(0xffffffffu, value, hop);
#else
  return __shfl_down(value, hop);
#endif
}

template <typename T>
__device__ __forceinline__ T lane_below(T value, int hop) {
#if CUDART_VERSION >= 9000
  return __shfl_up_sync(0xffffffffu, value, hop);
#else
  return __shfl_up(value, hop);
#endif
}

__device__ __forceinline__ unsigned lane_zero(unsigned value) {
#if CUDART_VERSION >= 9000
  return __shfl_sync(0xffffffffu, value, 0);
#else
  return __shfl(static_cast<int>(value), 0);
#endif
}

__device__ __forceinline__ void warp_barrier() {
#if CUDART_VERSION >= 9000
  __syncwarp();
#endif
}

template <typename T>
__device__ __forceinline__ T warp_sum(T value) {
#pragma unroll
  for (int hop = kWarp / 2; hop > 0; hop /= 2) {
    value += lane_above(value, hop);
  }
  return value;  // complete in lane 0
}

// ---------------------------------------------------------------------------
// Rows of columns.

// N neighbouring elements, moved by loads and stores of up to 16 bytes.
template <typename T, int N>
struct __align__(N * sizeof(T) < 16 ? N * sizeof(T) : 16) Pack {
  T at[N];
};

// How a warp lies on a plane. A lane owns V output columns and the N = V * S
// input columns that start at the first of them times S, less the padding.
// WIDTH > 1 says that these input columns are aligned for a load of WIDTH
// elements; ownership then starts at the unpadded column, P columns later.
template <int K, int S, int WIDTH>
struct Strip {
  enum {
    V = WIDTH > S ? WIDTH / S : 1,
    N = V * S,
    P = WIDTH > 1 ? K / 2 : 0,
    SPAN = (V - 1) * S + K,         // input columns behind V outputs
    BELOW = (P + N - 1) / N,        // lanes that supply the left border
    ABOVE = (SPAN - 1 - P) / N,     // lanes that supply the right border
    USEFUL = kWarp - BELOW - ABOVE,
    UNDER_WAY = (K + S - 1) / S     // output rows that one input row reaches
  };
};

template <int N, bool ALIGNED, typename T>
__device__ __forceinline__ void load_columns(const T* row, int column,
    int width, bool row_exists, T (&value)[N]) {
  if (ALIGNED) {
    Pack<T, N> pack;
#pragma unroll
    for (int n = 0; n < N; ++n) { pack.at[n] = T(0); }
    if (row_exists && static_cast<unsigned>(column) < width) {
      pack = *reinterpret_cast<const Pack<T, N>*>(row + column);
    }
#pragma unroll
    for (int n = 0; n < N; ++n) { value[n] = pack.at[n]; }
  } else {
#pragma unroll
    for (int n = 0; n < N; ++n) {
      value[n] = T(0);
      if (row_exists && static_cast<unsigned>(column + n) < width) {
        value[n] = row[column + n];
      }
    }
  }
}

template <int N, typename T>
__device__ __forceinline__ void store_columns(T* to, const T (&value)[N]) {
  Pack<T, N> pack;
#pragma unroll
  for (int n = 0; n < N; ++n) { pack.at[n] = value[n]; }
  *reinterpret_cast<Pack<T, N>*>(to) = pack;
}

// window[i] = column i - P counted from the lane's first own column.
template <int P, int N, int SPAN, typename T>
__device__ __forceinline__ void widen(const T (&own)[N], T (&window)[SPAN]) {
#pragma unroll
  for (int i = 0; i < SPAN; ++i) {
    const int lanes = (i - P + kWarp * N) / N - kWarp;
    const int slot = (i - P) - lanes * N;
    if (lanes == 0) {
      window[i] = own[slot];
    } else if (lanes > 0) {
      window[i] = lane_above(own[slot], lanes);
    } else {
      window[i] = lane_below(own[slot], -lanes);
    }
  }
}

// ---------------------------------------------------------------------------
// Forward. With FLIP it is also backward-data for stride 1.

template <typename T, int K, int S, int WIDTH, bool FLIP, int ROWS_AHEAD>
__global__ void __launch_bounds__(kWarp * kWarpsPerBlock)
walk_forward(const Shape g, const int rows, const int segments,
    const T* __restrict__ in, const T* __restrict__ weight,
    const T* __restrict__ bias, T* __restrict__ out) {
  typedef Strip<K, S, WIDTH> L;
  const int lane = threadIdx.x % kWarp;
  const int segment = blockIdx.x % segments;
  const unsigned strip =
      blockIdx.x / segments * kWarpsPerBlock + threadIdx.x / kWarp;
  const unsigned lanes_a_row = g.out_width / L::V + L::BELOW + L::ABOVE;
  const unsigned position = strip * L::USEFUL + lane;
  const int channels = g.channels * g.multiplier;
  int plane = position / lanes_a_row;
  const int group = static_cast<int>(position % lanes_a_row) - L::BELOW;
  const bool exists = plane < g.num * channels;
  if (!exists) { plane = 0; }
  const bool writes = exists && lane >= L::BELOW && lane < kWarp - L::ABOVE &&
      group >= 0 && group < g.out_width / L::V;

  const int channel = plane % channels;
  T filter[K][K];
#pragma unroll
  for (int i = 0; i < K * K; ++i) {
    filter[i / K][i % K] =
        weight[channel * K * K + (FLIP ? K * K - 1 - i : i)];
  }
  const T start = bias ? bias[channel] : T(0);

  const int y_begin = segment * rows;
  const int y_end = min(y_begin + rows, g.out_height);
  const int row_limit =
      exists ? min(g.height, (y_end - 1) * S - g.pad_h + K) : 0;
  const int column = group * L::N - (g.pad_w - L::P);
  in += static_cast<size_t>(plane / g.multiplier) * g.height * g.width;
  out += static_cast<size_t>(plane) * g.out_height * g.out_width +
      group * L::V;

  T sum[L::UNDER_WAY][L::V];
  for (int y = y_begin; y < y_end + L::UNDER_WAY - 1; y += ROWS_AHEAD) {
    T own[ROWS_AHEAD][S][L::N];
#pragma unroll
    for (int ahead = 0; ahead < ROWS_AHEAD; ++ahead) {
#pragma unroll
      for (int s = 0; s < S; ++s) {
        const int row = (y + ahead) * S - g.pad_h + s;
        load_columns<L::N, (WIDTH > 1)>(in + row * g.width, column, g.width,
            row >= 0 && row < row_limit, own[ahead][s]);
      }
    }
#pragma unroll
    for (int ahead = 0; ahead < ROWS_AHEAD; ++ahead) {
      // sum[m] belongs to output row y + ahead - m.
#pragma unroll
      for (int v = 0; v < L::V; ++v) {
#pragma unroll
        for (int m = L::UNDER_WAY - 1; m > 0; --m) { sum[m][v] = sum[m - 1][v]; }
        sum[0][v] = start;
      }
#pragma unroll
      for (int s = 0; s < S; ++s) {
        T window[L::SPAN];
        widen<L::P>(own[ahead][s], window);
#pragma unroll
        for (int ky = s; ky < K; ky += S) {
#pragma unroll
          for (int v = 0; v < L::V; ++v) {
#pragma unroll
            for (int kx = 0; kx < K; ++kx) {
              sum[ky / S][v] += filter[ky][kx] * window[v * S + kx];
            }
          }
        }
      }
      const int y_out = y + ahead - (L::UNDER_WAY - 1);
      if (writes && y_out >= y_begin && y_out < y_end) {
        store_columns(out + y_out * g.out_width, sum[L::UNDER_WAY - 1]);
      }
    }
  }
}

// ---------------------------------------------------------------------------
// Backward-data for stride S > 1, as a gather: out is the input's gradient.
//
// The taps that reach input column x are those with kx = x + pad (mod S), so a
// lane that owns one input column keeps only the taps of its own residue, and
// the rows' residues are unrolled: no tap is tested at run time.

template <typename T, int K, int S, int ROWS_AHEAD>
__global__ void __launch_bounds__(kWarp * kWarpsPerBlock)
walk_backward(const Shape g, const int rows, const int segments,
    const T* __restrict__ top_diff, const T* __restrict__ weight,
    T* __restrict__ bottom_diff) {
  enum { TAPS = (K + S - 1) / S, BELOW = S * (TAPS - 1),
         USEFUL = kWarp - BELOW };
  const int lane = threadIdx.x % kWarp;
  const int segment = blockIdx.x % segments;
  const unsigned strip =
      blockIdx.x / segments * kWarpsPerBlock + threadIdx.x / kWarp;
  const unsigned lanes_a_row = g.width + BELOW;
  const unsigned position = strip * USEFUL + lane;
  int plane = position / lanes_a_row;
  const int x = static_cast<int>(position % lanes_a_row) - BELOW;
  const bool exists = plane < g.num * g.channels;
  if (!exists) { plane = 0; }
  const bool writes = exists && lane >= BELOW && x >= 0;

  const int phase = x + g.pad_w + BELOW;
  const int column = phase / S - (TAPS - 1);
  const bool column_exists =
      exists && column >= 0 && column < g.out_width;
  const int channel = plane % g.channels;
  T filter[K][TAPS];
#pragma unroll
  for (int ky = 0; ky < K; ++ky) {
#pragma unroll
    for (int t = 0; t < TAPS; ++t) {
      const int kx = phase % S + S * t;
      filter[ky][t] = kx < K ? weight[(channel * K + ky) * K + kx] : T(0);
    }
  }

  const int y_begin = segment * rows;
  const int y_end = min(y_begin + rows, g.height);
  const int last = (y_end - 1 + g.pad_h) / S;
  top_diff += static_cast<size_t>(plane) * g.out_height * g.out_width;
  bottom_diff += static_cast<size_t>(plane) * g.height * g.width + x;

  // sum[t][r] belongs to input row (q + t) * S + r - pad.
  T sum[TAPS][S];
#pragma unroll
  for (int t = 0; t < TAPS; ++t) {
#pragma unroll
    for (int r = 0; r < S; ++r) { sum[t][r] = T(0); }
  }
  for (int q0 = (y_begin + g.pad_h) / S - (TAPS - 1); q0 <= last;
      q0 += ROWS_AHEAD) {
    T own[ROWS_AHEAD];
#pragma unroll
    for (int ahead = 0; ahead < ROWS_AHEAD; ++ahead) {
      const int q = q0 + ahead;
      own[ahead] = T(0);
      if (column_exists && q >= 0 && q < g.out_height && q <= last) {
        own[ahead] = top_diff[q * g.out_width + column];
      }
    }
#pragma unroll
    for (int ahead = 0; ahead < ROWS_AHEAD; ++ahead) {
#pragma unroll
      for (int t = 0; t < TAPS; ++t) {
        const T value = t ? lane_below(own[ahead], t * S) : own[ahead];
#pragma unroll
        for (int ky = 0; ky < K; ++ky) {
          sum[ky / S][ky % S] += filter[ky][t] * value;
        }
      }
#pragma unroll
      for (int r = 0; r < S; ++r) {
        const int y = (q0 + ahead) * S + r - g.pad_h;
        if (writes && y >= y_begin && y < y_end) {
          bottom_diff[y * g.width] = sum[0][r];
        }
#pragma unroll
        for (int t = 0; t + 1 < TAPS; ++t) { sum[t][r] = sum[t + 1][r]; }
        sum[TAPS - 1][r] = T(0);
      }
    }
  }
}

// The same where the rows of the input are aligned and padded by K / 2: a lane
// owns V columns of top_diff and the V * S columns of bottom_diff below them,
// which it stores at once, and every residue is known at compile time.
template <typename T, int K, int S, int WIDTH, int ROWS_AHEAD>
__global__ void __launch_bounds__(kWarp * kWarpsPerBlock)
walk_backward_aligned(const Shape g, const int rows, const int segments,
    const T* __restrict__ top_diff, const T* __restrict__ weight,
    T* __restrict__ bottom_diff) {
  enum {
    N = WIDTH, V = WIDTH / S, P = K / 2, TAPS = (K + S - 1) / S,
    LEFT = (K - 1 - P) / S,          // columns of top_diff before the own ones
    SPAN = LEFT + (N - 1 + P) / S + 1,
    BELOW = (LEFT + V - 1) / V, ABOVE = (SPAN - 1 - LEFT) / V,
    USEFUL = kWarp - BELOW - ABOVE
  };
  const int lane = threadIdx.x % kWarp;
  const int segment = blockIdx.x % segments;
  const unsigned strip =
      blockIdx.x / segments * kWarpsPerBlock + threadIdx.x / kWarp;
  const unsigned lanes_a_row = g.width / N + BELOW + ABOVE;
  const unsigned position = strip * USEFUL + lane;
  int plane = position / lanes_a_row;
  const int group = static_cast<int>(position % lanes_a_row) - BELOW;
  const bool exists = plane < g.num * g.channels;
  if (!exists) { plane = 0; }
  const bool writes = exists && lane >= BELOW && lane < kWarp - ABOVE &&
      group >= 0 && group < g.width / N;

  const int channel = plane % g.channels;
  T filter[K][K];
#pragma unroll
  for (int i = 0; i < K * K; ++i) {
    filter[i / K][i % K] = weight[channel * K * K + i];
  }

  const int y_begin = segment * rows;
  const int y_end = min(y_begin + rows, g.height);
  const int last = (y_end - 1 + g.pad_h) / S;
  top_diff += static_cast<size_t>(plane) * g.out_height * g.out_width;
  bottom_diff += static_cast<size_t>(plane) * g.height * g.width + group * N;

  // sum[t][r] belongs to input row (q + t) * S + r - pad.
  T sum[TAPS][S][N];
#pragma unroll
  for (int i = 0; i < TAPS * S * N; ++i) {
    sum[i / (S * N)][i / N % S][i % N] = T(0);
  }
  for (int q0 = (y_begin + g.pad_h) / S - (TAPS - 1); q0 <= last;
      q0 += ROWS_AHEAD) {
    T own[ROWS_AHEAD][V];
#pragma unroll
    for (int ahead = 0; ahead < ROWS_AHEAD; ++ahead) {
      const int q = q0 + ahead;
      load_columns<V, true>(top_diff + q * g.out_width, group * V,
          g.out_width, exists && q >= 0 && q < g.out_height && q <= last,
          own[ahead]);
    }
#pragma unroll
    for (int ahead = 0; ahead < ROWS_AHEAD; ++ahead) {
      T window[SPAN];
      widen<LEFT>(own[ahead], window);
#pragma unroll
      for (int n = 0; n < N; ++n) {
#pragma unroll
        for (int kx = (n + P) % S; kx < K; kx += S) {
          const T value = window[LEFT + (n + P - kx + K * S) / S - K];
#pragma unroll
          for (int ky = 0; ky < K; ++ky) {
            sum[ky / S][ky % S][n] += filter[ky][kx] * value;
          }
        }
      }
#pragma unroll
      for (int r = 0; r < S; ++r) {
        const int y = (q0 + ahead) * S + r - g.pad_h;
        if (writes && y >= y_begin && y < y_end) {
          store_columns(bottom_diff + y * g.width, sum[0][r]);
        }
#pragma unroll
        for (int n = 0; n < N; ++n) {
#pragma unroll
          for (int t = 0; t + 1 < TAPS; ++t) { sum[t][r][n] = sum[t + 1][r][n]; }
          sum[TAPS - 1][r][n] = T(0);
        }
      }
    }
  }
}

// ---------------------------------------------------------------------------
// Backward-weights and bias, in one pass over both tensors.
//
// A block belongs to one output channel and to one of `chunks` parts of that
// channel's work; its warps walk down strips that are packed over the batch.
// Sums go lane, warp, block, then through `partial` to the last block of the
// channel to finish, which adds them in the order of the chunks: the result
// does not depend on the order in which blocks run.

template <typename T, int K, int S, int WIDTH, int ROWS_AHEAD>
__global__ void
walk_weights(const Shape g, const int rows, const int segments,
    const int tasks, const int chunks, const T* __restrict__ in,
    const T* __restrict__ top_diff, T* weight_diff, T* bias_diff,
    T* partial, unsigned* finished) {
  typedef Strip<K, S, WIDTH> L;
  enum { SUMS = K * K + 1 };
  const int lane = threadIdx.x % kWarp;
  const int warp = threadIdx.x / kWarp;
  const int warps = blockDim.x / kWarp;
  const int chunk = blockIdx.x % chunks;
  const int channel = blockIdx.x / chunks;
  const int channels = g.channels * g.multiplier;
  const unsigned lanes_a_row = g.out_width / L::V + L::BELOW + L::ABOVE;

  T total[SUMS];
#pragma unroll
  for (int i = 0; i < SUMS; ++i) { total[i] = T(0); }

  for (int task = chunk * warps + warp; task < tasks; task += chunks * warps) {
    const int segment = task % segments;
    const unsigned position = task / segments * L::USEFUL + lane;
    const int image = position / lanes_a_row;
    const int group = static_cast<int>(position % lanes_a_row) - L::BELOW;
    const bool exists = image < g.num;
    const bool counts = exists && lane >= L::BELOW &&
        lane < kWarp - L::ABOVE && group >= 0 && group < g.out_width / L::V;
    const int y_begin = segment * rows;
    const int y_end = min(y_begin + rows, g.out_height);
    const int row_limit =
        exists ? min(g.height, (y_end - 1) * S - g.pad_h + K) : 0;
    const int column = group * L::N - (g.pad_w - L::P);
    const T* const image_in = in + g.height * g.width * static_cast<size_t>(
        image * g.channels + channel / g.multiplier);
    const T* const image_diff = top_diff + group * L::V +
        g.out_height * g.out_width *
        static_cast<size_t>(image * channels + channel);

    T diff[L::UNDER_WAY][L::V];  // diff[m] is row y + ahead - m
#pragma unroll
    for (int i = 0; i < L::UNDER_WAY * L::V; ++i) {
      diff[i / L::V][i % L::V] = T(0);
    }
    for (int y = y_begin; y < y_end + L::UNDER_WAY - 1; y += ROWS_AHEAD) {
      T own[ROWS_AHEAD][S][L::N];
      T next[ROWS_AHEAD][L::V];
#pragma unroll
      for (int ahead = 0; ahead < ROWS_AHEAD; ++ahead) {
#pragma unroll
        for (int s = 0; s < S; ++s) {
          const int row = (y + ahead) * S - g.pad_h + s;
          load_columns<L::N, (WIDTH > 1)>(image_in + row * g.width, column,
              g.width, row >= 0 && row < row_limit, own[ahead][s]);
        }
        load_columns<L::V, true>(image_diff + (y + ahead) * g.out_width, 0, 1,
            counts && y + ahead < y_end, next[ahead]);
      }
#pragma unroll
      for (int ahead = 0; ahead < ROWS_AHEAD; ++ahead) {
#pragma unroll
        for (int v = 0; v < L::V; ++v) {
#pragma unroll
          for (int m = L::UNDER_WAY - 1; m > 0; --m) {
            diff[m][v] = diff[m - 1][v];
          }
          diff[0][v] = next[ahead][v];
          total[K * K] += next[ahead][v];
        }
#pragma unroll
        for (int s = 0; s < S; ++s) {
          T window[L::SPAN];
          widen<L::P>(own[ahead][s], window);
#pragma unroll
          for (int ky = s; ky < K; ky += S) {
#pragma unroll
            for (int kx = 0; kx < K; ++kx) {
#pragma unroll
              for (int v = 0; v < L::V; ++v) {
                total[ky * K + kx] += diff[ky / S][v] * window[v * S + kx];
              }
            }
          }
        }
      }
    }
  }

  __shared__ T block_total[kWarp][SUMS];
#pragma unroll
  for (int i = 0; i < SUMS; ++i) {
    const T sum = warp_sum(total[i]);
    if (lane == 0) { block_total[warp][i] = sum; }
  }
  __syncthreads();
  if (threadIdx.x >= kWarp) { return; }

  for (int i = lane; i < SUMS; i += kWarp) {
    T sum = T(0);
    for (int w = 0; w < warps; ++w) { sum += block_total[w][i]; }
    block_total[0][i] = sum;
    if (chunks > 1) { partial[blockIdx.x * SUMS + i] = sum; }
  }
  if (chunks > 1) {
    __threadfence();
    warp_barrier();
    unsigned before = 0;
    if (lane == 0) { before = atomicInc(&finished[channel], chunks - 1); }
    if (lane_zero(before) != chunks - 1) { return; }
    __threadfence();
    for (int i = lane; i < SUMS; i += kWarp) {
      const volatile T* part = partial + channel * chunks * SUMS + i;
      T sum = T(0);
      for (int c = 0; c < chunks; ++c) { sum += part[c * SUMS]; }
      block_total[0][i] = sum;
    }
  }
  for (int i = lane; i < SUMS; i += kWarp) {
    if (i < K * K) {
      if (weight_diff) { weight_diff[channel * K * K + i] += block_total[0][i]; }
    } else if (bias_diff) {
      bias_diff[channel] += block_total[0][i];
    }
  }
}

// ---------------------------------------------------------------------------
// Generic kernels: any kernel, stride, padding, dilation and multiplier.

template <typename T>
__global__ void generic_forward(const Shape g, const int count,
    const T* __restrict__ in, const T* __restrict__ weight,
    const T* __restrict__ bias, T* __restrict__ out) {
  for (int index = blockIdx.x * blockDim.x + threadIdx.x; index < count;
      index += blockDim.x * gridDim.x) {
    const int x = index % g.out_width;
    const int y = index / g.out_width % g.out_height;
    const int plane = index / g.out_width / g.out_height;
    const int channel = plane % (g.channels * g.multiplier);
    const T* const plane_in =
        in + static_cast<size_t>(plane / g.multiplier) * g.height * g.width;
    const T* tap = weight + channel * g.kernel_h * g.kernel_w;
    T sum = bias ? bias[channel] : T(0);
    for (int ky = 0; ky < g.kernel_h; ++ky) {
      const int row = y * g.stride_h - g.pad_h + ky * g.dilation_h;
      for (int kx = 0; kx < g.kernel_w; ++kx, ++tap) {
        const int column = x * g.stride_w - g.pad_w + kx * g.dilation_w;
        if (row >= 0 && row < g.height && column >= 0 && column < g.width) {
          sum += *tap * plane_in[row * g.width + column];
        }
      }
    }
    out[index] = sum;
  }
}

template <typename T>
__global__ void generic_backward(const Shape g, const int count,
    const T* __restrict__ top_diff, const T* __restrict__ weight,
    T* __restrict__ bottom_diff) {
  for (int index = blockIdx.x * blockDim.x + threadIdx.x; index < count;
      index += blockDim.x * gridDim.x) {
    const int x = index % g.width + g.pad_w;
    const int y = index / g.width % g.height + g.pad_h;
    const int plane = index / g.width / g.height;
    const int first = plane * g.multiplier;  // its first output plane
    T sum = T(0);
    for (int m = 0; m < g.multiplier; ++m) {
      const T* const plane_diff = top_diff +
          static_cast<size_t>(first + m) * g.out_height * g.out_width;
      const T* tap = weight + (first + m) % (g.channels * g.multiplier) *
          g.kernel_h * g.kernel_w;
      for (int ky = 0; ky < g.kernel_h; ++ky) {
        const int row = y - ky * g.dilation_h;
        for (int kx = 0; kx < g.kernel_w; ++kx, ++tap) {
          const int column = x - kx * g.dilation_w;
          if (row >= 0 && row % g.stride_h == 0 &&
              row / g.stride_h < g.out_height &&
              column >= 0 && column % g.stride_w == 0 &&
              column / g.stride_w < g.out_width) {
            sum += *tap * plane_diff[row / g.stride_h * g.out_width +
                                     column / g.stride_w];
          }
        }
      }
    }
    bottom_diff[index] = sum;
  }
}

// A block adds up one weight, or one bias, over the batch and the plane.
template <typename T>
__global__ void generic_weights(const Shape g, const T* __restrict__ in,
    const T* __restrict__ top_diff, T* weight_diff, T* bias_diff) {
  const int taps = g.kernel_h * g.kernel_w;
  const int channels = g.channels * g.multiplier;
  const int channel = blockIdx.x / (taps + 1);
  const int tap = blockIdx.x % (taps + 1);  // the last one is the bias
  T* const result = tap < taps ?
      (weight_diff ? weight_diff + channel * taps + tap : NULL) :
      (bias_diff ? bias_diff + channel : NULL);
  if (!result) { return; }
  const int down = tap / g.kernel_w * g.dilation_h - g.pad_h;
  const int right = tap % g.kernel_w * g.dilation_w - g.pad_w;
  const int area = g.out_height * g.out_width;
  T sum = T(0);
  for (int n = 0; n < g.num; ++n) {
    const T* const image_diff = top_diff +
        static_cast<size_t>(n * channels + channel) * area;
    const T* const image_in = in + static_cast<size_t>(
        n * g.channels + channel / g.multiplier) * g.height * g.width;
    for (int i = threadIdx.x; i < area; i += blockDim.x) {
      const int row = i / g.out_width * g.stride_h + down;
      const int column = i % g.out_width * g.stride_w + right;
      if (tap == taps) {
        sum += image_diff[i];
      } else if (row >= 0 && row < g.height &&
                 column >= 0 && column < g.width) {
        sum += image_diff[i] * image_in[row * g.width + column];
      }
    }
  }
  __shared__ T warp_total[kWarp];
  sum = warp_sum(sum);
  if (threadIdx.x % kWarp == 0) { warp_total[threadIdx.x / kWarp] = sum; }
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int w = 1; w < blockDim.x / kWarp; ++w) { sum += warp_total[w]; }
    *result += sum;
  }
}

// ---------------------------------------------------------------------------
// The choice.
//
// The walks are bound by memory where the machine is full, and by the length
// of one warp's walk where it is not. A walk over `rows` rows costs
//
//     rows + the rows that the neighbouring segment reads too + kStartRows
//
// (the last for index arithmetic, loading the filter and the first wait for
// memory), and the machine takes max(1, warps / resident) + 1/2 such walks one
// after the other; the half is the uneven end. Planes are cut into segments so
// that the product is least. For backward-weights a block adds kFinishRows for
// its reduction, and a channel kHandOverRows where several blocks share it.

enum { kResidentWarps = 40, kStartRows = 8, kFinishRows = 12,
       kHandOverRows = 16, kMaxChunks = 64 };

inline int ceil_div(int a, int b) { return (a + b - 1) / b; }

inline double turns(double warps, int processors) {
  const double filled = warps / (processors * kResidentWarps);
  return (filled > 1 ? filled : 1) + 0.5;
}

// A direction's strips: how many for `packed` planes side by side.
template <int BORDER>
inline int strips_of(int packed, int groups) {
  const int64_t lanes = static_cast<int64_t>(packed) * (groups + BORDER);
  return static_cast<int>((lanes - BORDER - 1) / (kWarp - BORDER)) + 1;
}

// Rows a segment, for `strips` strips of planes of `height` rows.
inline int choose_rows(int strips, int height, int kernel, int stride,
    int processors) {
  int best_rows = height;
  double best = -1;
  for (int segments = 1; segments <= height; ++segments) {
    const int rows = ceil_div(height, segments);
    const double walk = (rows - 1) * stride + kernel + kStartRows;
    const double cost = walk *
        turns(static_cast<double>(strips) * ceil_div(height, rows),
              processors);
    if (best < 0 || cost < best) { best = cost; best_rows = rows; }
  }
  return best_rows;
}

inline void choose_weights(int strips, int channels, const Shape& g,
    int processors, Plan* plan) {
  double best = -1;
  for (int segments = 1; segments <= g.out_height; ++segments) {
    const int rows = ceil_div(g.out_height, segments);
    const double walk = (rows - 1) * g.stride_h + g.kernel_h + kStartRows;
    const int tasks = strips * ceil_div(g.out_height, rows);
    for (int warps = 1; warps <= 16; warps *= 2) {
      for (int chunks = 1; chunks <= kMaxChunks; ++chunks) {
        const double cost = turns(
            static_cast<double>(channels) * chunks * warps, processors) *
            (walk * ceil_div(tasks, chunks * warps) + kFinishRows) +
            (chunks > 1 ? kHandOverRows : 0);
        if (best < 0 || cost < best) {
          best = cost;
          plan->weight_rows = rows;
          plan->weight_warps = warps;
          plan->weight_chunks = chunks;
        }
      }
    }
  }
}

// Calls task.run<K, S, WIDTH>() for the specialisation that a plan names.
template <typename Task>
inline void specialise(const Shape& g, int width, Task* task) {
  switch (g.kernel_h * 100 + g.stride_h * 10 + width) {
    case 311: task->template run<3, 1, 1>(); break;
    case 312: task->template run<3, 1, 2>(); break;
    case 314: task->template run<3, 1, 4>(); break;
    case 321: task->template run<3, 2, 1>(); break;
    case 322: task->template run<3, 2, 2>(); break;
    case 324: task->template run<3, 2, 4>(); break;
    case 511: task->template run<5, 1, 1>(); break;
    case 512: task->template run<5, 1, 2>(); break;
    case 514: task->template run<5, 1, 4>(); break;
    case 521: task->template run<5, 2, 1>(); break;
    case 522: task->template run<5, 2, 2>(); break;
    case 524: task->template run<5, 2, 4>(); break;
  }
}

// The layouts below are functions of (K, S, WIDTH), so that the plan and the
// launches count alike.

template <int K, int S, int WIDTH>
struct ForwardLayout {
  typedef Strip<K, S, WIDTH> L;
  enum { BORDER = L::BELOW + L::ABOVE };
  static int strips(const Shape& g, int packed) {
    return strips_of<BORDER>(packed, g.out_width / L::V);
  }
};

template <int K, int S, int WIDTH>
struct BackwardLayout {
  enum {
    V = WIDTH > 1 ? WIDTH / S : 1,
    GROUP = WIDTH > 1 ? WIDTH : 1,
    LEFT = (K - 1 - K / 2) / S,
    RIGHT = (WIDTH - 1 + K / 2) / S,
    BORDER = WIDTH > 1 ? (LEFT + V - 1) / V + RIGHT / V
                       : S * ((K + S - 1) / S - 1)
  };
  static int strips(const Shape& g) {
    return strips_of<BORDER>(g.num * g.channels, g.width / GROUP);
  }
};

// Backward-data of stride 1 is the forward pass of the mirrored filter.
inline Shape mirrored(const Shape& g) {
  Shape m = g;
  std::swap(m.height, m.out_height);
  std::swap(m.width, m.out_width);
  m.pad_h = g.kernel_h - 1 - g.pad_h;
  m.pad_w = g.kernel_w - 1 - g.pad_w;
  return m;
}

struct PlanTask {
  const Shape& g;
  int processors;
  Plan* plan;

  PlanTask(const Shape& shape, int count, Plan* result)
      : g(shape), processors(count), plan(result) {}

  template <int K, int S, int WIDTH>
  void run() {
    typedef ForwardLayout<K, S, WIDTH> Forward;
    const int channels = g.channels * g.multiplier;
    plan->forward_rows = choose_rows(Forward::strips(g, g.num * channels),
        g.out_height, K, S, processors);
    if (S == 1) {
      plan->backward_rows = choose_rows(
          Forward::strips(mirrored(g), g.num * channels), g.height, K, S,
          processors);
    } else {
      plan->backward_rows = choose_rows(
          BackwardLayout<K, S, WIDTH>::strips(g), g.height, K, 1, processors);
    }
    choose_weights(Forward::strips(g, g.num), channels, g, processors, plan);
  }
};

// The widest load that every row's start is aligned for.
inline int choose_width(const Shape& g) {
  if (g.pad_w != g.kernel_w / 2) { return 1; }
  return g.width % 4 == 0 ? 4 : g.width % 2 == 0 ? 2 : 1;
}

inline bool specialised(const Shape& g) {
  const int64_t lanes = static_cast<int64_t>(g.num) * g.channels *
      g.multiplier * (std::max(g.width, g.out_width) + kWarp);
  return g.kernel_h == g.kernel_w && (g.kernel_h == 3 || g.kernel_h == 5) &&
      g.stride_h == g.stride_w && (g.stride_h == 1 || g.stride_h == 2) &&
      g.dilation_h == 1 && g.dilation_w == 1 && lanes < INT32_MAX;
}

Plan make_plan(const Shape& g, int processors) {
  Plan plan = Plan();
  if (specialised(g)) {
    plan.width = choose_width(g);
    PlanTask task(g, processors, &plan);
    specialise(g, plan.width, &task);
  }
  return plan;
}

// ---------------------------------------------------------------------------
// The launches.

inline bool aligned(const void* a, const void* b) {
  return (reinterpret_cast<uintptr_t>(a) | reinterpret_cast<uintptr_t>(b)) %
      16 == 0;
}

inline int blocks_for(int strips, int segments) {
  return ceil_div(strips, kWarpsPerBlock) * segments;
}

// Elements of each tensor that a lane asks for before it uses the first.
#ifndef DEPTHWISE_IN_FLIGHT
#define DEPTHWISE_IN_FLIGHT 8
#endif
template <int ELEMENTS>
struct Ahead {
  enum { ROWS = DEPTHWISE_IN_FLIGHT > ELEMENTS ?
                DEPTHWISE_IN_FLIGHT / ELEMENTS : 1 };
};

template <typename T, bool FLIP>
struct ForwardTask {
  const Shape& g;
  int rows;
  const T *in, *weight, *bias;
  T* out;
  cudaStream_t stream;

  ForwardTask(const Shape& shape, int r, const T* i, const T* w, const T* b,
      T* o, cudaStream_t s)
      : g(shape), rows(r), in(i), weight(w), bias(b), out(o), stream(s) {}

  template <int K, int S, int WIDTH>
  void run() {
    const int segments = ceil_div(g.out_height, rows);
    const int strips = ForwardLayout<K, S, WIDTH>::strips(
        g, g.num * g.channels * g.multiplier);
    walk_forward<T, K, S, WIDTH, FLIP,
                 Ahead<Strip<K, S, WIDTH>::N * S>::ROWS>
        <<<blocks_for(strips, segments), kWarp * kWarpsPerBlock, 0, stream>>>(
            g, rows, segments, in, weight, bias, out);
  }
};

template <typename T>
struct BackwardTask {
  const Shape& g;
  int rows;
  const T *top_diff, *weight;
  T* bottom_diff;
  cudaStream_t stream;

  BackwardTask(const Shape& shape, int r, const T* t, const T* w, T* b,
      cudaStream_t s)
      : g(shape), rows(r), top_diff(t), weight(w), bottom_diff(b), stream(s) {}

  template <int K, int S, int WIDTH>
  void run() { launch<K, S, WIDTH>(Choose<S == 1, (WIDTH > 1)>()); }

 private:
  template <bool MIRRORED, bool WIDE> struct Choose {};

  template <int K, int S, int WIDTH, bool WIDE>
  void launch(Choose<true, WIDE>) {
    const Shape m = mirrored(g);
    ForwardTask<T, true> task(m, rows, top_diff, weight, NULL, bottom_diff,
        stream);
    task.template run<K, S, WIDTH>();
  }
  template <int K, int S, int WIDTH>
  void launch(Choose<false, false>) {
    const int segments = ceil_div(g.height, rows);
    const int strips = BackwardLayout<K, S, WIDTH>::strips(g);
    walk_backward<T, K, S, Ahead<2>::ROWS>
        <<<blocks_for(strips, segments), kWarp * kWarpsPerBlock, 0, stream>>>(
            g, rows, segments, top_diff, weight, bottom_diff);
  }
  template <int K, int S, int WIDTH>
  void launch(Choose<false, true>) {
    const int segments = ceil_div(g.height, rows);
    const int strips = BackwardLayout<K, S, WIDTH>::strips(g);
    walk_backward_aligned<T, K, S, WIDTH, Ahead<WIDTH>::ROWS>
        <<<blocks_for(strips, segments), kWarp * kWarpsPerBlock, 0, stream>>>(
            g, rows, segments, top_diff, weight, bottom_diff);
  }
};

template <typename T>
struct WeightTask {
  const Shape& g;
  const Plan& plan;
  const T *in, *top_diff;
  T *weight_diff, *bias_diff, *partial;
  unsigned* finished;
  cudaStream_t stream;

  WeightTask(const Shape& shape, const Plan& p, const T* i, const T* t, T* w,
      T* b, T* part, unsigned* f, cudaStream_t s)
      : g(shape), plan(p), in(i), top_diff(t), weight_diff(w), bias_diff(b),
        partial(part), finished(f), stream(s) {}

  template <int K, int S, int WIDTH>
  void run() {
    typedef Strip<K, S, WIDTH> L;
    const int segments = ceil_div(g.out_height, plan.weight_rows);
    const int tasks =
        ForwardLayout<K, S, WIDTH>::strips(g, g.num) * segments;
    walk_weights<T, K, S, WIDTH, Ahead<L::N * S + L::V>::ROWS>
        <<<g.channels * g.multiplier * plan.weight_chunks,
           kWarp * plan.weight_warps, 0, stream>>>(
            g, plan.weight_rows, segments, tasks, plan.weight_chunks, in,
            top_diff, weight_diff, bias_diff, partial, finished);
  }
};

inline int generic_blocks(int count) {
  return std::min(ceil_div(count, kGenericThreads), 65535);
}

template <typename T>
void forward(const Shape& g, const Plan& plan, const T* in, const T* weight,
    const T* bias, T* out, cudaStream_t stream) {
  if (plan.width > 0) {
    ForwardTask<T, false> task(g, plan.forward_rows, in, weight, bias, out,
        stream);
    specialise(g, aligned(in, out) ? plan.width : 1, &task);
  } else {
    const int count =
        g.num * g.channels * g.multiplier * g.out_height * g.out_width;
    generic_forward<T><<<generic_blocks(count), kGenericThreads, 0, stream>>>(
        g, count, in, weight, bias, out);
  }
}

template <typename T>
void backward_data(const Shape& g, const Plan& plan, const T* top_diff,
    const T* weight, T* bottom_diff, cudaStream_t stream) {
  if (plan.width > 0 && g.multiplier == 1) {
    BackwardTask<T> task(g, plan.backward_rows, top_diff, weight, bottom_diff,
        stream);
    specialise(g, aligned(top_diff, bottom_diff) ? plan.width : 1, &task);
  } else {
    const int count = g.num * g.channels * g.height * g.width;
    generic_backward<T><<<generic_blocks(count), kGenericThreads, 0, stream>>>(
        g, count, top_diff, weight, bottom_diff);
  }
}

// Adds to weight_diff and bias_diff; either may be NULL. The workspace has
// workspace_sums(g, plan) elements, and as many zeros as there are output
// channels in `finished`, which are zeros again afterwards.
template <typename T>
void backward_weights(const Shape& g, const Plan& plan, const T* in,
    const T* top_diff, T* weight_diff, T* bias_diff, T* partial,
    unsigned* finished, cudaStream_t stream) {
  if (plan.width > 0) {
    WeightTask<T> task(g, plan, in, top_diff, weight_diff, bias_diff, partial,
        finished, stream);
    specialise(g, aligned(in, top_diff) ? plan.width : 1, &task);
  } else {
    const int sums =
        g.channels * g.multiplier * (g.kernel_h * g.kernel_w + 1);
    generic_weights<T><<<sums, kGenericThreads, 0, stream>>>(
        g, in, top_diff, weight_diff, bias_diff);
  }
}

}  // namespace depthwise

#ifndef DEPTHWISE_CONV_STANDALONE
// ---------------------------------------------------------------------------
// The layer.
#endif  // DEPTHWISE_CONV_STANDALONE

}  // namespace caffe
