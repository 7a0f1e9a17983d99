// Checks the kernels against the definition over random shapes: on the GPU where nvcc compiles this, else on the CPU (see emulate.hpp).
// Usage: check [seed] [cases]
#ifdef __CUDACC__
#define DEPTHWISE_CONV_STANDALONE
#include "depthwise_conv_layer.cu"
#else
#include "emulate.hpp"
#include "kernels_emulated.inc"
#endif

#include <stdio.h>
#include <stdlib.h>

#include "reference.hpp"

using namespace caffe::depthwise;
using namespace reference;

namespace {

std::mt19937 random_source;
int pick(int low, int high) { return low + random_source() % (high - low + 1); }

#ifdef __CUDACC__
void must(cudaError_t error) {
  if (error != cudaSuccess) { printf("%s\n", cudaGetErrorString(error)); exit(2); }
}
void* device_copy(const void* from, size_t bytes) {
  void* to;
  must(cudaMalloc(&to, bytes));
  must(cudaMemcpy(to, from, bytes, cudaMemcpyHostToDevice));
  return to;
}
void fetch_and_free(void* to, void* from, size_t bytes) {
  must(cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToHost));
  must(cudaFree(from));
}
#else
void* device_copy(void* from, size_t) { return from; }
void fetch_and_free(void*, void*, size_t) {}
#endif

// A buffer among NaNs, so that whatever is read or written outside is seen.
template <typename T>
struct Buffer {
  enum { kMargin = 4096 };
  std::vector<T> all;
  T* on_device;
  size_t count, offset;
  Buffer(size_t n, int shift, bool filled) : all(n + 2 * kMargin, T(NAN)), count(n) {
    offset = kMargin + shift;
    std::uniform_real_distribution<double> values(-1, 1);
    if (filled) for (size_t i = 0; i < n; ++i) all[offset + i] = values(random_source);
  }
  T* data() { return &all[offset]; }
  void send() { on_device = static_cast<T*>(device_copy(&all[0], all.size() * sizeof(T))); }
  void fetch() { fetch_and_free(&all[0], on_device, all.size() * sizeof(T)); }
  T* device() { return on_device + offset; }
  bool margins_intact() const {
    for (size_t i = 0; i < all.size(); ++i) if ((i < offset || i >= offset + count) && !std::isnan(all[i])) return false;
    return true;
  }
};

int failures = 0;

void expect(bool good, const char* what, const Shape& g, const Plan& p, double error) {
  if (good) return;
  ++failures;
  printf("%s: error %g: n %d c %d x %d, %dx%d -> %dx%d, kernel %dx%d stride %dx%d pad %dx%d dilation %dx%d;", what, error, g.num,
         g.channels, g.multiplier, g.height, g.width, g.out_height, g.out_width, g.kernel_h, g.kernel_w, g.stride_h, g.stride_w, g.pad_h,
         g.pad_w, g.dilation_h, g.dilation_w);
  for (const TilePlan& t : {p.forward, p.backward, p.weights}) printf(" %d planes, %d rows, walk %d, threads %d, stages %d, blocks %d;", t.planes, t.rows, t.walk, t.threads, t.stages, t.blocks);
  printf(" %d images\n", p.weight_images);
}

