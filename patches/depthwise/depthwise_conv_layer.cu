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
// How they work. A block takes a tile: a few whole planes, or some rows of one
// plane. Either way the tile is one contiguous stretch of memory, as is what it
// needs of the other tensor. So both are moved between device and shared memory
// as plain runs of 16-byte words, whatever the width of a row, and each element
// crosses once (the rows where two tiles of a plane meet: twice). In shared
// memory a thread walks down a few neighbouring columns. It keeps its filter
// and the sums of the rows under way in registers, and collects what it has
// finished in a second buffer, which is stored as the first was loaded. Columns
// outside the plane are read too and masked to zero, rows outside it are read
// from a piece of zeros: both cost less than a branch.

#ifdef DEPTHWISE_CONV_STANDALONE
#include "depthwise_conv_layer.hpp"
#else
#include "caffe/layers/depthwise_conv_layer.hpp"
#endif

#include <cuda_runtime.h>
#include <stdint.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace caffe {
namespace depthwise {

enum {
  kWarp = 32,
  kMaxThreads = 256,
  kGenericThreads = 256,
  kColumns = 5,        // output columns a thread; odd, so that banks differ
  kGatherColumns = 3,  // the same, of top_diff, where stride > 1 is undone
  kSlack = 8,          // elements around a run that may be read, and masked
  kZeros = 16,         // what is read in the place of a row
  kMaxStages = 4,      // tiles of a block that are on their way
  kAtOnce = 10  // sums of a weight gradient that are joined at once
};

// ---------------------------------------------------------------------------
// What differs between toolkits and between GPUs.

template <typename T>
__device__ __forceinline__ T lane_above(T value, int hop) {
#if CUDART_VERSION >= 9000
  return __shfl_down_sync(0xffffffffu, value, hop);
#else
  return __shfl_down(value, hop);
#endif
}

// The sum over `lanes` neighbouring lanes (a power of two), in the first.
template <typename T>
__device__ __forceinline__ T lanes_sum(T value, int lanes) {
  for (int hop = lanes / 2; hop > 0; hop /= 2) {
    value += lane_above(value, hop);
  }
  return value;
}

// Words of sixteen bytes move from device to shared memory and back: from
// Hopper on as one bulk copy that a single thread asks for, from Ampere on
// without a detour through registers, and before by ordinary loads and stores.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900 && CUDART_VERSION >= 12000
#define DEPTHWISE_BULK_COPY
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
#define DEPTHWISE_ASYNC_COPY
#endif

// Threads that take part in a load.
__device__ __forceinline__ bool loads() {
#ifdef DEPTHWISE_BULK_COPY
  return threadIdx.x == 0;
#else
  return true;
#endif
}

#if defined(DEPTHWISE_BULK_COPY) || defined(DEPTHWISE_ASYNC_COPY)
__device__ __forceinline__ unsigned shared_address(const void* p) {
  return static_cast<unsigned>(__cvta_generic_to_shared(p));
}
#endif

// Tells when `RUNS` loads have arrived; lies in shared memory. All threads of
// the block call prepare, with a barrier after it, and wait once for each use,
// with phase 0, 1, 0 ... Those that loads() names call load.
template <int RUNS>
struct Arrival {
  uint64_t barrier;

  __device__ __forceinline__ void prepare() {
#ifdef DEPTHWISE_BULK_COPY
    if (threadIdx.x == 0) {
      asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::
          "r"(shared_address(&barrier)), "r"(static_cast<int>(RUNS))
          : "memory");
      asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
#endif
  }
  __device__ __forceinline__ void load(int4* shared, const int4* global,
      int words) {
#if defined(DEPTHWISE_BULK_COPY)
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::
        "r"(shared_address(&barrier)), "r"(words * 16) : "memory");
    if (words > 0) {
      asm volatile("cp.async.bulk.shared::cluster.global.mbarrier"
          "::complete_tx::bytes [%0], [%1], %2, [%3];" ::
          "r"(shared_address(shared)), "l"(global), "r"(words * 16),
          "r"(shared_address(&barrier)) : "memory");
    }
#elif defined(DEPTHWISE_ASYNC_COPY)
    for (int i = threadIdx.x; i < words; i += blockDim.x) {
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::
          "r"(shared_address(shared + i)), "l"(global + i) : "memory");
    }
#else
#pragma unroll 4
    for (int i = threadIdx.x; i < words; i += blockDim.x) {
      shared[i] = global[i];
    }
#endif
  }
  __device__ __forceinline__ void wait(int phase) {
#if defined(DEPTHWISE_BULK_COPY)
    __syncthreads();
    asm volatile("{\n.reg .pred arrived;\n"
        "again:\n"
        "mbarrier.try_wait.parity.shared::cta.b64 arrived, [%0], %1;\n"
        "@!arrived bra again;\n}" ::
        "r"(shared_address(&barrier)), "r"(phase) : "memory");
#elif defined(DEPTHWISE_ASYNC_COPY)
    asm volatile("cp.async.wait_all;" ::: "memory");
    __syncthreads();
#else
    __syncthreads();
#endif
  }
};

// Stores words once all threads have written them. What was stored may be
// overwritten after a stored() and a barrier.
__device__ __forceinline__ void store_words(int4* global, const int4* shared,
    int words) {
#ifdef DEPTHWISE_BULK_COPY
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  if (threadIdx.x == 0 && words > 0) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;"
        :: "l"(global), "r"(shared_address(shared)), "r"(words * 16)
        : "memory");
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
  }
#else
  __syncthreads();
#pragma unroll 4
  for (int i = threadIdx.x; i < words; i += blockDim.x) {
    global[i] = shared[i];
  }
#endif
}

__device__ __forceinline__ void stored() {
#ifdef DEPTHWISE_BULK_COPY
  if (threadIdx.x == 0) {
    asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
  }
#endif
}

// What another block has written during this launch.
template <typename T>
__device__ __forceinline__ T load_fresh(const T* from) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 350 && !defined(__clang__)
  return __ldcg(from);
#else
  return *const_cast<const volatile T*>(from);
#endif
}

template <typename T>
__device__ __forceinline__ T masked(T value, unsigned mask);
template <> __device__ __forceinline__ float masked(float value,
    unsigned mask) {
  return __uint_as_float(__float_as_uint(value) & mask);
}
template <> __device__ __forceinline__ double masked(double value,
    unsigned mask) {
  return __hiloint2double(__double2hiint(value) & mask,
                          __double2loint(value) & mask);
}

// n / d by one multiplication, for 0 <= n < 2^31.
struct Divisor {
  unsigned divisor, factor, shift;

  explicit Divisor(unsigned d) : divisor(d), shift(0) {
    while ((1u << shift) < d) { ++shift; }
    factor = static_cast<unsigned>(
        ((static_cast<uint64_t>(1) << 32) * ((1u << shift) - d)) / d + 1);
  }
  __device__ __forceinline__ int divide(unsigned n) const {
    return (__umulhi(n, factor) + n) >> shift;
  }
  __device__ __forceinline__ int modulo(unsigned n) const {
    return n - divide(n) * divisor;
  }
};

// ---------------------------------------------------------------------------
// Moving contiguous runs.

