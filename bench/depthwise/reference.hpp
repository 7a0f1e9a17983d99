// Depthwise convolution as its definition says, in double, for comparison.
#pragma once

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "depthwise_conv_layer.hpp"

namespace reference {

typedef caffe::depthwise::Shape Shape;
typedef std::vector<double> Values;

inline Shape make_shape(int num, int channels, int multiplier, int height, int width, int kernel_h, int kernel_w, int stride_h,
                        int stride_w, int pad_h, int pad_w, int dilation_h = 1, int dilation_w = 1) {
  Shape g = {num, channels, multiplier, height, width, 0, 0, kernel_h, kernel_w, stride_h, stride_w, pad_h, pad_w, dilation_h, dilation_w};
  g.out_height = (height + 2 * pad_h - (dilation_h * (kernel_h - 1) + 1)) / stride_h + 1;
  g.out_width = (width + 2 * pad_w - (dilation_w * (kernel_w - 1) + 1)) / stride_w + 1;
  return g;
}

inline size_t in_count(const Shape& g) { return size_t(g.num) * g.channels * g.height * g.width; }
inline size_t out_count(const Shape& g) { return size_t(g.num) * g.channels * g.multiplier * g.out_height * g.out_width; }
inline size_t weight_count(const Shape& g) { return size_t(g.channels) * g.multiplier * g.kernel_h * g.kernel_w; }
inline size_t bias_count(const Shape& g) { return size_t(g.channels) * g.multiplier; }

// Calls visit(out index, in index, weight index, output channel) for every product of the convolution.
template <typename Visit>
void each_product(const Shape& g, Visit visit) {
  const int channels = g.channels * g.multiplier;
  for (int n = 0; n < g.num; ++n)
    for (int c = 0; c < channels; ++c)
      for (int y = 0; y < g.out_height; ++y)
        for (int x = 0; x < g.out_width; ++x)
          for (int ky = 0; ky < g.kernel_h; ++ky)
            for (int kx = 0; kx < g.kernel_w; ++kx) {
              const int row = y * g.stride_h - g.pad_h + ky * g.dilation_h, column = x * g.stride_w - g.pad_w + kx * g.dilation_w;
              if (row < 0 || row >= g.height || column < 0 || column >= g.width) continue;
              const size_t out = ((size_t(n) * channels + c) * g.out_height + y) * g.out_width + x;
              const size_t in = ((size_t(n) * g.channels + c / g.multiplier) * g.height + row) * g.width + column;
              visit(out, in, (size_t(c) * g.kernel_h + ky) * g.kernel_w + kx);
            }
}

struct Result {
  Values out, bottom_diff, weight_diff, bias_diff;
};

template <typename T>
Result compute(const Shape& g, const T* in, const T* weight, const T* bias, const T* top_diff) {
  Result r;
  r.out.resize(out_count(g));
  r.bottom_diff.resize(in_count(g));
  r.weight_diff.resize(weight_count(g));
  r.bias_diff.resize(bias_count(g));
  for (size_t i = 0; i < r.out.size(); ++i) {
    const size_t c = i / (size_t(g.out_height) * g.out_width) % bias_count(g);
    r.out[i] = bias ? bias[c] : 0;
    r.bias_diff[c] += top_diff[i];
  }
  each_product(g, [&](size_t o, size_t i, size_t w) {
    r.out[o] += double(in[i]) * weight[w];
    r.bottom_diff[i] += double(top_diff[o]) * weight[w];
    r.weight_diff[w] += double(top_diff[o]) * in[i];
  });
  return r;
}

// ||a - b|| over ||b||, or over that of as many ones where b is smaller: sums of values about 1 may cancel. NaN where any element is.
template <typename T>
double relative_error(const T* a, const Values& b) {
  double error = 0, norm = 0;
  for (size_t i = 0; i < b.size(); ++i) {
    error += (a[i] - b[i]) * (a[i] - b[i]);
    norm += b[i] * b[i];
  }
  return std::sqrt(error / std::max(norm, double(b.size())));
}

}  // namespace reference
