// Times the depthwise kernels beside a plain copy, and cuDNN's grouped convolution where WITH_CUDNN is defined; checks every result first.
//
//   bench [--tune TRIES [--samples FILE]] [--batches 1,64] [--only TEXT] [--json FILE]
//
// A time is the median over replays of a CUDA graph of many launches, divided by their number. At large batches the launches rotate among
// so many sets of tensors that no set is still in the L2 cache; at batch 1 the one set stays in it, as it does between layers of a net.
#define DEPTHWISE_CONV_STANDALONE
#include "depthwise_conv_layer.cu"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "layers.hpp"
#include "reference.hpp"
#ifdef WITH_CUDNN
#include <cudnn.h>
#endif

using namespace caffe::depthwise;

#define MUST(call)                                                                                       \
  do {                                                                                                   \
    const cudaError_t error = (call);                                                                    \
    if (error != cudaSuccess) { printf("%s:%d %s\n", __FILE__, __LINE__, cudaGetErrorString(error)); exit(2); } \
  } while (0)

namespace {

cudaStream_t stream;
FILE* samples;
Gpu gpu;

__global__ void fill(float* to, size_t count, unsigned seed) {
  for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < count; i += size_t(blockDim.x) * gridDim.x) {
    unsigned h = unsigned(i) * 2654435761u + seed;
    h ^= h >> 16; h *= 0x85ebca6bu; h ^= h >> 13; h *= 0xc2b2ae35u; h ^= h >> 16;
    to[i] = h * (2.0f / 4294967296.0f) - 1.0f;
  }
}
__global__ void empty() {}

// The definition, a thread an element, in double.
__global__ void naive(Shape g, int what, size_t count, const float* in, const float* weight, const float* top_diff, double* result) {
  const int kernel = g.kernel_h;
  for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < count; i += size_t(blockDim.x) * gridDim.x) {
    double sum = 0;
    if (what == 0) {
      const int x = i % g.out_width, y = i / g.out_width % g.out_height;
      const size_t plane = i / g.out_width / g.out_height;
      for (int ky = 0; ky < kernel; ++ky) for (int kx = 0; kx < kernel; ++kx) {
        const int r = y * g.stride_h - g.pad_h + ky, c = x * g.stride_w - g.pad_w + kx;
        if (r >= 0 && r < g.height && c >= 0 && c < g.width)
          sum += double(in[(plane * g.height + r) * g.width + c]) * weight[(plane % g.channels * kernel + ky) * kernel + kx];
      }
    } else if (what == 1) {
      const int x = i % g.width, y = i / g.width % g.height;
      const size_t plane = i / g.width / g.height;
      for (int ky = 0; ky < kernel; ++ky) for (int kx = 0; kx < kernel; ++kx) {
        const int r = y + g.pad_h - ky, c = x + g.pad_w - kx;
        if (r >= 0 && r % g.stride_h == 0 && r / g.stride_h < g.out_height && c >= 0 && c % g.stride_w == 0 && c / g.stride_w < g.out_width)
          sum += double(top_diff[(plane * g.out_height + r / g.stride_h) * g.out_width + c / g.stride_w]) *
                 weight[(plane % g.channels * kernel + ky) * kernel + kx];
      }
    } else {  // a thread one weight of one image row: result is added to by atomics
      const int taps = kernel * kernel + 1, tap = i % taps;
      const size_t line = i / taps, plane = line / g.out_height;
      const int y = line % g.out_height, ky = tap / kernel, kx = tap % kernel, channel = plane % g.channels;
      const int r = y * g.stride_h - g.pad_h + ky;
      for (int x = 0; x < g.out_width; ++x) {
        const int c = x * g.stride_w - g.pad_w + kx;
        const double d = top_diff[(plane * g.out_height + y) * g.out_width + x];
        if (tap == taps - 1) sum += d;
        else if (r >= 0 && r < g.height && c >= 0 && c < g.width) sum += d * in[(plane * g.height + r) * g.width + c];
      }
      atomicAdd(&result[tap == taps - 1 ? g.channels * (taps - 1) + channel : channel * (taps - 1) + tap], sum);
      continue;
    }
    result[i] = sum;
  }
}

__global__ void squares(const float* a, const double* b, size_t count, double* sums) {
  double error = 0, norm = 0;
  for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < count; i += size_t(blockDim.x) * gridDim.x) {
    error += (a[i] - b[i]) * (a[i] - b[i]);
    norm += b[i] * b[i];
  }
  atomicAdd(&sums[0], error);
  atomicAdd(&sums[1], norm);
}

