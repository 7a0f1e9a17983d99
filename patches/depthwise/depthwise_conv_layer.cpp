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

#include "caffe/layers/depthwise_conv_layer.hpp"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "caffe/layer_factory.hpp"
#include "caffe/util/math_functions.hpp"

#ifdef _OPENMP
#include <omp.h>
#endif

// The loops over rows are vectorised by the compiler, whatever level the rest
// of Caffe is compiled at, and on x86 a second time for AVX2.
#if defined(__GNUC__) && !defined(__clang__)
#define DEPTHWISE_VECTORISED __attribute__((optimize("O3")))
#else
#define DEPTHWISE_VECTORISED
#endif
#if defined(__GNUC__) && defined(__x86_64__)
#define DEPTHWISE_AVX2
#define DEPTHWISE_TARGET_AVX2 __attribute__((target("avx2,fma")))
#endif
#if defined(__GNUC__)
#define DEPTHWISE_INLINE inline __attribute__((always_inline))
#else
#define DEPTHWISE_INLINE inline
#endif

namespace caffe {

namespace depthwise {

namespace {

// The columns [begin, end) for which column * stride + offset is in [0, width).
struct Columns {
  int begin, end;

  Columns(int count, int stride, int offset, int width) {
    begin = offset < 0 ? (-offset + stride - 1) / stride : 0;
    end = offset < width ? (width - 1 - offset) / stride + 1 : 0;
    end = std::min(end, count);
    begin = std::min(begin, end);
  }
};

// 32 bytes that may lie anywhere; the compiler makes of them what it has.
template <typename Dtype> struct Lanes;
template <> struct Lanes<float> {
  typedef float type __attribute__((vector_size(32), aligned(4), may_alias));
  // Every second element of two, in order.
  static DEPTHWISE_INLINE void split(const float* from, float* even,
      float* odd) {
    const type a = reinterpret_cast<const type*>(from)[0];
    const type b = reinterpret_cast<const type*>(from)[1];
    type* const first = reinterpret_cast<type*>(even);
    type* const second = reinterpret_cast<type*>(odd);
#ifdef __clang__
    *first = __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14);
    *second = __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15);
#else
    typedef int Mask __attribute__((vector_size(32)));
    const Mask evens = {0, 2, 4, 6, 8, 10, 12, 14};
    const Mask odds = {1, 3, 5, 7, 9, 11, 13, 15};
    *first = __builtin_shuffle(a, b, evens);
    *second = __builtin_shuffle(a, b, odds);
#endif
  }
};
template <> struct Lanes<double> {
  typedef double type __attribute__((vector_size(32), aligned(8), may_alias));
  static DEPTHWISE_INLINE void split(const double* from, double* even,
      double* odd) {
    for (int i = 0; i < 4; ++i) {
      even[i] = from[2 * i];
      odd[i] = from[2 * i + 1];
    }
  }
};

// Rows are too short for what calling memcpy costs.
template <typename Dtype>
DEPTHWISE_INLINE void copy_row(const Dtype* from, int count, Dtype* to) {
  typedef typename Lanes<Dtype>::type Vector;
  const int lanes = sizeof(Vector) / sizeof(Dtype);
  if (count < lanes) {
    for (int i = 0; i < count; ++i) { to[i] = from[i]; }
    return;
  }
  for (int i = 0; i <= count - lanes; i += lanes) {
    *reinterpret_cast<Vector*>(to + i) =
        *reinterpret_cast<const Vector*>(from + i);
  }
  *reinterpret_cast<Vector*>(to + count - lanes) =
      *reinterpret_cast<const Vector*>(from + count - lanes);
}

// even[i] = from[2 * i], odd[i] = from[2 * i + 1]
template <typename Dtype>
DEPTHWISE_INLINE void split_row(const Dtype* from, int count, Dtype* even,
    Dtype* odd) {
  const int lanes = sizeof(typename Lanes<Dtype>::type) / sizeof(Dtype);
  if (count < lanes) {
    for (int i = 0; i < count; ++i) {
      even[i] = from[2 * i];
      odd[i] = from[2 * i + 1];
    }
    return;
  }
  for (int i = 0; i <= count - lanes; i += lanes) {
    Lanes<Dtype>::split(from + 2 * i, even + i, odd + i);
  }
  const int last = count - lanes;
  Lanes<Dtype>::split(from + 2 * last, even + last, odd + last);
}

// How an input plane is laid out for a forward pass: padded with zeros, and cut
// by the strides into parts, so that what a tap reads for one output after the
// other stands in one run. A run goes on from row to row; what it computes
// between the last column of a row and the next row is not used.
struct Layout {
  int rows, columns;  // of a part
  int band;           // output rows that are computed at a time