template <typename T>
void check(const Shape& g, Plan plan) {
  const double limit = sizeof(T) == 4 ? 1e-5 : 1e-13;
  const int shift = pick(0, 3) == 0;
  Buffer<T> in(in_count(g), shift, true), weight(weight_count(g), 0, true), bias(bias_count(g), 0, true);
  Buffer<T> top_diff(out_count(g), 0, true), out(out_count(g), 0, false), bottom_diff(in_count(g), 0, false);
  Buffer<T> weight_diff(weight_count(g), 0, true), bias_diff(bias_count(g), 0, true);
  const bool with_bias = pick(0, 1);
  Result r = compute(g, in.data(), weight.data(), with_bias ? bias.data() : NULL, top_diff.data());
  for (size_t i = 0; i < r.weight_diff.size(); ++i) r.weight_diff[i] += weight_diff.data()[i];
  for (size_t i = 0; i < r.bias_diff.size(); ++i) r.bias_diff[i] += bias_diff.data()[i];
  Buffer<T> partial(bias_count(g) * std::max(1, weight_parts(g, plan)) * (g.kernel_h * g.kernel_w + 1), 0, false);
  std::vector<unsigned> finished(bias_count(g));
  unsigned* const counters = static_cast<unsigned*>(device_copy(&finished[0], finished.size() * sizeof(unsigned)));
  Buffer<T>* const buffers[] = {&in, &weight, &bias, &top_diff, &out, &bottom_diff, &weight_diff, &bias_diff, &partial};
  for (Buffer<T>* buffer : buffers) buffer->send();

  forward<T>(g, plan, in.device(), weight.device(), with_bias ? bias.device() : NULL, out.device(), 0);
  backward_data<T>(g, plan, top_diff.device(), weight.device(), bottom_diff.device(), 0);
  backward_weights<T>(g, plan, in.device(), top_diff.device(), weight_diff.device(), bias_diff.device(), partial.device(), counters, 0);

  for (Buffer<T>* buffer : buffers) buffer->fetch();
  fetch_and_free(&finished[0], counters, finished.size() * sizeof(unsigned));

  const char* const names[] = {"forward", "backward data", "backward weights", "backward bias"};
  const double errors[] = {relative_error(out.data(), r.out), relative_error(bottom_diff.data(), r.bottom_diff),
                           relative_error(weight_diff.data(), r.weight_diff), relative_error(bias_diff.data(), r.bias_diff)};
  for (int i = 0; i < 4; ++i) expect(errors[i] < limit, names[i], g, plan, errors[i]);
  expect(in.margins_intact() && top_diff.margins_intact() && out.margins_intact() && bottom_diff.margins_intact() &&
         weight_diff.margins_intact() && bias_diff.margins_intact() && partial.margins_intact(), "written outside", g, plan, 0);
  for (size_t i = 0; i < finished.size(); ++i) expect(finished[i] == 0, "counter left", g, plan, finished[i]);
}

Shape random_shape() {
  static const int sizes[] = {1, 2, 3, 4, 5, 7, 8, 10, 12, 14, 16, 19, 28, 33, 38, 64, 75};
  for (;;) {
    const int generic = pick(0, 5) == 0;
    const int k = generic ? pick(1, 7) : pick(0, 2) ? 3 : 5, s = generic ? pick(1, 3) : pick(1, 2);
    const int kw = generic ? pick(1, 7) : k, sw = generic ? pick(1, 3) : s;
    const int h = sizes[pick(0, 16)], w = sizes[pick(0, 16)];
    const bool same = pick(0, 3);
    const int d = generic ? pick(1, 3) : 1;
    Shape g = make_shape(pick(1, 4), pick(1, 5), pick(0, 4) ? 1 : pick(2, 3), h, w, k, kw, s, sw, same ? k / 2 : pick(0, k + 1),
                         same ? kw / 2 : pick(0, kw + 1), d, generic ? pick(1, 3) : 1);
    if (g.out_height > 0 && g.out_width > 0 && g.height + 2 * g.pad_h >= d * (k - 1) + 1 && out_count(g) < 30000 && in_count(g) < 30000) return g;
  }
}

TilePlan any_tile(const Traffic& t, int element_size) {
  const std::vector<TilePlan> plans = tile_plans(t, element_size);
  TilePlan p = plans[pick(0, plans.size() - 1)];
  if (!t.weights && pick(0, 1)) p.blocks = pick(1, 9);
  return p;
}

// Tiles that the cost would not choose are right too.
Plan random_plan(const Shape& g, int element_size) {
  const Gpu gpu = {pick(1, 132), pick(48, 228) << 10};
  Plan plan = make_plan(g, element_size, gpu);
  if (plan.forward.threads && pick(0, 2)) plan.forward = any_tile(forward_traffic(g), element_size);
  if (plan.backward.threads && pick(0, 2)) plan.backward = any_tile(backward_traffic(g), element_size);
  if (plan.weights.threads && pick(0, 2)) {
    plan.weights = any_tile(weights_traffic(g), element_size);
    plan.weight_images = pick(1, g.num);
  }
  return plan;
}

}  // namespace

int main(int argc, char** argv) {
  const int seed = argc > 1 ? atoi(argv[1]) : 1, cases = argc > 2 ? atoi(argv[2]) : 200;
  random_source.seed(seed);
  for (int i = 0; i < cases; ++i) {
    const Shape g = random_shape();
    check<float>(g, random_plan(g, 4));
    check<double>(g, random_plan(g, 8));
  }
  printf("%d cases, %d failures\n", cases, failures);
  return failures != 0;
}