__global__ void fingerprint(const unsigned* bits, size_t count, unsigned long long* sum) {
  unsigned long long mine = 0;
  for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < count; i += size_t(blockDim.x) * gridDim.x) {
    mine += bits[i] * (i * 2654435761u + 1);
  }
  atomicAdd(sum, mine);
}

struct Tensors {
  float *in, *top_diff, *out, *bottom_diff;
};

float* device_floats(size_t count, unsigned seed) {
  float* p;
  MUST(cudaMalloc(&p, (count + 1) * sizeof(float)));
  fill<<<1024, 256, 0, stream>>>(p, count, seed);
  return p;
}

// Microseconds a launch. launch(i) issues the work on tensor set i.
double measure(const std::function<void(int)>& launch, int sets, bool quick) {
  launch(0);
  MUST(cudaStreamSynchronize(stream));
  cudaEvent_t a, b;
  MUST(cudaEventCreate(&a));
  MUST(cudaEventCreate(&b));
  float once;
  MUST(cudaEventRecord(a, stream));
  launch(1 % sets);
  MUST(cudaEventRecord(b, stream));
  MUST(cudaEventSynchronize(b));
  MUST(cudaEventElapsedTime(&once, a, b));
  const int wanted = std::min(64, std::max(4, int((quick ? 0.25 : 0.5) / std::max(once, 1e-3f))));
  const int launches = (wanted + sets - 1) / sets * sets;
  cudaGraph_t graph;
  cudaGraphExec_t replay;
  MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
  for (int i = 0; i < launches; ++i) launch(i % sets);
  MUST(cudaStreamEndCapture(stream, &graph));
  MUST(cudaGraphInstantiate(&replay, graph, 0));
  std::vector<float> times;
  for (int i = 0; i < (quick ? 8 : 24); ++i) {
    MUST(cudaEventRecord(a, stream));
    MUST(cudaGraphLaunch(replay, stream));
    MUST(cudaEventRecord(b, stream));
    MUST(cudaEventSynchronize(b));
    float ms;
    MUST(cudaEventElapsedTime(&ms, a, b));
    if (i >= 3) times.push_back(ms);
  }
  std::sort(times.begin(), times.end());
  MUST(cudaGraphExecDestroy(replay));
  MUST(cudaGraphDestroy(graph));
  MUST(cudaEventDestroy(a));
  MUST(cudaEventDestroy(b));
  return 1e3 * times[times.size() / 2] / launches;
}

#ifdef WITH_CUDNN
#define CUDNN_MUST(call)                                                                                       \
  do {                                                                                                         \
    const cudnnStatus_t status = (call);                                                                       \
    if (status != CUDNN_STATUS_SUCCESS) { printf("%s:%d %s\n", __FILE__, __LINE__, cudnnGetErrorString(status)); exit(2); } \
  } while (0)

// cuDNN's grouped convolution with the algorithm that its own search finds fastest.
struct Cudnn {
  cudnnHandle_t handle;
  cudnnTensorDescriptor_t in, out;
  cudnnFilterDescriptor_t filter;
  cudnnConvolutionDescriptor_t convolution;
  void* workspace;
  size_t size;