  explicit Layout(const Shape& g)
      : rows(g.out_height + (g.kernel_h - 1) * g.dilation_h / g.stride_h),
        columns(g.out_width + (g.kernel_w - 1) * g.dilation_w / g.stride_w),
        band(std::min(g.out_height, 1 + 2048 / columns)) {}
  // Elements; a step of the taps may go on beyond what is needed.
  size_t parts(const Shape& g) const {
    return static_cast<size_t>(g.stride_h) * g.stride_w * rows * columns + 64;
  }
  size_t line() const { return static_cast<size_t>(band) * columns + 64; }
  // Where the tap's run starts.
  size_t offset(const Shape& g, int ky, int kx) const {
    const int down = ky * g.dilation_h, right = kx * g.dilation_w;
    const int part = down % g.stride_h * g.stride_w + right % g.stride_w;
    return static_cast<size_t>(part * rows + down / g.stride_h) * columns +
        right / g.stride_w;
  }
};

// What the planes of one shape need: where the taps' runs start, and memory for
// each thread, with zeros in it.
template <typename Dtype>
class Scratch {
 public:
  Scratch(const Shape& g, vector<size_t>* offsets, vector<Dtype>* memory)
      : layout(g), size_(layout.parts(g) + layout.line()), offsets_(offsets),
        memory_(memory) {
    offsets->clear();
    for (int ky = 0; ky < g.kernel_h; ++ky) {
      for (int kx = 0; kx < g.kernel_w; ++kx) {
        offsets->push_back(layout.offset(g, ky, kx));
      }
    }
#ifdef _OPENMP
    memory->assign(size_ * omp_get_max_threads(), Dtype(0));
#else
    memory->assign(size_, Dtype(0));
#endif
  }
  const size_t* offsets() const { return &(*offsets_)[0]; }
  // Of the calling thread.
  Dtype* memory() const {
#ifdef _OPENMP
    return &(*memory_)[size_ * omp_get_thread_num()];
#else
    return &(*memory_)[0];
#endif
  }

  const Layout layout;