// A run lies in shared memory as far past a 16-byte boundary as it does in
// device memory, so that it can be moved by words.

// Elements of shared memory for a run: at most a word on either side of it, and
// room to read a little too far.
template <typename T>
__host__ __device__ inline int run_space(int count) {
  const int per_word = 16 / sizeof(T);
  return (count / per_word + 2) * per_word + kSlack;
}

template <typename T>
__device__ __forceinline__ int past_boundary(const T* global) {
  return reinterpret_cast<uintptr_t>(global) / sizeof(T) % (16 / sizeof(T));
}

// Starts to load `count` elements from `global` on, of a tensor that lies in
// [begin, end). All words that hold any of them are loaded, but none that
// reaches out of the tensor: what is in those is loaded by itself.
template <typename T, int RUNS>
__device__ __forceinline__ void load_run(const T* global, int count,
    const T* begin, const T* end, T* room, Arrival<RUNS>* arrival) {
  if (!loads()) { return; }
  const int per_word = 16 / sizeof(T);
  const int past = past_boundary(global);
  int first = -past;  // of the words, from the run's beginning
  int last = first + (past + count + per_word - 1) / per_word * per_word;
  if (global + first < begin) { first += per_word; }
  if (global + last > end) { last -= per_word; }
  last = max(first, last);
  T* const to = room + past;
  arrival->load(reinterpret_cast<int4*>(to + first),
      reinterpret_cast<const int4*>(global + first),
      (last - first) / per_word);
#pragma unroll 1
  for (int i = 0; i < min(first, count); ++i) { to[i] = global[i]; }
#pragma unroll 1
  for (int i = max(last, 0); i < count; ++i) { to[i] = global[i]; }
}

// Where a run's elements lie in its room.
template <typename T>
__device__ __forceinline__ T* place_run(const T* global, T* room) {
  return room + past_boundary(global);
}

template <typename T>
__device__ __forceinline__ void store_run(T* __restrict__ global, int count,
    const T* run) {
  const int per_word = 16 / sizeof(T);
  const int head =
      min((per_word - past_boundary(global)) % per_word, count);
  const int words = (count - head) / per_word;
  store_words(reinterpret_cast<int4*>(global + head),
      reinterpret_cast<const int4*>(run + head), words);
  const int i = threadIdx.x;
  if (i < count - words * per_word) {
    const int at = i < head ? i : i + words * per_word;
    global[at] = run[at];
  }
}

// How the planes of a tensor are cut into tiles, and tiles into the columns
// that threads walk down.
struct Cut {
  int planes;          // whole planes a tile; 1 where planes are cut
  int rows;            // rows a tile; the plane's height unless it is cut
  int walk;            // rows a thread
  Divisor tiles;       // tiles a plane
  Divisor walks;       // walks from a tile's top to its bottom
  Divisor groups;      // groups of columns a row
  Divisor channels;
  Divisor multiplier;

  Cut(const TilePlan& plan, int height, int group_count, const Shape& g)
      : planes(plan.planes), rows(plan.rows), walk(plan.walk),
        tiles((height + plan.rows - 1) / plan.rows),
        walks((plan.rows + plan.walk - 1) / plan.walk), groups(group_count),
        channels(g.channels * g.multiplier), multiplier(g.multiplier) {}
};

// The walk that a thread takes: its plane and group of columns, and its rows.
struct Walk {
  int plane, group, y_first, rows;

  __device__ __forceinline__ Walk(const Cut& cut, int i, int y_begin,
      int y_end) {
    const int line = cut.groups.divide(i);
    group = i - line * cut.groups.divisor;
    plane = cut.walks.divide(line);
    y_first = y_begin + (line - plane * cut.walks.divisor) * cut.walk;
    rows = max(0, min(cut.walk, y_end - y_first));
  }
};

// A row of a run as a thread reads it: SPAN elements, of which the first and
// the last EDGE may lie outside the plane and are then masked to zero. A row
// that does not exist is read from `zeros`.
template <typename T, int SPAN, int EDGE>
struct Window {
  unsigned mask[SPAN];

  __device__ __forceinline__ Window(int column, int begin, int end) {
#pragma unroll
    for (int i = 0; i < SPAN; ++i) {
      mask[i] = column + i >= begin && column + i < end ? ~0u : 0u;
      asm("" : "+r"(mask[i]));  // or the compiler compares again at every use
    }
  }
  __device__ __forceinline__ void read(const T* from, T (&value)[SPAN]) const {
#pragma unroll
    for (int i = 0; i < SPAN; ++i) {
      value[i] = i < EDGE || i >= SPAN - EDGE ? masked(from[i], mask[i])
                                              : from[i];
    }
  }
};

// The block's shared memory: zeros, some slack, and room for runs.
template <typename T>
struct Memory {
  T *zeros, *room;

  __device__ __forceinline__ Memory() {
    extern __shared__ int4 dynamic_shared_memory[];
    zeros = reinterpret_cast<T*>(dynamic_shared_memory);
    room = zeros + kZeros + kSlack;
    for (int i = threadIdx.x; i < kZeros; i += blockDim.x) { zeros[i] = T(0); }
  }
};

// One tile of the tensor that is cut, and the rows of the other tensor that
// belong to it.
struct Tile {
  int first, planes;           // of the planes
  int y_begin, y_end;          // of the rows
  int row_begin, row_count;    // of the other tensor's rows
  int other_first, other_planes;

  __device__ __forceinline__ Tile(const Cut& cut, int index, int all_planes,
      int height) {
    const int group = cut.tiles.divide(index);
    first = group * cut.planes;
    planes = min(cut.planes, all_planes - first);
    y_begin = (index - group * cut.tiles.divisor) * cut.rows;
    y_end = min(y_begin + cut.rows, height);
    other_first = cut.multiplier.divide(first);
    other_planes = cut.multiplier.divide(first + planes - 1) - other_first + 1;
  }
  __device__ __forceinline__ void other_rows(int begin, int end, int height) {
    row_begin = max(0, begin);
    row_count = max(0, min(height, end) - row_begin);
  }
  // The runs' beginnings, from the tensors' beginnings, and lengths.
  __device__ __forceinline__ size_t begin(int area, int width) const {
    return static_cast<size_t>(first) * area + y_begin * width;
  }
  __device__ __forceinline__ int count(int area, int width) const {
    return (planes - 1) * area + (y_end - y_begin) * width;
  }
  __device__ __forceinline__ size_t other_begin(int area, int width) const {
    return static_cast<size_t>(other_first) * area + row_begin * width;
  }
  __device__ __forceinline__ int other_count(int area, int width) const {
    return (other_planes - 1) * area + row_count * width;
  }
};

// A tile of the convolution's output: forward and backward-weights.
template <int K, int S>
__device__ __forceinline__ Tile output_tile(const Shape& g, const Cut& cut,
    int index, int planes) {
  Tile tile(cut, index, planes, g.out_height);
  tile.other_rows(tile.y_begin * S - g.pad_h,
      (tile.y_end - 1) * S - g.pad_h + K, g.height);
  return tile;
}

