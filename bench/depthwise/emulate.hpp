// Runs the CUDA kernels on a CPU, a thread of the grid as a fiber, so that their arithmetic can be checked where there is no GPU.
// Lanes of a warp meet at every shuffle, warps of a block at every barrier; blocks run one after the other, in a shuffled order.
#pragma once

#include <stddef.h>
#include <string.h>
#include <ucontext.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <random>
#include <vector>

#define CUDART_VERSION 13000
#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __restrict__ __restrict
#define __shared__ static
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))

using std::max;
using std::min;
typedef int cudaStream_t;

struct alignas(16) int4 { int x, y, z, w; };
inline unsigned __umulhi(unsigned a, unsigned b) { return (static_cast<unsigned long long>(a) * b) >> 32; }
inline float __uint_as_float(unsigned u) { float f; memcpy(&f, &u, 4); return f; }
inline unsigned __float_as_uint(float f) { unsigned u; memcpy(&u, &f, 4); return u; }
inline unsigned __double2hiint(double d) { unsigned long long u; memcpy(&u, &d, 8); return u >> 32; }
inline unsigned __double2loint(double d) { unsigned long long u; memcpy(&u, &d, 8); return unsigned(u); }
inline double __hiloint2double(unsigned hi, unsigned lo) {
  const unsigned long long u = (static_cast<unsigned long long>(hi) << 32) | lo;
  double d; memcpy(&d, &u, 8); return d;
}
struct Index3 { int x, y, z; };
static Index3 threadIdx, blockIdx, blockDim, gridDim;

namespace emulate {

enum State { READY, SHUFFLE, BARRIER, DONE };
struct Fiber {
  ucontext_t context;
  std::vector<char> stack;
  State state;
};
static std::vector<Fiber> fibers;
static ucontext_t scheduler;
static int current;
static char exchange[2][1024][16];
static std::vector<int> parity;
static const std::function<void()>* body;

static void enter() {
  (*body)();
  fibers[current].state = DONE;
  swapcontext(&fibers[current].context, &scheduler);
}

static void pause(State state) {
  const int self = current;
  fibers[self].state = state;
  swapcontext(&fibers[self].context, &scheduler);
}

// Resumes the lanes of one warp, in order, until they meet at a barrier or end.
static void run_warp(int first, int lanes) {
  for (;;) {
    int count[4] = {0, 0, 0, 0};
    for (int t = first; t < first + lanes; ++t) {
      if (fibers[t].state == DONE) { ++count[DONE]; continue; }
      current = t;
      threadIdx.x = t;
      swapcontext(&scheduler, &fibers[t].context);
      ++count[fibers[t].state];
    }
    if (count[SHUFFLE] == 0) { return; }
    if (count[SHUFFLE] != lanes) { fprintf(stderr, "a shuffle without all lanes of its warp\n"); abort(); }
  }
}

static void run_block(int threads) {
  fibers.resize(std::max<size_t>(fibers.size(), threads));
  parity.assign(threads, 0);
  for (int t = 0; t < threads; ++t) {
    Fiber& fiber = fibers[t];
    fiber.stack.resize(64 * 1024);
    fiber.state = READY;
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = fiber.stack.data();
    fiber.context.uc_stack.ss_size = fiber.stack.size();
    makecontext(&fiber.context, enter, 0);
  }
  for (;;) {
    bool waiting = false;
    for (int t = 0; t < threads; t += 32) {
      run_warp(t, std::min(32, threads - t));
      waiting |= fibers[t].state == BARRIER;
    }
    if (!waiting) { return; }
  }
}

enum { kSharedBytes = 48 * 1024, kGuardBytes = 4096 };
static int4 shared[(kSharedBytes + kGuardBytes) / sizeof(int4)];

static void launch(int blocks, int threads, int bytes, const std::function<void()>& kernel) {
  static std::mt19937 random(7);
  body = &kernel;
  std::vector<int> order(blocks);
  for (int i = 0; i < blocks; ++i) { order[i] = i; }
  std::shuffle(order.begin(), order.end(), random);
  blockDim = Index3{threads, 1, 1};
  gridDim = Index3{blocks, 1, 1};
  for (int block : order) {
    blockIdx = Index3{block, 0, 0};
    memset(shared, 0xff, sizeof(shared));  // NaNs
    run_block(threads);
    const char* const end = reinterpret_cast<const char*>(shared) + sizeof(shared);
    if (bytes > kSharedBytes || std::any_of(end - sizeof(shared) + bytes, end, [](char c) { return c != char(0xff); })) {
      fprintf(stderr, "written behind the shared memory\n");
      abort();
    }
  }
}

template <typename T>
T shuffle(T value, int source) {
  const int self = current;
  const int side = parity[self];
  parity[self] ^= 1;
  memcpy(exchange[side][self], &value, sizeof(T));
  pause(SHUFFLE);
  const int lane = self % 32;
  if (source < 0 || source > 31) { source = lane; }
  memcpy(&value, exchange[side][self - lane + source], sizeof(T));
  return value;
}

}  // namespace emulate

template <typename T> T __shfl_down_sync(unsigned, T v, int hop) { return emulate::shuffle(v, emulate::current % 32 + hop); }
template <typename T> T __shfl_up_sync(unsigned, T v, int hop) { return emulate::shuffle(v, emulate::current % 32 - hop); }
template <typename T> T __shfl_sync(unsigned, T v, int lane) { return emulate::shuffle(v, lane); }
inline void __syncwarp() { emulate::shuffle(0, 0); }
inline void __syncthreads() { emulate::pause(emulate::BARRIER); }
inline void __threadfence() {}
inline unsigned atomicInc(unsigned* at, unsigned limit) {
  const unsigned old = *at;
  *at = old >= limit ? 0 : old + 1;
  return old;
}