 private:
  size_t size_;
  vector<size_t>* offsets_;
  vector<Dtype>* memory_;
};

template <typename Dtype>
DEPTHWISE_INLINE void lay_out(const Shape& g, const Layout& layout,
    const Dtype* in, Dtype* parts) {
  const size_t part = static_cast<size_t>(layout.rows) * layout.columns;
  for (int y = 0; y < g.height; ++y, in += g.width) {
    const int row = (y + g.pad_h) / g.stride_h;
    if (y + g.pad_h < 0 || row >= layout.rows) { continue; }
    Dtype* to = parts + (y + g.pad_h) % g.stride_h * g.stride_w * part +
        static_cast<size_t>(row) * layout.columns;
    for (int i = 0; i < g.stride_w; ++i, to += part) {
      const int offset = i - g.pad_w;
      const Columns all(layout.columns, g.stride_w, offset, g.width);
      const Dtype* const from = in + all.begin * g.stride_w + offset;
      if (g.stride_w == 1) {
        copy_row(from, all.end - all.begin, to + all.begin);
      } else if (g.stride_w == 2 && i == 0) {
        // This part and the next at once, as far as both go.
        const Columns next(layout.columns, 2, offset + 1, g.width);
        const int end = std::min(all.end, next.end);
        if (end > all.begin) {
          split_row(from, end - all.begin, to + all.begin,
              to + part + all.begin);
        }
        if (all.end > end) { to[end] = in[2 * end + offset]; }
        if (next.begin < all.begin) { to[part + next.begin] = in[0]; }
      } else if (g.stride_w != 2) {
        for (int x = all.begin; x < all.end; ++x) {
          to[x] = in[x * g.stride_w + offset];
        }
      }
    }
  }
}

// line[i] = bias + all taps at run[i]; some elements more than count.
template <int kTaps, typename Dtype>
DEPTHWISE_INLINE void run_taps(int taps, const size_t* offsets, int count,
    const Dtype* run, const Dtype* weight, Dtype bias, Dtype* line) {
  typedef typename Lanes<Dtype>::type Vector;
  const int step = 4 * sizeof(Vector) / sizeof(Dtype);
  if (kTaps) { taps = kTaps; }
  const Vector none = {};
  for (int i = 0; i < count; i += step) {
    Vector a = none + bias, b = a, c = a, d = a;
    for (int t = 0; t < taps; ++t) {
      const Vector* const from =
          reinterpret_cast<const Vector*>(run + offsets[t] + i);
      a += weight[t] * from[0];
      b += weight[t] * from[1];
      c += weight[t] * from[2];
      d += weight[t] * from[3];
    }
    Vector* const to = reinterpret_cast<Vector*>(line + i);
    to[0] = a;
    to[1] = b;
    to[2] = c;
    to[3] = d;
  }
}

template <typename Dtype>
DEPTHWISE_INLINE Dtype dot(int count, const Dtype* a, const Dtype* b,
    int stride) {
  // As many sums as a vector has places, or the order would forbid vectors.
  Dtype sum[16] = {0};
  int i = 0;
  if (stride == 1) {
    for (; i + 16 <= count; i += 16) {
      for (int j = 0; j < 16; ++j) { sum[j] += a[i + j] * b[i + j]; }
    }
  }
  Dtype total = 0;
  for (int j = 0; j < 16; ++j) { total += sum[j]; }
  for (; i < count; ++i) { total += a[i] * b[i * stride]; }
  return total;
}

template <typename Dtype>
DEPTHWISE_INLINE void forward_plane(const Shape& g,
    const Scratch<Dtype>& scratch, const Dtype* in, const Dtype* weight,
    Dtype bias, Dtype* out) {
  const Layout& layout = scratch.layout;
  Dtype* const parts = scratch.memory();
  Dtype* const line = parts + layout.parts(g);
  lay_out(g, layout, in, parts);
  const int taps = g.kernel_h * g.kernel_w;
  for (int y = 0; y < g.out_height; y += layout.band) {
    const int rows = std::min(layout.band, g.out_height - y);
    const int count = (rows - 1) * layout.columns + g.out_width;
    const Dtype* const run = parts + static_cast<size_t>(y) * layout.columns;
    if (taps == 9) {
      run_taps<9>(taps, scratch.offsets(), count, run, weight, bias, line);
    } else {
      run_taps<0>(taps, scratch.offsets(), count, run, weight, bias, line);
    }
    for (int i = 0; i < rows; ++i, out += g.out_width) {
      copy_row(line + i * layout.columns, g.out_width, out);
    }
  }
}

// Adds what one output plane passes down to the plane that it came from.
template <typename Dtype>
DEPTHWISE_INLINE void backward_plane(const Shape& g, const Dtype* top_diff,
    const Dtype* weight, Dtype* bottom_diff) {
  for (int ky = 0; ky < g.kernel_h; ++ky) {
    for (int kx = 0; kx < g.kernel_w; ++kx) {
      const Dtype tap = weight[ky * g.kernel_w + kx];
      const int down = ky * g.dilation_h - g.pad_h;
      const int right = kx * g.dilation_w - g.pad_w;
      const Columns rows(g.out_height, g.stride_h, down, g.height);
      const Columns all(g.out_width, g.stride_w, right, g.width);
      for (int y = rows.begin; y < rows.end; ++y) {
        const Dtype* const from = top_diff + y * g.out_width;
        Dtype* const to =
            bottom_diff + (y * g.stride_h + down) * g.width + right;
        if (g.stride_w == 1) {
          for (int x = all.begin; x < all.end; ++x) { to[x] += tap * from[x]; }
        } else {
          for (int x = all.begin; x < all.end; ++x) {
            to[x * g.stride_w] += tap * from[x];
          }
        }
      }
    }
  }
}

template <typename Dtype>
DEPTHWISE_INLINE void weights_plane(const Shape& g, const Dtype* in,
    const Dtype* top_diff, Dtype* weight_diff) {
  for (int ky = 0; ky < g.kernel_h; ++ky) {
    for (int kx = 0; kx < g.kernel_w; ++kx) {
      const int down = ky * g.dilation_h - g.pad_h;
      const int right = kx * g.dilation_w - g.pad_w;
      const Columns rows(g.out_height, g.stride_h, down, g.height);
      const Columns all(g.out_width, g.stride_w, right, g.width);
      Dtype sum = 0;
      for (int y = rows.begin; y < rows.end; ++y) {
        sum += dot(all.end - all.begin, top_diff + y * g.out_width + all.begin,
            in + (y * g.stride_h + down) * g.width +
            all.begin * g.stride_w + right, g.stride_w);
      }
      weight_diff[ky * g.kernel_w + kx] += sum;
    }
  }
}

// Each of the three, compiled for what the tree is compiled for and for AVX2.
#define DEPTHWISE_TWICE(name, parameters, arguments)                          \
  template <typename Dtype>                                                   \
  DEPTHWISE_VECTORISED void name##_plain parameters {                         \
    name arguments;                                                           \
  }                                                                           \
  DEPTHWISE_TWICE_AVX2(name, parameters, arguments)