  Cudnn() : workspace(NULL), size(0) {
    CUDNN_MUST(cudnnCreate(&handle));
    CUDNN_MUST(cudnnSetStream(handle, stream));
    CUDNN_MUST(cudnnCreateTensorDescriptor(&in));
    CUDNN_MUST(cudnnCreateTensorDescriptor(&out));
    CUDNN_MUST(cudnnCreateFilterDescriptor(&filter));
    CUDNN_MUST(cudnnCreateConvolutionDescriptor(&convolution));
    size = size_t(4) << 30;
    MUST(cudaMalloc(&workspace, size));
  }
  void set(const Shape& g) {
    CUDNN_MUST(cudnnSetTensor4dDescriptor(in, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, g.num, g.channels, g.height, g.width));
    CUDNN_MUST(cudnnSetTensor4dDescriptor(out, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, g.num, g.channels, g.out_height, g.out_width));
    CUDNN_MUST(cudnnSetFilter4dDescriptor(filter, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, g.channels, 1, g.kernel_h, g.kernel_w));
    CUDNN_MUST(cudnnSetConvolution2dDescriptor(convolution, g.pad_h, g.pad_w, g.stride_h, g.stride_w, 1, 1, CUDNN_CROSS_CORRELATION,
                                               CUDNN_DATA_FLOAT));
    CUDNN_MUST(cudnnSetConvolutionGroupCount(convolution, g.channels));
  }
  std::vector<double> times(const Shape& g, const std::vector<Tensors>& t, const float* weight, float* weight_diff) {
    set(g);
    const float one = 1, zero = 0;
    const int sets = t.size();
    std::vector<double> result;
    int found;
    cudnnConvolutionFwdAlgoPerf_t f[8];
    CUDNN_MUST(cudnnFindConvolutionForwardAlgorithmEx(handle, in, t[0].in, filter, weight, convolution, out, t[0].out, 8, &found, f, workspace, size));
    result.push_back(measure([&](int i) {
      CUDNN_MUST(cudnnConvolutionForward(handle, &one, in, t[i].in, filter, weight, convolution, f[0].algo, workspace, size, &zero, out, t[i].out));
    }, sets, true));
    cudnnConvolutionBwdDataAlgoPerf_t d[8];
    CUDNN_MUST(cudnnFindConvolutionBackwardDataAlgorithmEx(handle, filter, weight, out, t[0].top_diff, convolution, in, t[0].bottom_diff, 8, &found, d,
                                                           workspace, size));
    result.push_back(measure([&](int i) {
      CUDNN_MUST(cudnnConvolutionBackwardData(handle, &one, filter, weight, out, t[i].top_diff, convolution, d[0].algo, workspace, size, &zero, in,
                                              t[i].bottom_diff));
    }, sets, true));
    cudnnConvolutionBwdFilterAlgoPerf_t w[8];
    CUDNN_MUST(cudnnFindConvolutionBackwardFilterAlgorithmEx(handle, in, t[0].in, out, t[0].top_diff, convolution, filter, weight_diff, 8, &found, w,
                                                             workspace, size));
    result.push_back(measure([&](int i) {
      CUDNN_MUST(cudnnConvolutionBackwardFilter(handle, &one, in, t[i].in, out, t[i].top_diff, convolution, w[0].algo, workspace, size, &zero, filter,
                                                weight_diff));
    }, sets, true));
    return result;
  }
};
#endif

struct Bench {
  Shape g;
  int processors;
  std::vector<Tensors> t;
  float *weight, *bias, *weight_diff, *partial;
  unsigned* finished;

  Bench(const LayerShape& layer, int batch, int processor_count) : processors(processor_count) {
    g = reference::make_shape(batch, layer.channels, 1, layer.size, layer.size, layer.kernel, layer.kernel, layer.stride, layer.stride,
                              layer.kernel / 2, layer.kernel / 2);
    const size_t bytes = 4 * (reference::in_count(g) + reference::out_count(g));
    const int sets = batch < 8 ? 1 : std::min<size_t>(16, std::max<size_t>(2, (size_t(256) << 20) / bytes + 1));
    for (int i = 0; i < sets; ++i) {
      Tensors s = {device_floats(reference::in_count(g), 4 * i), device_floats(reference::out_count(g), 4 * i + 1),
                   device_floats(reference::out_count(g), 4 * i + 2), device_floats(reference::in_count(g), 4 * i + 3)};
      t.push_back(s);
    }
    weight = device_floats(reference::weight_count(g), 91);
    bias = device_floats(g.channels, 92);
    weight_diff = device_floats(reference::weight_count(g) + g.channels, 93);
    partial = device_floats(size_t(g.channels) * g.num * g.out_height * (layer.kernel * layer.kernel + 1), 94);
    MUST(cudaMalloc(&finished, g.channels * sizeof(unsigned)));
    MUST(cudaMemsetAsync(finished, 0, g.channels * sizeof(unsigned), stream));
    MUST(cudaStreamSynchronize(stream));
  }
  ~Bench() {
    for (const Tensors& s : t) for (float* p : {s.in, s.top_diff, s.out, s.bottom_diff}) MUST(cudaFree(p));
    for (float* p : {weight, bias, weight_diff, partial}) MUST(cudaFree(p));
    MUST(cudaFree(finished));
  }

  void run(int direction, const Plan& plan, int i) {
    if (direction == 0) forward<float>(g, plan, t[i].in, weight, bias, t[i].out, stream);
    if (direction == 1) backward_data<float>(g, plan, t[i].top_diff, weight, t[i].bottom_diff, stream);
    if (direction == 2)
      backward_weights<float>(g, plan, t[i].in, t[i].top_diff, weight_diff, weight_diff + reference::weight_count(g), partial, finished, stream);
    MUST(cudaGetLastError());
  }
  double time(int direction, const Plan& plan, bool quick) {
    return measure([&](int i) { run(direction, plan, i); }, t.size(), quick);
  }
  double copy(bool output, bool quick) {
    const size_t bytes = 4 * (output ? reference::out_count(g) : reference::in_count(g));
    return measure([&](int i) {
      MUST(cudaMemcpyAsync(output ? t[i].out : t[i].bottom_diff, output ? t[i].top_diff : t[i].in, bytes, cudaMemcpyDeviceToDevice, stream));
    }, t.size(), quick);
  }

