// Times the layer on the CPU beside the tree's own Convolution, for the layers of MobileNet-SSD. Links with a Caffe that has the layer.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <vector>

#include "caffe/caffe.hpp"
#include "caffe/layers/depthwise_conv_layer.hpp"
#include "layers.hpp"

using namespace caffe;  // NOLINT(build/namespaces)

static double milliseconds(const std::function<void()>& run) {
  std::vector<double> times;
  for (int i = 0; i < 7; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    run();
    times.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() * 1e3);
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

int main(int argc, char** argv) {
  FLAGS_minloglevel = 2;
  const int batch = argc > 1 ? atoi(argv[1]) : 1;
  Caffe::set_mode(Caffe::CPU);
  double sums[4] = {0};
  printf("batch %d, ms: forward ours, groups, ratio | backward ours, groups, ratio\n", batch);
  for (const LayerShape& layer : kLayers) {
    if (std::string(layer.net) != "ssd300") continue;
    LayerParameter param;
    param.set_type("Convolution");
    ConvolutionParameter* conv = param.mutable_convolution_param();
    conv->set_num_output(layer.channels);
    conv->set_group(layer.channels);
    conv->set_kernel_h(layer.kernel);
    conv->set_kernel_w(layer.kernel);
    conv->set_pad_h(layer.kernel / 2);
    conv->set_pad_w(layer.kernel / 2);
    conv->set_stride_h(layer.stride);
    conv->set_stride_w(layer.stride);
    conv->mutable_weight_filler()->set_type("gaussian");
    double times[4];
    for (int own = 0; own < 2; ++own) {
      shared_ptr<Layer<float> > l(own ? new DepthwiseConvLayer<float>(param) : new ConvolutionLayer<float>(param));
      Blob<float> bottom(batch, layer.channels, layer.size, layer.size), top;
      FillerParameter filler;
      GaussianFiller<float>(filler).Fill(&bottom);
      vector<Blob<float>*> bottoms(1, &bottom), tops(1, &top);
      l->SetUp(bottoms, tops);
      times[own] = milliseconds([&] { l->Forward(bottoms, tops); });
      caffe_set(top.count(), 1.f, top.mutable_cpu_diff());
      times[2 + own] = milliseconds([&] { l->Backward(tops, vector<bool>(1, true), bottoms); });
    }
    printf("%-12s %4d x %3d s%d: %8.3f %8.3f %5.1f | %8.3f %8.3f %5.1f\n", layer.name, layer.channels, layer.size, layer.stride, times[1],
           times[0], times[0] / times[1], times[3], times[2], times[2] / times[3]);
    for (int i = 0; i < 4; ++i) sums[i] += times[i];
  }
  printf("together: %.2f %.2f %.1f | %.2f %.2f %.1f\n", sums[1], sums[0], sums[0] / sums[1], sums[3], sums[2], sums[2] / sums[3]);
  return 0;
}