#ifdef DEPTHWISE_AVX2
#define DEPTHWISE_TWICE_AVX2(name, parameters, arguments)                     \
  template <typename Dtype>                                                   \
  DEPTHWISE_VECTORISED DEPTHWISE_TARGET_AVX2 void name##_avx2 parameters {    \
    name arguments;                                                           \
  }                                                                           \
  template <typename Dtype>                                                   \
  void name##_best parameters {                                               \
    has_avx2() ? name##_avx2 arguments : name##_plain arguments;              \
  }

bool has_avx2() {
  static const bool has =
      __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  return has;
}
#else
#define DEPTHWISE_TWICE_AVX2(name, parameters, arguments)                     \
  template <typename Dtype>                                                   \
  void name##_best parameters { name##_plain arguments; }
#endif

DEPTHWISE_TWICE(forward_plane, (const Shape& g,
    const Scratch<Dtype>& scratch, const Dtype* in, const Dtype* weight,
    Dtype bias, Dtype* out), (g, scratch, in, weight, bias, out))
DEPTHWISE_TWICE(backward_plane, (const Shape& g, const Dtype* top_diff,
    const Dtype* weight, Dtype* bottom_diff),
    (g, top_diff, weight, bottom_diff))
DEPTHWISE_TWICE(weights_plane, (const Shape& g, const Dtype* in,
    const Dtype* top_diff, Dtype* weight_diff),
    (g, in, top_diff, weight_diff))

template <typename Dtype>
void forward_cpu(const Shape& g, const Dtype* in, const Dtype* weight,
    const Dtype* bias, Dtype* out, const Scratch<Dtype>& scratch) {
  const int channels = g.channels * g.multiplier;
  const int taps = g.kernel_h * g.kernel_w;
#ifdef _OPENMP
#pragma omp parallel for
#endif
  for (int plane = 0; plane < g.num * channels; ++plane) {
    const int channel = plane % channels;
    forward_plane_best(g, scratch,
        in + static_cast<size_t>(plane / g.multiplier) * g.height * g.width,
        weight + channel * taps, bias ? bias[channel] : Dtype(0),
        out + static_cast<size_t>(plane) * g.out_height * g.out_width);
  }
}