  // The largest relative error of the three directions against the definition, and a sum over the results' bits.
  double error(const Plan& plan, unsigned long long* bits) {
    double worst = 0;
    unsigned long long* print;
    MUST(cudaMalloc(&print, sizeof(*print)));
    MUST(cudaMemsetAsync(print, 0, sizeof(*print), stream));
    for (int direction = 0; direction < 3; ++direction) {
      const size_t count = direction == 0 ? reference::out_count(g) : direction == 1 ? reference::in_count(g) : reference::weight_count(g) + g.channels;
      double *expected, *sums, host[2];
      MUST(cudaMalloc(&expected, count * sizeof(double)));
      MUST(cudaMalloc(&sums, sizeof(host)));
      MUST(cudaMemsetAsync(expected, 0, count * sizeof(double), stream));
      MUST(cudaMemsetAsync(sums, 0, sizeof(host), stream));
      float* const result = direction == 0 ? t[0].out : direction == 1 ? t[0].bottom_diff : weight_diff;
      MUST(cudaMemsetAsync(result, direction == 2 ? 0 : 0xff, count * sizeof(float), stream));
      const size_t work = direction == 2 ? size_t(g.num) * g.channels * g.out_height * (g.kernel_h * g.kernel_w + 1) : count;
      naive<<<2048, 256, 0, stream>>>(g, direction, work, t[0].in, weight, t[0].top_diff, expected);
      const float* no_bias = NULL;
      if (direction == 0) forward<float>(g, plan, t[0].in, weight, no_bias, t[0].out, stream);
      else run(direction, plan, 0);
      fingerprint<<<256, 256, 0, stream>>>(reinterpret_cast<unsigned*>(result), count, print);
      squares<<<256, 256, 0, stream>>>(result, expected, count, sums);
      MUST(cudaMemcpyAsync(host, sums, sizeof(host), cudaMemcpyDeviceToHost, stream));
      MUST(cudaStreamSynchronize(stream));
      MUST(cudaFree(expected));
      MUST(cudaFree(sums));
      const double e = sqrt(host[0] / host[1]);
      if (!(e <= worst)) worst = e;
    }
    MUST(cudaMemcpy(bits, print, sizeof(*print), cudaMemcpyDeviceToHost));
    MUST(cudaFree(print));
    return worst;
  }
};

std::string describe(int direction, const Plan& p) {
  char text[100];
  const TilePlan& t = direction == 0 ? p.forward : direction == 1 ? p.backward : p.weights;
  const int end = snprintf(text, sizeof(text), "p%d r%d w%d t%d s%d", t.planes, t.rows, t.walk, t.threads, t.stages);
  if (direction == 2) snprintf(text + end, sizeof(text) - end, " n%d", p.weight_images);
  return text;
}

// The fastest plan found by trying many, for judging the cost that chooses.
std::pair<double, Plan> tune(Bench& bench, int direction, const Plan& start, int tries) {
  const Traffic traffic = direction == 0 ? forward_traffic(bench.g) : direction == 1 ? backward_traffic(bench.g) : weights_traffic(bench.g);
  const std::vector<TilePlan> tiles = tile_plans(traffic, 4);
  std::pair<double, Plan> best(1e30, start);
  for (int i = 0; i < tries; ++i) {
    Plan p = start;
    TilePlan& tile = direction == 0 ? p.forward : direction == 1 ? p.backward : p.weights;
    do tile = tiles[rand() % tiles.size()]; while ((tile.threads < 64 || tile.walk < 3) && rand() % 8);
    if (direction == 2) {
      const int blocks = ceil_div(traffic.planes, tile.planes) * ceil_div(traffic.height, tile.rows);
      const int wanted = (1 + rand() % 8) * 132 * (rand() % 3 ? 1 : 4);
      p.weight_images = std::max(1, std::min(bench.g.num, int(double(blocks) * bench.g.num / wanted + 0.5)));
    } else if (tile.stages > 1) {
      plan_cost(traffic, 1, 4, gpu, &tile);
    }
    const double time = bench.time(direction, p, true);
    if (time < best.first) best = std::make_pair(time, p);
    if (samples) {
      fprintf(samples, "%d %d %d %d %d %d  %d %d %d %d %d %d %.3f\n", bench.g.num, bench.g.channels, bench.g.height, bench.g.kernel_h,
              bench.g.stride_h, direction, tile.planes, tile.rows, tile.walk, tile.threads, direction == 2 ? p.weight_images : 0, tile.stages, time);
    }
  }
  return best;
}

}  // namespace

