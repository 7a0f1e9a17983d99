// What each algorithm of cuDNN takes for one convolution, how exact it is, and where cuDNN's own order puts it:
//   nvcc -O2 -std=c++17 algorithms.cpp -lcudnn -lcublas -o algorithms && ./algorithms [BATCH …]
// A line for a shape, direction and algorithm: place in the order of cudnnGetConvolution…Algorithm_v7, workspace in KiB, microseconds on
// the GPU (calls one after another, from events) and alone (with a wait after each, as `caffe time` does), and the difference from the
// same in double, as norms. Math is float's own (CUDNN_FMA_MATH). The first line of a shape of 1x1 is cuBLAS's product, image by image.
#include <cublas_v2.h>
#include <cuda_runtime.h>
#include <cudnn.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <random>
#include <vector>

#define CHECK(call)                                                            \
  do {                                                                         \
    const int status_ = static_cast<int>(call);                                \
    if (status_) { printf("%s: %d\n", #call, status_); exit(1); }              \
  } while (0)

struct Shape { int channels, size, outputs, kernel, stride; };

// The convolutions of MobileNet-SSD 300x300 that are not depthwise, and some that need workspaces.
const Shape kShapes[] = {
    {3, 300, 32, 3, 2},   {32, 150, 64, 1, 1},  {64, 75, 128, 1, 1},   {128, 75, 128, 1, 1},  {128, 38, 256, 1, 1},
    {256, 38, 256, 1, 1}, {256, 19, 512, 1, 1}, {512, 19, 512, 1, 1},  {512, 10, 1024, 1, 1}, {1024, 10, 1024, 1, 1},
    {1024, 10, 256, 1, 1}, {256, 10, 512, 3, 2}, {512, 5, 128, 1, 1},  {128, 5, 256, 3, 2},   {1024, 10, 126, 1, 1},
    {3, 64, 32, 5, 1},    {32, 32, 64, 3, 1},   {64, 32, 32, 1, 1},    {64, 38, 64, 3, 1},
};

template <typename T> struct Array {
  T* data;
  size_t count;
  explicit Array(size_t n) : count(n) { CHECK(cudaMalloc(&data, n * sizeof(T))); }
  ~Array() { cudaFree(data); }
  void fill(const std::vector<double>& values) {
    std::vector<T> host(values.begin(), values.end());
    CHECK(cudaMemcpy(data, host.data(), count * sizeof(T), cudaMemcpyHostToDevice));
  }
  std::vector<double> values() const {
    std::vector<T> host(count);
    CHECK(cudaMemcpy(host.data(), data, count * sizeof(T), cudaMemcpyDeviceToHost));
    return std::vector<double>(host.begin(), host.end());
  }
};

std::vector<double> normal(size_t n, double deviation, int seed) {
  std::mt19937 engine(seed);
  std::normal_distribution<double> draw(0, deviation);
  std::vector<double> out(n);
  for (double& one : out) one = static_cast<float>(draw(engine));
  return out;
}

double away(const std::vector<double>& got, const std::vector<double>& want) {
  double difference = 0, size = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    difference += (got[i] - want[i]) * (got[i] - want[i]);
    size += want[i] * want[i];
  }
  return std::sqrt(difference / size);
}

// Descriptors and tensors of one shape, in one type.
template <typename T> struct Convolution {
  cudnnTensorDescriptor_t x, y;
  cudnnFilterDescriptor_t w;
  cudnnConvolutionDescriptor_t conv;
  Array<T> xs, ws, ys, dxs, dws;
  Convolution(const Shape& s, int batch, int out)
      : xs(size_t(batch) * s.channels * s.size * s.size), ws(size_t(s.outputs) * s.channels * s.kernel * s.kernel),
        ys(size_t(batch) * s.outputs * out * out), dxs(xs.count), dws(ws.count) {
    const cudnnDataType_t type = sizeof(T) == 4 ? CUDNN_DATA_FLOAT : CUDNN_DATA_DOUBLE;
    CHECK(cudnnCreateTensorDescriptor(&x));
    CHECK(cudnnCreateTensorDescriptor(&y));
    CHECK(cudnnCreateFilterDescriptor(&w));
    CHECK(cudnnCreateConvolutionDescriptor(&conv));
    CHECK(cudnnSetTensor4dDescriptor(x, CUDNN_TENSOR_NCHW, type, batch, s.channels, s.size, s.size));
    CHECK(cudnnSetTensor4dDescriptor(y, CUDNN_TENSOR_NCHW, type, batch, s.outputs, out, out));
    CHECK(cudnnSetFilter4dDescriptor(w, type, CUDNN_TENSOR_NCHW, s.outputs, s.channels, s.kernel, s.kernel));
    CHECK(cudnnSetConvolution2dDescriptor(conv, s.kernel / 2, s.kernel / 2, s.stride, s.stride, 1, 1, CUDNN_CROSS_CORRELATION, type));
    CHECK(cudnnSetConvolutionMathType(conv, CUDNN_FMA_MATH));
    xs.fill(normal(xs.count, 1, 1));
    ws.fill(normal(ws.count, std::sqrt(2.0 / (s.channels * s.kernel * s.kernel)), 2));
    ys.fill(normal(ys.count, 1, 3));
  }
};

struct Times { double together, alone; };

Times measure(const std::function<void()>& run) {
  for (int i = 0; i < 3; ++i) run();
  CHECK(cudaDeviceSynchronize());
  cudaEvent_t begin, end;
  CHECK(cudaEventCreate(&begin));
  CHECK(cudaEventCreate(&end));
  const int calls = 20;
  std::vector<double> together, alone;
  for (int round = 0; round < 5; ++round) {
    CHECK(cudaEventRecord(begin));
    for (int i = 0; i < calls; ++i) run();
    CHECK(cudaEventRecord(end));
    CHECK(cudaEventSynchronize(end));
    float ms = 0;
    CHECK(cudaEventElapsedTime(&ms, begin, end));
    together.push_back(1e3 * ms / calls);
    for (int i = 0; i < 5; ++i) {
      const auto from = std::chrono::steady_clock::now();
      run();
      CHECK(cudaDeviceSynchronize());
      alone.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - from).count() * 1e6);
    }
  }
  std::sort(together.begin(), together.end());
  std::sort(alone.begin(), alone.end());
  return {together[together.size() / 2], alone[alone.size() / 2]};
}