// A tile of its input: backward-data.
template <int K, int S>
__device__ __forceinline__ Tile input_tile(const Shape& g, const Cut& cut,
    int index) {
  Tile tile(cut, index, g.num * g.channels, g.height);
  tile.other_rows((tile.y_begin + g.pad_h) / S - ((K + S - 1) / S - 1),
      (tile.y_end - 1 + g.pad_h) / S + 1, g.out_height);
  return tile;
}

// Blocks go through the tiles in strides. Each of the `stages` has `space`
// elements for what is loaded of a tile; with two, the next tile is on its way
// while one is computed.
struct Ring {
  int tiles, stride, stages, space;
};

struct Turn {
  int tile, stage, phase;

  __device__ __forceinline__ explicit Turn(int begin)
      : tile(begin), stage(0), phase(0) {}
  __device__ __forceinline__ void advance(const Ring& ring) {
    tile += ring.stride;
    stage = stage + 1 < ring.stages ? stage + 1 : 0;
    if (stage == 0) { phase ^= 1; }
  }
};

// ---------------------------------------------------------------------------
// Forward. With FLIP it is also backward-data for stride 1.

template <typename T, int K, int S, bool FLIP>
__global__ void __launch_bounds__(kMaxThreads) tile_forward(const Shape g,
    const Cut cut, const Ring ring, const T* __restrict__ in,
    const T* __restrict__ weight, const T* __restrict__ bias,
    T* __restrict__ out) {
  enum {
    V = kColumns,
    SPAN = (V - 1) * S + K,
    UNDER_WAY = (K + S - 1) / S  // output rows that an input row reaches
  };
  const int in_area = g.height * g.width;
  const int out_area = g.out_height * g.out_width;
  const int all_planes = g.num * g.channels * g.multiplier;
  __shared__ Arrival<1> arrival[2];
  const Memory<T> memory;
  T* const out_room = memory.room + ring.stages * ring.space;
  arrival[0].prepare();
  arrival[1].prepare();
  __syncthreads();
  const T* const in_end =
      in + static_cast<size_t>(g.num) * g.channels * in_area;
  Tile tile = output_tile<K, S>(g, cut, blockIdx.x, all_planes);
  load_run(in + tile.other_begin(in_area, g.width),
      tile.other_count(in_area, g.width), in, in_end, memory.room, arrival);
  for (Turn turn(blockIdx.x); turn.tile < ring.tiles; turn.advance(ring)) {
    Tile next = tile;
    if (turn.tile + ring.stride < ring.tiles) {
      next = output_tile<K, S>(g, cut, turn.tile + ring.stride, all_planes);
      if (ring.stages > 1) {
        load_run(in + next.other_begin(in_area, g.width),
            next.other_count(in_area, g.width), in, in_end,
            memory.room + (turn.stage ^ 1) * ring.space,
            &arrival[turn.stage ^ 1]);
      }
    }
    const T* const tile_in = place_run(
        in + tile.other_begin(in_area, g.width),
        memory.room + turn.stage * ring.space);
    T* const global_out = out + tile.begin(out_area, g.out_width);
    T* const tile_out = place_run(global_out, out_room);
    stored();
    arrival[turn.stage].wait(turn.phase);

    const int walks = tile.planes * cut.walks.divisor * cut.groups.divisor;
    for (int i = threadIdx.x; i < walks; i += blockDim.x) {
      const Walk walk(cut, i, tile.y_begin, tile.y_end);
      const int channel = cut.channels.modulo(tile.first + walk.plane);
      T filter[K][K];
#pragma unroll
      for (int k = 0; k < K * K; ++k) {
        filter[k / K][k % K] =
            weight[channel * K * K + (FLIP ? K * K - 1 - k : k)];
      }
      const T start = bias ? bias[channel] : T(0);
      // The last group overlaps the one before it where the width asks for it.
      const int x = min(walk.group * V, g.out_width - V);
      const int column = x * S - g.pad_w;
      const Window<T, SPAN, K - 1> window(column, 0, g.width);
      int row = walk.y_first * S - g.pad_h - tile.row_begin;
      const T* from = tile_in + column + row * g.width +
          (cut.multiplier.divide(tile.first + walk.plane) - tile.other_first) *
          in_area;
      int done = -(UNDER_WAY - 1);  // rows of this walk
      T* to = tile_out + walk.plane * out_area + x +
          (walk.y_first - tile.y_begin + done) * g.out_width;

      T sum[UNDER_WAY][V];  // row y of the walk in sum[y % UNDER_WAY]
#pragma unroll
      for (int m = 0; m < UNDER_WAY * V; ++m) { sum[m / V][m % V] = start; }
      while (done < walk.rows) {
#pragma unroll
        for (int ahead = 0; ahead < UNDER_WAY; ++ahead) {
#pragma unroll
          for (int v = 0; v < V; ++v) { sum[ahead][v] = start; }
#pragma unroll
          for (int s = 0; s < S; ++s) {
            T value[SPAN];
            window.read(static_cast<unsigned>(row) < tile.row_count ? from
                                                              : memory.zeros,
                value);
#pragma unroll
            for (int ky = s; ky < K; ky += S) {
              const int y = (ahead - ky / S + UNDER_WAY) % UNDER_WAY;
#pragma unroll
              for (int kx = 0; kx < K; ++kx) {
#pragma unroll
                for (int v = 0; v < V; ++v) {
                  sum[y][v] += filter[ky][kx] * value[v * S + kx];
                }
              }
            }
            ++row;
            from += g.width;
          }
          if (static_cast<unsigned>(done) < walk.rows) {
#pragma unroll
            for (int v = 0; v < V; ++v) {
              to[v] = sum[(ahead + 1) % UNDER_WAY][v];
            }
          }
          ++done;
          to += g.out_width;
        }
      }
    }
    store_run(global_out, tile.count(out_area, g.out_width), tile_out);
    if (ring.stages == 1 && turn.tile + ring.stride < ring.tiles) {
      load_run(in + next.other_begin(in_area, g.width),
          next.other_count(in_area, g.width), in, in_end, memory.room,
          arrival);
    }
    tile = next;
  }
  stored();
}

// ---------------------------------------------------------------------------
// Backward-data for stride S > 1, as a gather: the tile is one of bottom_diff.
//
// Input column x is reached by the taps with kx = x + pad (mod S) alone, from
// output columns q = (x + pad) / S and less. A thread takes V values of q and
// the V * S columns x that begin there, and likewise S rows at a time, so that
// every residue is known to the compiler and no tap is tested at run time.