template <typename Dtype>
void backward_data_cpu(const Shape& g, const Dtype* top_diff,
    const Dtype* weight, Dtype* bottom_diff, vector<size_t>* offsets,
    vector<Dtype>* memory) {
  const int taps = g.kernel_h * g.kernel_w;
  const int area = g.height * g.width;
  // Nine taps and stride 1: a forward pass of the mirrored filter.
  const bool mirrors = taps == 9 && g.kernel_h == 3 && g.stride_h == 1 &&
      g.stride_w == 1 && g.dilation_h == 1 && g.dilation_w == 1 &&
      g.multiplier == 1;
  Shape m = g;
  std::swap(m.height, m.out_height);
  std::swap(m.width, m.out_width);
  m.pad_h = 2 - g.pad_h;
  m.pad_w = 2 - g.pad_w;
  const Scratch<Dtype> scratch(mirrors ? m : g, offsets, memory);
#ifdef _OPENMP
#pragma omp parallel for
#endif
  for (int plane = 0; plane < g.num * g.channels; ++plane) {
    Dtype* const to = bottom_diff + static_cast<size_t>(plane) * area;
    if (mirrors) {
      Dtype mirrored[9];
      std::reverse_copy(weight + plane % g.channels * 9,
          weight + plane % g.channels * 9 + 9, mirrored);
      forward_plane_best(m, scratch,
          top_diff + static_cast<size_t>(plane) * g.out_height * g.out_width,
          mirrored, Dtype(0), to);
      continue;
    }
    std::fill(to, to + area, Dtype(0));
    for (int m = 0; m < g.multiplier; ++m) {
      const int out = plane * g.multiplier + m;
      backward_plane_best(g,
          top_diff + static_cast<size_t>(out) * g.out_height * g.out_width,
          weight + out % (g.channels * g.multiplier) * taps, to);
    }
  }
}

// Adds to weight_diff and bias_diff; either may be NULL.
template <typename Dtype>
void backward_weights_cpu(const Shape& g, const Dtype* in,
    const Dtype* top_diff, Dtype* weight_diff, Dtype* bias_diff) {
  const int channels = g.channels * g.multiplier;
  const int taps = g.kernel_h * g.kernel_w;
  const int area = g.out_height * g.out_width;
#ifdef _OPENMP
#pragma omp parallel for
#endif
  for (int channel = 0; channel < channels; ++channel) {
    for (int n = 0; n < g.num; ++n) {
      const Dtype* const diff =
          top_diff + static_cast<size_t>(n * channels + channel) * area;
      if (weight_diff) {
        weights_plane_best(g, in + static_cast<size_t>(n * g.channels +
            channel / g.multiplier) * g.height * g.width, diff,
            weight_diff + channel * taps);
      }
      if (bias_diff) {
        Dtype sum = 0;
        for (int i = 0; i < area; ++i) { sum += diff[i]; }
        bias_diff[channel] += sum;
      }
    }
  }
}

// One of the two values of stride, pad or dilation. Read through reflection,
// because ConvolutionParameter has changed: these fields were single numbers
// before they were lists, and dilation and axis are younger than the rest.
int geometry(const ConvolutionParameter& param, const std::string& name,
    int axis, int otherwise) {
  const google::protobuf::Descriptor* const type = param.GetDescriptor();
  const google::protobuf::Reflection* const values = param.GetReflection();
  const google::protobuf::FieldDescriptor* field =
      type->FindFieldByName(name + (axis ? "_w" : "_h"));
  if (field && values->HasField(param, field)) {
    return values->GetUInt32(param, field);
  }
  field = type->FindFieldByName(name);
  if (!field) { return otherwise; }
  if (!field->is_repeated()) {
    return values->HasField(param, field) ? values->GetUInt32(param, field)
                                          : otherwise;
  }
  const int size = values->FieldSize(param, field);
  return size == 0 ? otherwise :
      values->GetRepeatedUInt32(param, field, size == 1 ? 0 : axis);
}

int channel_axis(const ConvolutionParameter& param, int axes) {
  const google::protobuf::FieldDescriptor* const field =
      param.GetDescriptor()->FindFieldByName("axis");
  const int axis =
      field ? param.GetReflection()->GetInt32(param, field) : 1;
  return axis < 0 ? axis + axes : axis;
}

}  // namespace

}  // namespace depthwise