void line(const Shape& s, int batch, const char* direction, int place, int algorithm, size_t bytes, const Times& t, double error) {
  printf("%3d x %4d x %3d -> %4d k%d s%d  %-15s %2d algo %d %8zu KiB %9.1f %9.1f us  %.1e\n", batch, s.channels, s.size, s.outputs,
         s.kernel, s.stride, direction, place, algorithm, bytes >> 10, t.together, t.alone, error);
}

// Each algorithm that cuDNN names and can do. `ask` lists them, `size` and `run` are the calls.
template <typename Perf, typename Ask, typename Size, typename Run>
void each(const Shape& s, int batch, const char* direction, Ask ask, Size size, Run run, const Array<float>& result,
          const std::vector<double>& truth) {
  Perf list[16];
  int count = 0;
  CHECK(ask(16, &count, list));
  for (int place = 0; place < count; ++place) {
    size_t bytes = 0;
    if (list[place].status || size(list[place].algo, &bytes)) continue;
    if (bytes > (size_t(1) << 30)) continue;
    Array<char> workspace(bytes + 256);
    if (run(list[place].algo, workspace.data, bytes)) { cudaGetLastError(); continue; }
    CHECK(cudaDeviceSynchronize());
    const double error = away(result.values(), truth);
    const Times times = measure([&] { run(list[place].algo, workspace.data, bytes); });
    line(s, batch, direction, place, list[place].algo, bytes, times, error);
  }
}