template <typename T, int K, int S>
__global__ void __launch_bounds__(kMaxThreads) tile_backward(const Shape g,
    const Cut cut, const Ring ring, const T* __restrict__ top_diff,
    const T* __restrict__ weight, T* __restrict__ bottom_diff) {
  enum {
    V = kGatherColumns,
    N = V * S,
    TAPS = (K + S - 1) / S,
    SPAN = V + TAPS - 1
  };
  const int in_area = g.height * g.width;
  const int out_area = g.out_height * g.out_width;
  __shared__ Arrival<1> arrival[2];
  const Memory<T> memory;
  T* const diff_room = memory.room + ring.stages * ring.space;
  arrival[0].prepare();
  arrival[1].prepare();
  __syncthreads();
  const T* const top_end =
      top_diff + static_cast<size_t>(g.num) * g.channels * out_area;
  Tile tile = input_tile<K, S>(g, cut, blockIdx.x);
  load_run(top_diff + tile.other_begin(out_area, g.out_width),
      tile.other_count(out_area, g.out_width), top_diff, top_end, memory.room,
      arrival);
  for (Turn turn(blockIdx.x); turn.tile < ring.tiles; turn.advance(ring)) {
    Tile next = tile;
    if (turn.tile + ring.stride < ring.tiles) {
      next = input_tile<K, S>(g, cut, turn.tile + ring.stride);
      if (ring.stages > 1) {
        load_run(top_diff + next.other_begin(out_area, g.out_width),
            next.other_count(out_area, g.out_width), top_diff, top_end,
            memory.room + (turn.stage ^ 1) * ring.space,
            &arrival[turn.stage ^ 1]);
      }
    }
    const T* const tile_top = place_run(
        top_diff + tile.other_begin(out_area, g.out_width),
        memory.room + turn.stage * ring.space);
    T* const global = bottom_diff + tile.begin(in_area, g.width);
    T* const tile_diff = place_run(global, diff_room);
    stored();
    arrival[turn.stage].wait(turn.phase);

    const int walks = tile.planes * cut.walks.divisor * cut.groups.divisor;
    for (int i = threadIdx.x; i < walks; i += blockDim.x) {
      const Walk walk(cut, i, tile.y_begin, tile.y_end);
      const int channel = cut.channels.modulo(tile.first + walk.plane);
      T filter[K][K];
#pragma unroll
      for (int k = 0; k < K * K; ++k) {
        filter[k / K][k % K] = weight[channel * K * K + k];
      }
      const int q_column = g.pad_w / S + walk.group * V;
      const int x = q_column * S - g.pad_w;
      const Window<T, SPAN, SPAN> window(q_column - (TAPS - 1), 0, g.out_width);
      const int q_first = (walk.y_first + g.pad_h) / S - (TAPS - 1);
      int q = q_first - tile.row_begin;
      const T* from = tile_top + walk.plane * out_area + q_column - (TAPS - 1) +
          q * g.out_width;
      // Rows of this walk; the sums of the first TAPS - 1 steps lack some taps.
      int y = q_first * S - g.pad_h - walk.y_first;
      T* to = tile_diff + walk.plane * in_area + x +
          (walk.y_first - tile.y_begin + y) * g.width;

      // Row (q * S + r - pad) in sum[(q - q_first) % TAPS][r].
      T sum[TAPS][S][N];
#pragma unroll
      for (int k = 0; k < TAPS * S * N; ++k) {
        sum[k / (S * N)][k / N % S][k % N] = T(0);
      }
      while (y < walk.rows) {
#pragma unroll
        for (int ahead = 0; ahead < TAPS; ++ahead) {
          T value[SPAN];
          window.read(
              static_cast<unsigned>(q) < tile.row_count ? from : memory.zeros,
              value);
#pragma unroll
          for (int ky = 0; ky < K; ++ky) {
#pragma unroll
            for (int kx = 0; kx < K; ++kx) {
#pragma unroll
              for (int v = 0; v < V; ++v) {
                sum[(ahead + ky / S) % TAPS][ky % S][v * S + kx % S] +=
                    filter[ky][kx] * value[v - kx / S + TAPS - 1];
              }
            }
          }
          ++q;
          from += g.out_width;
#pragma unroll
          for (int r = 0; r < S; ++r) {
            if (static_cast<unsigned>(y) < walk.rows) {
#pragma unroll
              for (int n = 0; n < N; ++n) {
                if (static_cast<unsigned>(x + n) < g.width) {
                  to[n] = sum[ahead][r][n];
                }
              }
            }
#pragma unroll
            for (int n = 0; n < N; ++n) { sum[ahead][r][n] = T(0); }
            ++y;
            to += g.width;
          }
        }
      }
    }
    store_run(global, tile.count(in_area, g.width), tile_diff);
    if (ring.stages == 1 && turn.tile + ring.stride < ring.tiles) {
      load_run(top_diff + next.other_begin(out_area, g.out_width),
          next.other_count(out_area, g.out_width), top_diff, top_end,
          memory.room, arrival);
    }
    tile = next;
  }
  stored();
}

// ---------------------------------------------------------------------------
// Backward-weights and bias, in one pass over both tensors.
//
// A block takes the same tile of every image of its part of the batch, and its
// threads add up the products of their columns in registers over all of them.
// Then sums are joined in the block, and over the parts of a channel (tiles of
// a plane, parts of the batch) through `partial`: the last block to finish adds
// the parts in their order, so the result does not depend on the order in which
// blocks run, and no floating-point atomics are needed.

// The most lanes, a power of two, that each of so many sums can have.
__device__ __forceinline__ int lanes_for(int sums) {
  int lanes = kWarp;
  while (lanes > 1 && sums * lanes > blockDim.x) { lanes /= 2; }
  return lanes;
}

// Weight k of a channel, or the bias that follows its weights.
template <int K, typename T>
__device__ __forceinline__ void add_gradient(int channel, int k, T sum,
    T* weight_diff, T* bias_diff) {
  if (k < K * K) {
    if (weight_diff) { weight_diff[channel * K * K + k] += sum; }
  } else if (bias_diff) {
    bias_diff[channel] += sum;
  }
}