template <typename Dtype>
shared_ptr<Layer<Dtype> > DepthwiseConvLayer<Dtype>::MakeConvolution(
    const LayerParameter& param, Creator otherwise) {
  const ConvolutionParameter& convolution = param.convolution_param();
  const char* const wish = std::getenv("CAFFE_AUTO_DEPTHWISE");
  if (convolution.group() == 1 ||
      convolution.engine() != ConvolutionParameter_Engine_DEFAULT ||
      (wish && std::string(wish) == "0")) {
    return otherwise(param);
  }
  return shared_ptr<Layer<Dtype> >(
      new DepthwiseConvLayer<Dtype>(param, otherwise));
}

template <typename Dtype>
bool DepthwiseConvLayer<Dtype>::is_depthwise(
    const Blob<Dtype>& bottom) const {
  const ConvolutionParameter& param = this->layer_param_.convolution_param();
  return bottom.num_axes() == 4 && depthwise::channel_axis(param, 4) == 1 &&
      param.group() == bottom.shape(1) &&
      param.num_output() % bottom.shape(1) == 0;
}

template <typename Dtype>
void DepthwiseConvLayer<Dtype>::LayerSetUp(
    const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {
  if (by_name()) {
    ConvolutionParameter* const param =
        this->layer_param_.mutable_convolution_param();
    const std::string& name = this->layer_param_.name();
    CHECK_EQ(bottom[0]->num_axes(), 4) << "Layer " << name << ": "
        << this->layer_param_.type() << " takes a bottom of 4 axes (num, "
        << "channels, height, width). Use type Convolution for other inputs.";
    CHECK_EQ(depthwise::channel_axis(*param, 4), 1) << "Layer " << name << ": "
        << this->layer_param_.type() << " needs axis 1 for the channels. Use "
        << "type Convolution for another axis.";
    const int channels = bottom[0]->shape(1);
    if (!param->has_group()) { param->set_group(channels); }
    if (!param->has_num_output()) { param->set_num_output(channels); }
    CHECK_EQ(param->group(), channels) << "Layer " << name << ": "
        << this->layer_param_.type() << " needs as many groups as the bottom "
        << "has channels. Use type Convolution for other groups.";
    CHECK_EQ(param->num_output() % channels, 0) << "Layer " << name << ": "
        << "num_output must be a multiple of the bottom's " << channels
        << " channels.";
  }
  depthwise_ = is_depthwise(*bottom[0]);
  bottom_size_.clear();
  other_.reset();
  if (depthwise_ && !by_name()) {
    LOG(INFO) << "Layer " << this->layer_param_.name() << " is depthwise: it is"
        << " computed directly (CAFFE_AUTO_DEPTHWISE=0 leaves it to groups).";
  }
  if (!depthwise_ && otherwise_) {
    other_ = otherwise_(this->layer_param_);
    other_->blobs() = this->blobs_;
    other_->LayerSetUp(bottom, top);
    this->blobs_ = other_->blobs();
    this->param_propagate_down_.resize(this->blobs_.size(), true);
  } else {
    ConvolutionLayer<Dtype>::LayerSetUp(bottom, top);
  }
}

// Whether nothing has changed since the last Reshape.
template <typename Dtype>
bool DepthwiseConvLayer<Dtype>::reshaped(
    const vector<Blob<Dtype>*>& bottom,
    const vector<Blob<Dtype>*>& top) const {
  for (size_t i = 0; i < bottom.size(); ++i) {
    if (bottom[i]->shape() != bottom_size_) { return false; }
  }
  for (size_t i = 0; i < top.size(); ++i) {
    if (top[i]->shape() != top_size_) { return false; }
  }
  return true;
}

template <typename Dtype>
void DepthwiseConvLayer<Dtype>::Reshape(
    const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {
  if (!depthwise_ && !other_) {
    return ConvolutionLayer<Dtype>::Reshape(bottom, top);
  }
  // The other layer's Forward reshapes again; through cuDNN that takes long.
  if (reshaped(bottom, top)) { return; }
  if (other_) {
    other_->Reshape(bottom, top);
  } else {
    ConvolutionLayer<Dtype>::Reshape(bottom, top);
  }
  bottom_size_ = bottom[0]->shape();
  top_size_ = top[0]->shape();
  if (other_) { return; }
  planned_ = false;

  const ConvolutionParameter& param = this->layer_param_.convolution_param();
  shape_.num = bottom_size_[0];
  shape_.channels = bottom_size_[1];
  shape_.multiplier = top_size_[1] / bottom_size_[1];
  shape_.height = bottom_size_[2];
  shape_.width = bottom_size_[3];
  shape_.out_height = top_size_[2];
  shape_.out_width = top_size_[3];
  shape_.kernel_h = this->blobs_[0]->shape(2);
  shape_.kernel_w = this->blobs_[0]->shape(3);
  shape_.stride_h = depthwise::geometry(param, "stride", 0, 1);
  shape_.stride_w = depthwise::geometry(param, "stride", 1, 1);
  shape_.pad_h = depthwise::geometry(param, "pad", 0, 0);
  shape_.pad_w = depthwise::geometry(param, "pad", 1, 0);
  shape_.dilation_h = depthwise::geometry(param, "dilation", 0, 1);
  shape_.dilation_w = depthwise::geometry(param, "dilation", 1, 1);
}

template <typename Dtype>
void DepthwiseConvLayer<Dtype>::other_backward(
    const vector<Blob<Dtype>*>& top, const vector<bool>& propagate_down,
    const vector<Blob<Dtype>*>& bottom) {
  for (size_t i = 0; i < this->blobs_.size(); ++i) {
    other_->set_param_propagate_down(i, this->param_propagate_down(i));
  }
  other_->Backward(top, propagate_down, bottom);
}

template <typename Dtype>
void DepthwiseConvLayer<Dtype>::Forward_cpu(
    const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {
  if (other_) {
    other_->Forward(bottom, top);
    return;
  }
  if (!depthwise_) { return ConvolutionLayer<Dtype>::Forward_cpu(bottom, top); }
  const depthwise::Scratch<Dtype> scratch(shape_, &offsets_, &scratch_);
  for (size_t i = 0; i < bottom.size(); ++i) {
    depthwise::forward_cpu(shape_, bottom[i]->cpu_data(),
        this->blobs_[0]->cpu_data(),
        this->bias_term_ ? this->blobs_[1]->cpu_data() : NULL,
        top[i]->mutable_cpu_data(), scratch);
  }
}

template <typename Dtype>
void DepthwiseConvLayer<Dtype>::Backward_cpu(
    const vector<Blob<Dtype>*>& top, const vector<bool>& propagate_down,
    const vector<Blob<Dtype>*>& bottom) {
  if (other_) { return other_backward(top, propagate_down, bottom); }
  if (!depthwise_) {
    return ConvolutionLayer<Dtype>::Backward_cpu(top, propagate_down, bottom);
  }
  Dtype* const weight_diff = this->param_propagate_down(0) ?
      this->blobs_[0]->mutable_cpu_diff() : NULL;
  Dtype* const bias_diff = this->bias_term_ && this->param_propagate_down(1) ?
      this->blobs_[1]->mutable_cpu_diff() : NULL;
  for (size_t i = 0; i < top.size(); ++i) {
    const Dtype* const top_diff = top[i]->cpu_diff();
    if (weight_diff || bias_diff) {
      depthwise::backward_weights_cpu(shape_, bottom[i]->cpu_data(), top_diff,
          weight_diff, bias_diff);
    }
    if (propagate_down[i]) {
      depthwise::backward_data_cpu(shape_, top_diff,
          this->blobs_[0]->cpu_data(), bottom[i]->mutable_cpu_diff(),
          &offsets_, &scratch_);
    }
  }
}

#ifdef CPU_ONLY
STUB_GPU(DepthwiseConvLayer);
#endif

INSTANTIATE_CLASS(DepthwiseConvLayer);

template <typename Dtype>
shared_ptr<Layer<Dtype> > MakeDepthwiseConvolution(
    const LayerParameter& param) {
  return shared_ptr<Layer<Dtype> >(new DepthwiseConvLayer<Dtype>(param));
}
// Over two lines each: by that caffeup tells them from those of another layer,
// and a name that is registered twice ends every program at its start.
REGISTER_LAYER_CREATOR(
    DepthwiseConvolution, MakeDepthwiseConvolution);
REGISTER_LAYER_CREATOR(
    ConvolutionDepthwise, MakeDepthwiseConvolution);

}  // namespace caffe