void shape(cudnnHandle_t handle, cublasHandle_t blas, const Shape& s, int batch) {
  const int out = (s.size + 2 * (s.kernel / 2) - s.kernel) / s.stride + 1;
  Convolution<float> f(s, batch, out);
  std::vector<double> truth[3];
  {
    Convolution<double> d(s, batch, out);
    Array<double> result(d.ys.count);
    Array<char> workspace(size_t(1) << 30);
    const double one = 1, zero = 0;
    size_t bytes = size_t(1) << 30;
    CHECK(cudnnConvolutionForward(handle, &one, d.x, d.xs.data, d.w, d.ws.data, d.conv, CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM,
                                  workspace.data, bytes, &zero, d.y, result.data));
    CHECK(cudnnConvolutionBackwardFilter(handle, &one, d.x, d.xs.data, d.y, d.ys.data, d.conv, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1,
                                         workspace.data, bytes, &zero, d.w, d.dws.data));
    CHECK(cudnnConvolutionBackwardData(handle, &one, d.w, d.ws.data, d.y, d.ys.data, d.conv, CUDNN_CONVOLUTION_BWD_DATA_ALGO_1,
                                       workspace.data, bytes, &zero, d.x, d.dxs.data));
    truth[0] = result.values();
    truth[1] = d.dws.values();
    truth[2] = d.dxs.values();
  }
  const float one = 1, zero = 0;
  Array<float> ys(f.ys.count);
  if (s.kernel == 1) {
    const int plane = s.size * s.size;
    auto product = [&] {
      for (int i = 0; i < batch; ++i) {
        CHECK(cublasSgemm(blas, CUBLAS_OP_N, CUBLAS_OP_N, plane, s.outputs, s.channels, &one, f.xs.data + size_t(i) * s.channels * plane,
                          plane, f.ws.data, s.channels, &zero, ys.data + size_t(i) * s.outputs * plane, plane));
      }
    };
    product();
    const double error = away(ys.values(), truth[0]);
    line(s, batch, "cuBLAS forward", 0, 0, 0, measure(product), error);
  }
  each<cudnnConvolutionFwdAlgoPerf_t>(
      s, batch, "forward",
      [&](int most, int* n, cudnnConvolutionFwdAlgoPerf_t* list) {
        return cudnnGetConvolutionForwardAlgorithm_v7(handle, f.x, f.w, f.conv, f.y, most, n, list);
      },
      [&](cudnnConvolutionFwdAlgo_t a, size_t* b) { return cudnnGetConvolutionForwardWorkspaceSize(handle, f.x, f.w, f.conv, f.y, a, b); },
      [&](cudnnConvolutionFwdAlgo_t a, void* w, size_t b) {
        return cudnnConvolutionForward(handle, &one, f.x, f.xs.data, f.w, f.ws.data, f.conv, a, w, b, &zero, f.y, ys.data);
      },
      ys, truth[0]);
  each<cudnnConvolutionBwdFilterAlgoPerf_t>(
      s, batch, "backward filter",
      [&](int most, int* n, cudnnConvolutionBwdFilterAlgoPerf_t* list) {
        return cudnnGetConvolutionBackwardFilterAlgorithm_v7(handle, f.x, f.y, f.conv, f.w, most, n, list);
      },
      [&](cudnnConvolutionBwdFilterAlgo_t a, size_t* b) {
        return cudnnGetConvolutionBackwardFilterWorkspaceSize(handle, f.x, f.y, f.conv, f.w, a, b);
      },
      [&](cudnnConvolutionBwdFilterAlgo_t a, void* w, size_t b) {
        return cudnnConvolutionBackwardFilter(handle, &one, f.x, f.xs.data, f.y, f.ys.data, f.conv, a, w, b, &zero, f.w, f.dws.data);
      },
      f.dws, truth[1]);
  each<cudnnConvolutionBwdDataAlgoPerf_t>(
      s, batch, "backward data",
      [&](int most, int* n, cudnnConvolutionBwdDataAlgoPerf_t* list) {
        return cudnnGetConvolutionBackwardDataAlgorithm_v7(handle, f.w, f.y, f.conv, f.x, most, n, list);
      },
      [&](cudnnConvolutionBwdDataAlgo_t a, size_t* b) {
        return cudnnGetConvolutionBackwardDataWorkspaceSize(handle, f.w, f.y, f.conv, f.x, a, b);
      },
      [&](cudnnConvolutionBwdDataAlgo_t a, void* w, size_t b) {
        return cudnnConvolutionBackwardData(handle, &one, f.w, f.ws.data, f.y, f.ys.data, f.conv, a, w, b, &zero, f.x, f.dxs.data);
      },
      f.dxs, truth[2]);
}

int main(int argc, char** argv) {
  cudnnHandle_t handle;
  cublasHandle_t blas;
  CHECK(cudnnCreate(&handle));
  CHECK(cublasCreate(&blas));
  cudaDeviceProp device;
  CHECK(cudaGetDeviceProperties(&device, 0));
  printf("%s, cuDNN %zu\n", device.name, cudnnGetVersion());
  std::vector<int> batches;
  for (int i = 1; i < argc; ++i) batches.push_back(atoi(argv[i]));
  if (batches.empty()) batches = {1, 32};
  for (int batch : batches) {
    for (const Shape& one : kShapes) shape(handle, blas, one, batch);
  }
  return 0;
}