template <typename T, int K, int S>
__global__ void
__launch_bounds__(kMaxThreads, K == 3 && sizeof(T) == 4 ? 3 : 1)
tile_weights(const Shape g, const Cut cut, const Ring ring, const int images,
    const T* __restrict__ in, const T* __restrict__ top_diff, T* weight_diff,
    T* bias_diff, T* partial, unsigned* finished) {
  enum {
    V = kColumns,
    SPAN = (V - 1) * S + K,
    UNDER_WAY = (K + S - 1) / S,
    SUMS = K * K + 1,
    AT_ONCE = kAtOnce
  };
  const int channels = g.channels * g.multiplier;
  const int in_area = g.height * g.width;
  const int out_area = g.out_height * g.out_width;
  const int tiles =
      (channels + cut.planes - 1) / cut.planes * cut.tiles.divisor;
  const int chunk = blockIdx.x / tiles;
  const int tile_index = blockIdx.x - chunk * tiles;
  const Tile tile = output_tile<K, S>(g, cut, tile_index, channels);
  const int in_count = tile.other_count(in_area, g.width);

  __shared__ Arrival<2> arrival[kMaxStages];
  const Memory<T> memory;
  for (int i = 0; i < ring.stages; ++i) { arrival[i].prepare(); }
  __syncthreads();

  // The same walk in every image.
  const int walks_a_plane = cut.walks.divisor * cut.groups.divisor;
  const bool walks = threadIdx.x < tile.planes * walks_a_plane;
  const Walk walk(cut, walks ? threadIdx.x : 0, tile.y_begin, tile.y_end);
  const int x = min(walk.group * V, g.out_width - V);
  const int column = x * S - g.pad_w;
  const Window<T, SPAN, K - 1> window(column, 0, g.width);
  // What the group before this one counts is masked.
  const Window<T, V, V> diff_window(x, walk.group * V, g.out_width);
  const int first_row = walk.y_first * S - g.pad_h - tile.row_begin;
  const int from_offset = column + first_row * g.width +
      (cut.multiplier.divide(tile.first + walk.plane) - tile.other_first) *
      in_area;
  const int diff_offset = walk.plane * out_area + x +
      (walk.y_first - tile.y_begin) * g.out_width;
  T total[SUMS];
#pragma unroll
  for (int k = 0; k < SUMS; ++k) { total[k] = T(0); }

  // The ring goes through the images of the chunk.
  const size_t in_step = static_cast<size_t>(g.channels) * in_area;
  const size_t diff_step = static_cast<size_t>(channels) * out_area;
  const int n_end = min((chunk + 1) * images, g.num);
  int asked = chunk * images, asked_stage = 0;
  const T* at_in = in + asked * in_step + tile.other_begin(in_area, g.width);
  const T* at_diff =
      top_diff + asked * diff_step + tile.begin(out_area, g.out_width);
  const T *asked_in = at_in, *asked_diff = at_diff;
  for (Turn turn(asked); turn.tile < n_end; turn.advance(ring)) {
    while (asked < min(turn.tile + ring.stages, n_end)) {
      T* const room = memory.room + asked_stage * ring.space;
      load_run(asked_in, in_count, in, in + g.num * in_step, room,
          &arrival[asked_stage]);
      load_run(asked_diff, tile.count(out_area, g.out_width), top_diff,
          top_diff + g.num * diff_step, room + run_space<T>(in_count),
          &arrival[asked_stage]);
      asked_in += in_step;
      asked_diff += diff_step;
      asked_stage = asked_stage + 1 < ring.stages ? asked_stage + 1 : 0;
      ++asked;
    }
    T* const room = memory.room + turn.stage * ring.space;
    const T* from = place_run(at_in, room) + from_offset;
    const T* from_diff =
        place_run(at_diff, room + run_space<T>(in_count)) + diff_offset;
    at_in += in_step;
    at_diff += diff_step;
    arrival[turn.stage].wait(turn.phase);

    if (walks) {
      int row = first_row;
      T diff[UNDER_WAY][V];  // row y of the walk in diff[y % UNDER_WAY]
#pragma unroll
      for (int m = 0; m < UNDER_WAY * V; ++m) { diff[m / V][m % V] = T(0); }
      for (int y = 0; y < walk.rows + UNDER_WAY - 1; y += UNDER_WAY) {
#pragma unroll
        for (int ahead = 0; ahead < UNDER_WAY; ++ahead) {
          diff_window.read(y + ahead < walk.rows ? from_diff : memory.zeros,
              diff[ahead]);
          from_diff += g.out_width;
#pragma unroll
          for (int v = 0; v < V; ++v) { total[K * K] += diff[ahead][v]; }
#pragma unroll
          for (int s = 0; s < S; ++s) {
            T value[SPAN];
            window.read(static_cast<unsigned>(row) < tile.row_count ? from
                                                              : memory.zeros,
                value);
#pragma unroll
            for (int ky = s; ky < K; ky += S) {
              const int m = (ahead - ky / S + UNDER_WAY) % UNDER_WAY;
#pragma unroll
              for (int kx = 0; kx < K; ++kx) {
#pragma unroll
                for (int v = 0; v < V; ++v) {
                  total[ky * K + kx] += value[v * S + kx] * diff[m][v];
                }
              }
            }
            ++row;
            from += g.width;
          }
        }
      }
    }
    __syncthreads();
  }

  // Join the threads: totals[k][thread], a part of the sums at a time.
  const int chunks = (g.num + images - 1) / images;
  const int parts = cut.tiles.divisor * chunks;
  const int part = chunk * cut.tiles.divisor + cut.tiles.modulo(tile_index);
  const int first = tile.first, planes = tile.planes;
  const int addends = planes > 1 ? walks_a_plane : blockDim.x;
  T* const totals = memory.room;
#pragma unroll
  for (int from = 0; from < SUMS; from += AT_ONCE) {
    const int now = SUMS - from < AT_ONCE ? SUMS - from : AT_ONCE;
    if (from > 0) { __syncthreads(); }
#pragma unroll
    for (int k = 0; k < AT_ONCE; ++k) {
      if (from + k < SUMS) {
        totals[k * blockDim.x + threadIdx.x] = total[(from + k) % SUMS];
      }
    }
    __syncthreads();
    const int lanes = lanes_for(planes * now);
    for (int base = 0; base < planes * now; base += blockDim.x / lanes) {
      const int i = base + threadIdx.x / lanes;
      const int k = i % now;
      const int plane = i / now;
      T sum = T(0);
      if (plane < planes) {
        for (int j = threadIdx.x % lanes; j < addends; j += lanes) {
          sum += totals[k * blockDim.x + plane * addends + j];
        }
      }
      sum = lanes_sum(sum, lanes);
      if (plane < planes && threadIdx.x % lanes == 0) {
        if (parts > 1) {
          partial[((first + plane) * parts + part) * SUMS + from + k] = sum;
        } else {
          add_gradient<K>(first + plane, from + k, sum, weight_diff, bias_diff);
        }
      }
    }
  }
  if (parts == 1) { return; }

  // Join the parts.
  __shared__ bool is_last;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    is_last =
        atomicInc(&finished[cut.tiles.divide(tile_index)], parts - 1) ==
        parts - 1;
  }
  __syncthreads();
  if (!is_last) { return; }
  __threadfence();
  const int lanes = lanes_for(planes * SUMS);
  for (int base = 0; base < planes * SUMS; base += blockDim.x / lanes) {
    const int i = base + threadIdx.x / lanes;
    const int plane = i / SUMS;
    T sum = T(0);
    if (plane < planes) {
      const T* const from =
          partial + (first + plane) * parts * SUMS + i % SUMS;
#pragma unroll 8
      for (int j = threadIdx.x % lanes; j < parts; j += lanes) {
        sum += load_fresh(from + j * SUMS);
      }
    }
    sum = lanes_sum(sum, lanes);
    if (plane < planes && threadIdx.x % lanes == 0) {
      add_gradient<K>(first + plane, i % SUMS, sum, weight_diff, bias_diff);
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
  sum = lanes_sum(sum, kWarp);
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
// Of the tiles that tile_plans lists, the one is taken that costs the fewest
// cycles of a multiprocessor by this estimate. Its constants were fitted to
// 33,000 measurements on an H200 (bench/depthwise/NOTES.md).
//
//   moved  = bytes of a tile / kBytesACycle
//   walk   = instructions of a walk: kWalk, and for each row its
//            multiplications, its loads and its stores
//   work   = walk * warps / kInstructionsACycle
//   alone  = kLatency + moved + walk * kCyclesAnInstruction, the time of a tile
//            that has the multiprocessor to itself
//   shared = resident * (max(work, moved) + kMix * min(work, moved)), the time
//            of `resident` tiles that are limited by one or the other
//   round  = (alone ^ kNorm + shared ^ kNorm) ^ (1 / kNorm), about the larger
//
// The machine takes tiles / (processors * resident) rounds, at least one, and
// kTail of one more for the uneven end. Where a block takes several tiles or
// images, all but the first have kNextWalk in the place of kWalk, and with two
// stages or more kNextTile in the place of kLatency + moved. For
// backward-weights a block adds kJoin to add up its threads, and kJoinParts and
// kPart for each of the parts that are added up at the end.

const double kBytesACycle = 13.2, kInstructionsACycle = 2.34, kWalk = 265,
    kNextWalk = 146, kLatency = 780, kNextTile = 300,
    kCyclesAnInstruction = 1.15, kMix = 0.036, kNorm = 2.83, kTail = 0.17,
    kJoin = 2075, kJoinParts = 1570, kPart = 570;
// Limits that measurements have shown to be good: larger tiles and longer walks
// leave a multiprocessor too few warps.
enum { kTileBytes = 30 * 1024, kMaxImages = 16 };

inline int ceil_div(int a, int b) { return (a + b - 1) / b; }

// What a direction reads and writes, as its tiles see it.
struct Traffic {
  bool weights;                 // backward-weights
  int images;                   // that a block can take one after the other
  int planes, height, width;    // of the tensor that is cut into tiles
  int other_height, other_width, multiplier;  // of the other tensor
  double rows_ratio;            // rows of the other tensor a row of a tile
  int border;                   // and so many more at a tile's edges
  int groups;                   // of columns, a row
  double instructions;          // a row of a walk
  int walk_border;              // rows a walk takes before its first result
  int most_rows, most_threads;  // a walk, a block; more only where none fits
  int registers;                // a thread, about
};

// Elements of the two runs of a tile.
inline int run_elements(const Traffic& t, const TilePlan& p) {
  return ((p.planes - 1) * t.height + p.rows) * t.width;
}

inline int other_elements(const Traffic& t, const TilePlan& p) {
  const double rows = std::min<double>(
      t.other_height, p.rows * t.rows_ratio + t.border);
  const double planes = (p.planes + t.multiplier - 2) / t.multiplier;
  return static_cast<int>(std::min(1e9,
      (planes * t.other_height + rows) * t.other_width));
}

// Elements of shared memory for one stage: what is loaded of a tile.
template <typename T>
inline int stage_space(const Traffic& t, const TilePlan& p) {
  return run_space<T>(other_elements(t, p)) +
      (t.weights ? run_space<T>(run_elements(t, p)) : 0);
}

template <typename T>
inline int shared_bytes(const Traffic& t, const TilePlan& p) {
  const int loaded = p.stages * stage_space<T>(t, p);
  const int elements = t.weights ?
      std::max(loaded, kAtOnce * p.threads) :
      loaded + run_space<T>(run_elements(t, p));
  return (kZeros + kSlack + elements) * static_cast<int>(sizeof(T));
}

inline int shared_bytes(const Traffic& t, const TilePlan& p,
    int element_size) {
  return element_size == 8 ? shared_bytes<double>(t, p)
                           : shared_bytes<float>(t, p);
}

inline int walks_down(const TilePlan& p) { return ceil_div(p.rows, p.walk); }

// Every tile worth a thought.
inline std::vector<TilePlan> tile_plans(const Traffic& t, int element_size) {
  std::vector<TilePlan> plans;
  for (int planes = 1; planes <= t.planes; planes += ceil_div(planes, 4)) {
    // The next tile early: for whole planes that are convolved, not gathered.
    const int most_stages = t.weights ? std::min<int>(kMaxStages, t.images) :
        planes > 1 && t.rows_ratio >= 1 ? 2 : 1;
    for (int cuts = 1; cuts <= (planes == 1 ? t.height : 1); ++cuts) {
      const int rows = ceil_div(t.height, cuts);
      if (cuts > 1 && rows == ceil_div(t.height, cuts - 1)) { continue; }
      const int first = ceil_div(rows, t.most_rows);
      for (int down = first; down <= rows; ++down) {
        TilePlan p = {planes, rows, ceil_div(rows, down), 0, 1, 0};
        if (down > first && p.walk == ceil_div(rows, down - 1)) { continue; }
        const int walks = planes * walks_down(p) * t.groups;
        if (walks > t.most_threads && !plans.empty()) { break; }
        if (walks > kMaxThreads && t.weights) { break; }
        p.threads = std::min<int>(ceil_div(walks, kWarp) * kWarp, kMaxThreads);
        for (; p.stages <= most_stages; ++p.stages) {
          if (shared_bytes(t, p, element_size) > kTileBytes) { break; }
          plans.push_back(p);
        }
      }
    }
  }
  return plans;
}

inline double about_larger(double a, double b) {
  return std::pow(std::pow(a, kNorm) + std::pow(b, kNorm), 1 / kNorm);
}

// The cost of a plan whose blocks take `images` images one after the other;
// sets the number of blocks where they are to take several tiles.
inline double plan_cost(const Traffic& t, int images, int element_size,
    const Gpu& gpu, TilePlan* p) {
  const int bytes =
      (run_elements(t, *p) + other_elements(t, *p)) * element_size;
  const int warps = p->threads / kWarp;
  const double walk = t.instructions * (p->walk + t.walk_border);

  int resident = std::min(std::min(32, 65536 / t.registers / p->threads),
      gpu.shared_bytes / (shared_bytes(t, *p, element_size) + 1024));
  resident = std::max(resident, 1);
  const int cuts = ceil_div(t.height, p->rows);
  const double tiles = static_cast<double>(ceil_div(t.planes, p->planes)) *
      cuts;
  const int parts = t.weights ? cuts * ceil_div(t.images, images) : 1;
  double blocks = t.weights ? tiles / cuts * parts : tiles;
  double turns = images;  // of a block
  if (!t.weights && p->stages > 1) {
    p->blocks = resident * gpu.processors;
    if (tiles < 2 * p->blocks) { return HUGE_VAL; }
    turns = tiles / p->blocks;
    blocks = p->blocks;
  }
  resident = std::min(resident, std::max(1, ceil_div(
      static_cast<int>(std::min(blocks, 1e9)), gpu.processors)));

  const double moved = bytes / kBytesACycle;
  const double work =
      warps * (walk + (turns > 1 ? kNextWalk : kWalk)) / kInstructionsACycle;
  const double shared = resident *
      (std::max(work, moved) + kMix * std::min(work, moved));
  double alone =
      kLatency + moved + (walk + kWalk) * kCyclesAnInstruction;
  double cost = about_larger(alone, shared);
  if (turns > 1) {
    alone = (walk + kNextWalk) * kCyclesAnInstruction + kNextTile +
        (p->stages > 1 ? 0 : kLatency + moved);
    cost += (turns - 1) * about_larger(alone, shared);
  }
  if (t.weights) { cost += kJoin; }
  const double rounds =
      blocks / (static_cast<double>(gpu.processors) * resident);
  return cost * (rounds > 1 ? rounds + kTail : 1) +
      (parts > 1 ? kJoinParts + kPart * parts : 0);
}

// The tile of least cost, and the images a block for it.
inline TilePlan choose_tile(const Traffic& t, int element_size, const Gpu& gpu,
    int* images_a_block = NULL) {
  const std::vector<TilePlan> plans = tile_plans(t, element_size);
  TilePlan best = TilePlan();
  double least = HUGE_VAL;
  for (size_t i = 0; i < plans.size(); ++i) {
    TilePlan p = plans[i];
    for (int images = std::min<int>(t.images, kMaxImages);
         images >= (t.weights ? p.stages : 1); images = images * 3 / 4) {
      const double cost = plan_cost(t, images, element_size, gpu, &p);
      if (cost < least) {
        least = cost;
        best = p;
        if (images_a_block) { *images_a_block = images; }
      }
    }
  }
  return best;
}

// Backward-data of stride 1 is the forward pass of the mirrored filter.
inline Shape mirrored(const Shape& g) {
  Shape m = g;
  std::swap(m.height, m.out_height);
  std::swap(m.width, m.out_width);
  m.pad_h = g.kernel_h - 1 - g.pad_h;
  m.pad_w = g.kernel_w - 1 - g.pad_w;
  return m;
}

inline Traffic forward_traffic(const Shape& g) {
  const int k = g.kernel_h, s = g.stride_h, v = kColumns;
  Traffic t = Traffic();
  t.images = 1;
  t.planes = g.num * g.channels * g.multiplier;
  t.height = g.out_height;
  t.width = g.out_width;
  t.other_height = g.height;
  t.other_width = g.width;
  t.multiplier = g.multiplier;
  t.rows_ratio = s;
  t.border = k - s;
  t.groups = ceil_div(g.out_width, v);
  t.instructions = s * ((v - 1) * s + 3 * k + 2) + k * k * v + v + 4;
  t.walk_border = (k + s - 1) / s - 1;
  t.most_rows = k == 3 ? 10 : 14;
  t.most_threads = g.num > 1 ? kMaxThreads / 2 : kMaxThreads;
  t.registers = k == 3 ? 48 : 80;
  return t;
}

inline Traffic backward_traffic(const Shape& g) {
  const int k = g.kernel_h, s = g.stride_h, v = kGatherColumns;
  if (s == 1) { return forward_traffic(mirrored(g)); }
  const int taps = (k + s - 1) / s;
  Traffic t = Traffic();
  t.images = 1;
  t.planes = g.num * g.channels;
  t.height = g.height;
  t.width = g.width;
  t.other_height = g.out_height;
  t.other_width = g.out_width;
  t.multiplier = 1;
  t.rows_ratio = 1.0 / s;
  t.border = taps;
  t.groups = ceil_div((g.width - 1 + g.pad_w) / s - g.pad_w / s + 1, v);
  t.instructions = (3.0 * (v + taps - 1) + 6 + k * k * v) / s + 3.0 * v * s;
  t.walk_border = s * (taps - 1);
  t.most_rows = k == 3 ? 10 : 14;
  t.most_threads = g.num > 1 ? kMaxThreads / 2 : kMaxThreads;
  t.registers = k == 3 ? 48 : 80;
  return t;
}

inline Traffic weights_traffic(const Shape& g) {
  Traffic t = forward_traffic(g);
  t.weights = true;
  t.images = g.num;
  t.planes = g.channels * g.multiplier;
  t.instructions += 2 * kColumns;
  t.registers = g.kernel_h == 3 ? 72 : 110;
  return t;
}

// One of the kernels above; pad < kernel, so that reads stay near the rows.
inline bool specialised(const Shape& g) {
  return g.kernel_h == g.kernel_w && (g.kernel_h == 3 || g.kernel_h == 5) &&
      g.stride_h == g.stride_w && (g.stride_h == 1 || g.stride_h == 2) &&
      g.dilation_h == 1 && g.dilation_w == 1 &&
      g.pad_h < g.kernel_h && g.pad_w < g.kernel_w;
}

Plan make_plan(const Shape& g, int element_size, const Gpu& gpu) {
  Plan plan = Plan();
  if (!specialised(g)) { return plan; }
  if (g.out_width >= kColumns) {
    plan.forward = choose_tile(forward_traffic(g), element_size, gpu);
    plan.weights = choose_tile(weights_traffic(g), element_size, gpu,
        &plan.weight_images);
  }
  if (g.multiplier == 1 && (g.stride_w > 1 || g.width >= kColumns)) {
    plan.backward = choose_tile(backward_traffic(g), element_size, gpu);
  }
  return plan;
}

// Parts of a weight gradient that are joined at the end.
int weight_parts(const Shape& g, const Plan& plan) {
  return plan.weights.threads ? ceil_div(g.out_height, plan.weights.rows) *
      ceil_div(g.num, plan.weight_images) : 0;
}

// ---------------------------------------------------------------------------
// The launches.

template <typename T>
Ring tile_ring(const Traffic& t, const TilePlan& p) {
  const int tiles = ceil_div(t.planes, p.planes) * ceil_div(t.height, p.rows);
  const Ring ring = {tiles, p.blocks ? std::min(p.blocks, tiles) : tiles,
                     p.stages, stage_space<T>(t, p)};
  return ring;
}

template <typename T, int K, int S, bool FLIP>
void launch_forward(const Shape& g, const TilePlan& p, const T* in,
    const T* weight, const T* bias, T* out, cudaStream_t stream) {
  const Traffic t = forward_traffic(g);
  const Cut cut(p, t.height, t.groups, g);
  const Ring ring = tile_ring<T>(t, p);
  const int bytes = shared_bytes<T>(t, p);
  tile_forward<T, K, S, FLIP><<<ring.stride, p.threads, bytes, stream>>>(
      g, cut, ring, in, weight, bias, out);
}

template <typename T, int K, int S>
void launch_backward(const Shape& g, const TilePlan& p, const T* top_diff,
    const T* weight, T* bottom_diff, cudaStream_t stream) {
  const Traffic t = backward_traffic(g);
  const Cut cut(p, t.height, t.groups, g);
  const Ring ring = tile_ring<T>(t, p);
  const int bytes = shared_bytes<T>(t, p);
  tile_backward<T, K, S><<<ring.stride, p.threads, bytes, stream>>>(
      g, cut, ring, top_diff, weight, bottom_diff);
}

template <typename T, int K, int S>
void launch_weights(const Shape& g, const Plan& plan, const T* in,
    const T* top_diff, T* weight_diff, T* bias_diff, T* partial,
    unsigned* finished, cudaStream_t stream) {
  const TilePlan& p = plan.weights;
  const Traffic t = weights_traffic(g);
  const Cut cut(p, t.height, t.groups, g);
  const int blocks = ceil_div(t.planes, p.planes) * weight_parts(g, plan);
  const int bytes = shared_bytes<T>(t, p);
  const Ring ring = {0, 1, p.stages, stage_space<T>(t, p)};
  tile_weights<T, K, S><<<blocks, p.threads, bytes, stream>>>(
      g, cut, ring, plan.weight_images, in, top_diff, weight_diff, bias_diff,
      partial, finished);
}

inline int generic_blocks(int count) {
  return std::min(ceil_div(count, kGenericThreads), 65535);
}

template <typename T>
void forward(const Shape& g, const Plan& plan, const T* in, const T* weight,
    const T* bias, T* out, cudaStream_t stream) {
  const TilePlan& p = plan.forward;
  switch (p.threads ? g.kernel_h * 10 + g.stride_h : 0) {
    case 31:
      return launch_forward<T, 3, 1, false>(g, p, in, weight, bias, out,
          stream);
    case 32:
      return launch_forward<T, 3, 2, false>(g, p, in, weight, bias, out,
          stream);
    case 51:
      return launch_forward<T, 5, 1, false>(g, p, in, weight, bias, out,
          stream);
    case 52:
      return launch_forward<T, 5, 2, false>(g, p, in, weight, bias, out,
          stream);
  }
  const int count =
      g.num * g.channels * g.multiplier * g.out_height * g.out_width;
  generic_forward<T><<<generic_blocks(count), kGenericThreads, 0, stream>>>(
      g, count, in, weight, bias, out);
}

template <typename T>
void backward_data(const Shape& g, const Plan& plan, const T* top_diff,
    const T* weight, T* bottom_diff, cudaStream_t stream) {
  const TilePlan& p = plan.backward;
  const T* const no_bias = NULL;
  switch (p.threads ? g.kernel_h * 10 + g.stride_h : 0) {
    case 31:
      return launch_forward<T, 3, 1, true>(mirrored(g), p, top_diff, weight,
          no_bias, bottom_diff, stream);
    case 32:
      return launch_backward<T, 3, 2>(g, p, top_diff, weight, bottom_diff,
          stream);
    case 51:
      return launch_forward<T, 5, 1, true>(mirrored(g), p, top_diff, weight,
          no_bias, bottom_diff, stream);
    case 52:
      return launch_backward<T, 5, 2>(g, p, top_diff, weight, bottom_diff,
          stream);
  }
  const int count = g.num * g.channels * g.height * g.width;
  generic_backward<T><<<generic_blocks(count), kGenericThreads, 0, stream>>>(
      g, count, top_diff, weight, bottom_diff);
}

// Adds to weight_diff and bias_diff; either may be NULL. `partial` has
// weight_parts(g, plan) * output channels * (kernel area + 1) elements, and
// `finished` a zero for each output channel, which is a zero again afterwards.
template <typename T>
void backward_weights(const Shape& g, const Plan& plan, const T* in,
    const T* top_diff, T* weight_diff, T* bias_diff, T* partial,
    unsigned* finished, cudaStream_t stream) {
  switch (plan.weights.threads ? g.kernel_h * 10 + g.stride_h : 0) {
    case 31:
      return launch_weights<T, 3, 1>(g, plan, in, top_diff, weight_diff,
          bias_diff, partial, finished, stream);
    case 32:
      return launch_weights<T, 3, 2>(g, plan, in, top_diff, weight_diff,
          bias_diff, partial, finished, stream);
    case 51:
      return launch_weights<T, 5, 1>(g, plan, in, top_diff, weight_diff,
          bias_diff, partial, finished, stream);
    case 52:
      return launch_weights<T, 5, 2>(g, plan, in, top_diff, weight_diff,
          bias_diff, partial, finished, stream);
  }
  const int sums = g.channels * g.multiplier * (g.kernel_h * g.kernel_w + 1);
  generic_weights<T><<<sums, kGenericThreads, 0, stream>>>(
      g, in, top_diff, weight_diff, bias_diff);
}

}  // namespace depthwise

#ifndef DEPTHWISE_CONV_STANDALONE
// ---------------------------------------------------------------------------
// The layer. Everything runs on the default stream, as in the rest of Caffe.

template <typename Dtype>
void DepthwiseConvLayer<Dtype>::make_gpu_plan() {
  if (planned_) { return; }
  int device;
  depthwise::Gpu gpu;
  CUDA_CHECK(cudaGetDevice(&device));
  CUDA_CHECK(cudaDeviceGetAttribute(&gpu.processors,
      cudaDevAttrMultiProcessorCount, device));
  CUDA_CHECK(cudaDeviceGetAttribute(&gpu.shared_bytes,
      cudaDevAttrMaxSharedMemoryPerMultiprocessor, device));
  plan_ = depthwise::make_plan(shape_, sizeof(Dtype), gpu);
  const size_t channels = shape_.channels * shape_.multiplier;
  const size_t sums = channels * depthwise::weight_parts(shape_, plan_) *
      (shape_.kernel_h * shape_.kernel_w + 1) * sizeof(Dtype);
  if (!partial_ || partial_->size() < sums) {
    partial_.reset(new SyncedMemory(std::max<size_t>(sums, 1)));
  }
  if (!finished_) {  // SyncedMemory starts with zeros, which the kernels keep
    finished_.reset(new SyncedMemory(channels * sizeof(unsigned)));
  }
  planned_ = true;
}

template <typename Dtype>
void DepthwiseConvLayer<Dtype>::Forward_gpu(
    const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {
  if (other_) {
    other_->Forward(bottom, top);
    return;
  }
  if (!depthwise_) { return ConvolutionLayer<Dtype>::Forward_gpu(bottom, top); }
  if (top[0]->count() == 0) { return; }
  make_gpu_plan();
  const Dtype* const bias =
      this->bias_term_ ? this->blobs_[1]->gpu_data() : NULL;
  for (size_t i = 0; i < bottom.size(); ++i) {
    depthwise::forward(shape_, plan_, bottom[i]->gpu_data(),
        this->blobs_[0]->gpu_data(), bias, top[i]->mutable_gpu_data(), 0);
    CUDA_POST_KERNEL_CHECK;
  }
}

template <typename Dtype>
void DepthwiseConvLayer<Dtype>::Backward_gpu(
    const vector<Blob<Dtype>*>& top, const vector<bool>& propagate_down,
    const vector<Blob<Dtype>*>& bottom) {
  if (other_) { return other_backward(top, propagate_down, bottom); }
  if (!depthwise_) {
    return ConvolutionLayer<Dtype>::Backward_gpu(top, propagate_down, bottom);
  }
  if (top[0]->count() == 0) { return; }
  make_gpu_plan();
  Dtype* const weight_diff = this->param_propagate_down(0) ?
      this->blobs_[0]->mutable_gpu_diff() : NULL;
  Dtype* const bias_diff = this->bias_term_ && this->param_propagate_down(1) ?
      this->blobs_[1]->mutable_gpu_diff() : NULL;
  for (size_t i = 0; i < top.size(); ++i) {
    const Dtype* const top_diff = top[i]->gpu_diff();
    if (weight_diff || bias_diff) {
      depthwise::backward_weights(shape_, plan_, bottom[i]->gpu_data(),
          top_diff, weight_diff, bias_diff,
          static_cast<Dtype*>(partial_->mutable_gpu_data()),
          static_cast<unsigned*>(finished_->mutable_gpu_data()), 0);
      CUDA_POST_KERNEL_CHECK;
    }
    if (propagate_down[i]) {
      depthwise::backward_data(shape_, plan_, top_diff,
          this->blobs_[0]->gpu_data(), bottom[i]->mutable_gpu_diff(), 0);
      CUDA_POST_KERNEL_CHECK;
    }
  }
}

INSTANTIATE_LAYER_GPU_FUNCS(DepthwiseConvLayer);

#endif  // DEPTHWISE_CONV_STANDALONE

}  // namespace caffe