int main(int argc, char** argv) {
  int tries = 0;
  std::vector<int> batches = {1, 64};
  FILE* json = NULL;
  const char* only = "";
  for (int i = 1; i < argc; ++i) {
    if (!strcmp(argv[i], "--tune") && i + 1 < argc) tries = atoi(argv[++i]);
    if (!strcmp(argv[i], "--samples") && i + 1 < argc) samples = fopen(argv[++i], "w");
    if (!strcmp(argv[i], "--only") && i + 1 < argc) only = argv[++i];
    if (!strcmp(argv[i], "--json") && i + 1 < argc) json = fopen(argv[++i], "w");
    if (!strcmp(argv[i], "--batches") && i + 1 < argc) {
      batches.clear();
      for (char* p = strtok(argv[++i], ","); p; p = strtok(NULL, ",")) batches.push_back(atoi(p));
    }
  }
  cudaDeviceProp device;
  MUST(cudaGetDeviceProperties(&device, 0));
  gpu.processors = device.multiProcessorCount;
  gpu.shared_bytes = device.sharedMemPerMultiprocessor;
  MUST(cudaStreamCreate(&stream));
  const double launch = measure([](int) { empty<<<1, 32, 0, stream>>>(); }, 1, false);
  printf("%s, %d multiprocessors, L2 %d MB, an empty kernel %.2f us\n", device.name, device.multiProcessorCount, device.l2CacheSize >> 20, launch);
#ifdef WITH_CUDNN
  Cudnn cudnn;
  printf("cuDNN %zu\n", cudnnGetVersion());
#endif
  for (int batch : batches) {
    printf("batch %d, us; bound = the tensors' bytes at the copy rate\n", batch);
    const char* last_net = "";
    for (const LayerShape& layer : kLayers) {
      if (!strstr((std::string(layer.net) + ":" + layer.name).c_str(), only)) continue;
      if (tries && !strcmp(layer.net, "v2-224")) continue;
      Bench bench(layer, batch, device.multiProcessorCount);
      const Plan plan = make_plan(bench.g, 4, gpu);
      unsigned long long bits, again;
      const double error = bench.error(plan, &bits);
      bench.error(plan, &again);
      if (strcmp(last_net, layer.net)) printf("%s\n", last_net = layer.net);
      const double copy = bench.copy(false, false);
      const double ratio = double(reference::in_count(bench.g) + reference::out_count(bench.g)) / (2 * reference::in_count(bench.g));
      printf("%-13s %4d x %3d k%d s%d copy %6.2f bound %6.2f err %.0e%s", layer.name, layer.channels, layer.size, layer.kernel, layer.stride, copy,
             copy * ratio, error, !(error < 1e-5) ? " WRONG" : bits != again ? " DIFFERS" : "");
      double times[3];
      for (int d = 0; d < 3; ++d) {
        times[d] = bench.time(d, plan, false);
        printf(" | %7.2f %4.2f %s", times[d], times[d] / (copy * ratio), tries ? describe(d, plan).c_str() : "");
        if (tries) {
          const std::pair<double, Plan> best = tune(bench, d, plan, tries);
          printf(" (%6.2f %4.2f %s)", best.first, best.first / (copy * ratio), describe(d, best.second).c_str());
        }
        fflush(stdout);
      }
      std::vector<double> cudnn_times(3, 0);
#ifdef WITH_CUDNN
      cudnn_times = cudnn.times(bench.g, bench.t, bench.weight, bench.weight_diff);
      printf(" | cudnn %.1f %.1f %.1f", cudnn_times[0], cudnn_times[1], cudnn_times[2]);
#endif
      printf("\n");
      if (json) {
        fprintf(json, "{\"net\":\"%s\",\"layer\":\"%s\",\"batch\":%d,\"channels\":%d,\"size\":%d,\"kernel\":%d,\"stride\":%d,\"sets\":%d,"
                "\"launch\":%.3f,\"copy\":%.3f,\"bound\":%.3f,\"error\":%.3g,\"ours\":[%.3f,%.3f,%.3f],\"cudnn\":[%.3f,%.3f,%.3f]}\n",
                layer.net, layer.name, batch, layer.channels, layer.size, layer.kernel, layer.stride, int(bench.t.size()), launch, copy,
                copy * ratio, error, times[0], times[1], times[2], cudnn_times[0], cudnn_times[1], cudnn_times[2]);
      }
    }
  }
  if (json) fclose(json);
  return 0;
}
