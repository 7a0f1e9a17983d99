"""The shims of cuDNN and CUDA against small headers of our own, which have and lack what each release had and lacked."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from caffeup.bundle import bundled
from caffeup.patch.edits import parse_edit, work_out

SHIMS = bundled("patches") / "shims"
GXX = shutil.which("g++") or ""
NVCC = shutil.which("nvcc") or next((str(path) for path in sorted(Path("/usr/local").glob("cuda*/bin/nvcc"))), "")
needs_compiler = pytest.mark.skipif(not GXX, reason="no g++")
needs_nvcc = pytest.mark.skipif(not NVCC, reason="no nvcc")

CUDA = """
#pragma once
#include <stddef.h>
#define CUDART_VERSION {version}
enum cudaError_t {{ cudaSuccess = 0 }};
enum cudaDeviceAttr {{ cudaDevAttrClockRate = 13, cudaDevAttrGpuOverlap = 15, cudaDevAttrKernelExecTimeout = 17, cudaDevAttrComputeMode = 20,
  cudaDevAttrMemoryClockRate = 36, cudaDevAttrMaxTexture1DLinearWidth = 69, cudaDevAttrSingleToDoublePrecisionPerfRatio = 87 }};
struct cudaDeviceProp {{ char name[256]; {fields} }};
enum cudaLimit {{ cudaLimitStackSize = 0 }};
enum cudaFuncCache {{ cudaFuncCachePreferNone = 0 }};
extern int device_now;
inline cudaError_t cudaGetDevice(int* device) {{ *device = device_now; return cudaSuccess; }}
inline cudaError_t cudaMemGetInfo(size_t* free, size_t* all) {{ *free = 12 << 20; *all = 512 << 20; return cudaSuccess; }}
inline cudaError_t cudaGetDeviceProperties(cudaDeviceProp* p, int) {{ p->name[0] = 'G'; return cudaSuccess; }}
inline cudaError_t cudaChooseDevice(int*, const cudaDeviceProp*) {{ return cudaSuccess; }}
inline cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int) {{ *value = 1000 + attribute; return cudaSuccess; }}
inline cudaError_t cudaDeviceSynchronize() {{ return cudaSuccess; }}
inline cudaError_t cudaDeviceReset() {{ return cudaSuccess; }}
inline cudaError_t cudaDeviceSetLimit(cudaLimit, size_t) {{ return cudaSuccess; }}
inline cudaError_t cudaDeviceGetLimit(size_t*, cudaLimit) {{ return cudaSuccess; }}
inline cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache) {{ return cudaSuccess; }}
inline cudaError_t cudaDeviceGetCacheConfig(cudaFuncCache*) {{ return cudaSuccess; }}
{more}
"""
LOST = "int clockRate; int deviceOverlap; int kernelExecTimeoutEnabled; int computeMode;"

CUDNN = """
#pragma once
#include <stddef.h>
#define CUDNN_MAJOR {major}
#define CUDNN_VERSION {version}
#define CUDNN_DIM_MAX 8
enum cudnnStatus_t {{ CUDNN_STATUS_SUCCESS = 0, CUDNN_STATUS_BAD_PARAM = 3, CUDNN_STATUS_NOT_SUPPORTED = 9, CUDNN_STATUS_NEWER = 14 }};
enum cudnnDataType_t {{ CUDNN_DATA_FLOAT, CUDNN_DATA_DOUBLE }};
enum cudnnTensorFormat_t {{ CUDNN_TENSOR_NCHW, CUDNN_TENSOR_NHWC }};
enum cudnnConvolutionMode_t {{ CUDNN_CONVOLUTION, CUDNN_CROSS_CORRELATION }};
enum cudnnMathType_t {{ CUDNN_DEFAULT_MATH, CUDNN_TENSOR_OP_MATH, CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION, CUDNN_FMA_MATH }};
enum cudnnNanPropagation_t {{ CUDNN_NOT_PROPAGATE_NAN, CUDNN_PROPAGATE_NAN }};
enum cudnnPoolingMode_t {{ CUDNN_POOLING_MAX }};
enum cudnnActivationMode_t {{ CUDNN_ACTIVATION_SIGMOID, CUDNN_ACTIVATION_RELU }};
enum cudnnConvolutionFwdAlgo_t {{ FWD_0, CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD_NONFUSED, FWD_2 }};
enum cudnnConvolutionBwdFilterAlgo_t {{ CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_WINOGRAD_NONFUSED, FILTER_2 }};
enum cudnnConvolutionBwdDataAlgo_t {{ CUDNN_CONVOLUTION_BWD_DATA_ALGO_0, CUDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD_NONFUSED, DATA_2 }};
#define CUDNN_CONVOLUTION_FWD_ALGO_COUNT 3
#define CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT 3
#define CUDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT 3
struct Tensor {{ cudnnDataType_t type; int sizes[4]; }};
struct Convolution {{ int pad; cudnnDataType_t type; cudnnMathType_t math; }};
typedef struct Handle* cudnnHandle_t;
typedef Tensor* cudnnTensorDescriptor_t;
typedef Tensor* cudnnFilterDescriptor_t;
typedef Convolution* cudnnConvolutionDescriptor_t;
typedef struct Pooling* cudnnPoolingDescriptor_t;
typedef struct Activation* cudnnActivationDescriptor_t;
extern int asked, used;
inline cudnnStatus_t answer(int algorithm, size_t bytes) {{ used = algorithm;
  return algorithm == 1 && bytes < 1000 ? CUDNN_STATUS_BAD_PARAM : algorithm == 0 && bytes ? CUDNN_STATUS_NOT_SUPPORTED : CUDNN_STATUS_SUCCESS; }}
extern "C" {{
inline const char* cudnnGetErrorString(cudnnStatus_t) {{ return "CUDNN_STATUS_OF_CUDNN"; }}
inline cudnnStatus_t cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t* t) {{ *t = new Tensor(); return CUDNN_STATUS_SUCCESS; }}
inline cudnnStatus_t cudnnCreateConvolutionDescriptor(cudnnConvolutionDescriptor_t* c) {{ *c = new Convolution(); return CUDNN_STATUS_SUCCESS; }}
inline cudnnStatus_t cudnnGetTensorNdDescriptor(cudnnTensorDescriptor_t t, int, cudnnDataType_t* type, int* count, int sizes[], int strides[]) {{
  *type = t->type; *count = 4; for (int i = 0; i < 4; ++i) {{ sizes[i] = t->sizes[i]; strides[i] = 1; }} return CUDNN_STATUS_SUCCESS; }}
inline cudnnStatus_t cudnnGetConvolutionNdDescriptor(cudnnConvolutionDescriptor_t c, int, int* count, int pads[], int strides[], int dilations[],
  cudnnConvolutionMode_t* mode, cudnnDataType_t* type) {{
  *count = 2; *mode = CUDNN_CROSS_CORRELATION; *type = c->type;
  for (int i = 0; i < 2; ++i) {{ pads[i] = c->pad; strides[i] = dilations[i] = 1; }} return CUDNN_STATUS_SUCCESS; }}
inline cudnnStatus_t cudnnSetConvolutionNdDescriptor(cudnnConvolutionDescriptor_t c, int, const int pads[], const int[], const int[],
  cudnnConvolutionMode_t, cudnnDataType_t type) {{ c->pad = pads[0]; c->type = type; return CUDNN_STATUS_SUCCESS; }}
inline cudnnStatus_t cudnnCreateActivationDescriptor(cudnnActivationDescriptor_t*) {{ return CUDNN_STATUS_SUCCESS; }}
inline cudnnStatus_t cudnnDestroyActivationDescriptor(cudnnActivationDescriptor_t) {{ return CUDNN_STATUS_SUCCESS; }}
inline cudnnStatus_t cudnnSetActivationDescriptor(cudnnActivationDescriptor_t, cudnnActivationMode_t, cudnnNanPropagation_t, double) {{ return CUDNN_STATUS_SUCCESS; }}
inline cudnnStatus_t cudnnActivationForward(cudnnHandle_t, cudnnActivationDescriptor_t, const void*, cudnnTensorDescriptor_t, const void*,
  const void*, cudnnTensorDescriptor_t, void*) {{ return CUDNN_STATUS_SUCCESS; }}
inline cudnnStatus_t cudnnActivationBackward(cudnnHandle_t, cudnnActivationDescriptor_t, const void*, cudnnTensorDescriptor_t, const void*,
  cudnnTensorDescriptor_t, const void*, cudnnTensorDescriptor_t, const void*, const void*, cudnnTensorDescriptor_t, void*) {{ return CUDNN_STATUS_SUCCESS; }}
inline cudnnStatus_t cudnnSetFilter4dDescriptor(cudnnFilterDescriptor_t f, cudnnDataType_t type, cudnnTensorFormat_t, int k, int, int, int) {{
  f->type = type; f->sizes[0] = k; return CUDNN_STATUS_SUCCESS; }}
inline cudnnStatus_t cudnnSetPooling2dDescriptor(cudnnPoolingDescriptor_t, cudnnPoolingMode_t, cudnnNanPropagation_t nan, int, int, int, int, int, int) {{
  return nan == CUDNN_PROPAGATE_NAN ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM; }}
inline cudnnStatus_t cudnnSetPoolingNdDescriptor(cudnnPoolingDescriptor_t, cudnnPoolingMode_t, cudnnNanPropagation_t, int, const int[], const int[], const int[]) {{
  return CUDNN_STATUS_SUCCESS; }}
inline cudnnStatus_t cudnnAddTensor(cudnnHandle_t, const void*, cudnnTensorDescriptor_t, const void*, const void*, cudnnTensorDescriptor_t, void*) {{
  return CUDNN_STATUS_SUCCESS; }}
inline cudnnStatus_t cudnnConvolutionBackwardFilter(cudnnHandle_t, const void*, cudnnTensorDescriptor_t, const void*, cudnnTensorDescriptor_t, const void*,
  cudnnConvolutionDescriptor_t, cudnnConvolutionBwdFilterAlgo_t algo, void*, size_t bytes, const void*, cudnnFilterDescriptor_t, void*) {{
  return answer(algo, bytes); }}
inline cudnnStatus_t cudnnConvolutionBackwardData(cudnnHandle_t, const void*, cudnnFilterDescriptor_t, const void*, cudnnTensorDescriptor_t, const void*,
  cudnnConvolutionDescriptor_t, cudnnConvolutionBwdDataAlgo_t algo, void*, size_t bytes, const void*, cudnnTensorDescriptor_t, void*) {{
  return answer(algo, bytes); }}
inline cudnnStatus_t cudnnConvolutionForward(cudnnHandle_t, const void*, cudnnTensorDescriptor_t, const void*, cudnnFilterDescriptor_t, const void*,
  cudnnConvolutionDescriptor_t, cudnnConvolutionFwdAlgo_t algo, void*, size_t bytes, const void*, cudnnTensorDescriptor_t, void*) {{
  return answer(algo, bytes); }}
{more}
}}
"""
SET_8 = """
inline cudnnStatus_t cudnnSetConvolution2dDescriptor(cudnnConvolutionDescriptor_t c, int pad, int, int, int, int, int, cudnnConvolutionMode_t) {
  c->pad = pad; return CUDNN_STATUS_SUCCESS; }
"""
SET_9 = """
inline cudnnStatus_t cudnnSetConvolution2dDescriptor(cudnnConvolutionDescriptor_t c, int pad, int, int, int, int, int, cudnnConvolutionMode_t,
  cudnnDataType_t type) { c->pad = pad; c->type = type; return CUDNN_STATUS_SUCCESS; }
"""
GETTERS = """
enum cudnnConvolutionFwdPreference_t { CUDNN_CONVOLUTION_FWD_NO_WORKSPACE, CUDNN_CONVOLUTION_FWD_PREFER_FASTEST, CUDNN_CONVOLUTION_FWD_SPECIFY_WORKSPACE_LIMIT };
inline cudnnStatus_t cudnnGetConvolutionForwardAlgorithm(cudnnHandle_t, cudnnTensorDescriptor_t, cudnnFilterDescriptor_t, cudnnConvolutionDescriptor_t,
  cudnnTensorDescriptor_t, cudnnConvolutionFwdPreference_t, size_t, cudnnConvolutionFwdAlgo_t* a) { ++asked; *a = FWD_2; return CUDNN_STATUS_SUCCESS; }
"""
OLD_NAMES = "cudnnStatus_t cudnnSetFilter4dDescriptor_v4(cudnnFilterDescriptor_t, cudnnDataType_t, cudnnTensorFormat_t, int, int, int, int);\n"

# cuDNN 8's lists: 0 is refused whatever is asked, 1 takes 1000 bytes, 2 takes none.
V7 = """
inline cudnnStatus_t cudnnGetConvolutionMathType(cudnnConvolutionDescriptor_t c, cudnnMathType_t* math) {{ *math = c->math; return CUDNN_STATUS_SUCCESS; }}
inline cudnnStatus_t cudnnSetConvolutionMathType(cudnnConvolutionDescriptor_t c, cudnnMathType_t math) {{ c->math = math; return CUDNN_STATUS_SUCCESS; }}
inline cudnnStatus_t cudnnGetConvolutionGroupCount(cudnnConvolutionDescriptor_t, int* groups) {{ *groups = 1; return CUDNN_STATUS_SUCCESS; }}
inline cudnnStatus_t cudnnGetFilterNdDescriptor(cudnnFilterDescriptor_t f, int, cudnnDataType_t* type, cudnnTensorFormat_t* format, int* count, int sizes[]) {{
  *type = f->type; *format = CUDNN_TENSOR_NCHW; *count = 4; for (int i = 0; i < 4; ++i) sizes[i] = f->sizes[i]; return CUDNN_STATUS_SUCCESS; }}
{calls}
"""
CALLS = """
struct cudnnConvolution{one}AlgoPerf_t {{ cudnnConvolution{one}Algo_t algo; cudnnStatus_t status; size_t memory; }};
inline cudnnStatus_t cudnnGetConvolution{name}Algorithm_v7(cudnnHandle_t, {first}, {second}, {third}, {fourth}, int most, int* found,
  cudnnConvolution{one}AlgoPerf_t* list) {{
  ++asked; *found = most;
  for (int i = 0; i < most; ++i) {{ list[i].algo = (cudnnConvolution{one}Algo_t)i; list[i].status = CUDNN_STATUS_SUCCESS; list[i].memory = i == 1 ? 1000 : 0; }}
  return CUDNN_STATUS_SUCCESS; }}
inline cudnnStatus_t cudnnGetConvolution{name}WorkspaceSize(cudnnHandle_t, {first}, {second}, {third}, {fourth}, cudnnConvolution{one}Algo_t algo,
  size_t* bytes) {{ ++asked; *bytes = algo == 1 ? 1000 : 0; return algo == 0 ? CUDNN_STATUS_NOT_SUPPORTED : CUDNN_STATUS_SUCCESS; }}
"""
LAST_ERROR = """
inline void cudnnGetLastErrorString(char* message, size_t room) {
  const char* words = "dimA[i] <= 0\\nsecond line"; size_t i = 0;
  for (; words[i] && i + 1 < room; ++i) message[i] = words[i];
  message[i] = 0; }
"""
_T, _F, _C = "cudnnTensorDescriptor_t", "cudnnFilterDescriptor_t", "cudnnConvolutionDescriptor_t"
ORDERS = (
    ("Fwd", "Forward", _T, _F, _C, _T),
    ("BwdFilter", "BackwardFilter", _T, _T, _C, _F),
    ("BwdData", "BackwardData", _F, _T, _C, _T),
)


def headers(folder: Path, *, cudnn: int = 9, cuda: int = 13000) -> Path:
    """A toolkit and a cuDNN of these versions."""
    more = SET_8 + OLD_NAMES if cudnn < 6 else SET_9
    if cudnn < 8:
        more += GETTERS
    else:
        parts = [CALLS.format(one=one, name=name, first=a, second=b, third=c, fourth=d) for one, name, a, b, c, d in ORDERS]
        more += V7.format(calls="".join(parts))
    if cudnn >= 9:
        more += LAST_ERROR
    thread = "" if cuda >= 13000 else "inline cudaError_t cudaThreadSynchronize() { return cudaSuccess; }"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "cuda_runtime.h").write_text(CUDA.format(version=cuda, fields="" if cuda >= 13000 else LOST, more=thread))
    (folder / "cudnn.h").write_text(CUDNN.format(major=cudnn, version=cudnn * 1000, more=more))
    return folder


def run(folder: Path, source: str, *flags: str, standard: str = "c++11") -> str:
    """What the program prints; a failing compiler fails the test with its words."""
    (folder / "main.cpp").write_text(source)
    shims = [f"-I{SHIMS / name}" for name in ("cudnn", "cuda")]
    argv = [GXX, f"-std={standard}", "-Wall", "-Werror", "-pthread", *flags, *shims, f"-I{folder}", "main.cpp", "-o", "main"]
    done = subprocess.run(argv, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return subprocess.run(["./main"], cwd=folder, capture_output=True, text=True, check=True).stdout


START = """
#include <cudnn.h>
#include <cstdio>
int asked = 0, used = -1, device_now = 0;
#define CHECK(call) do { cudnnStatus_t status = (call); if (status) std::printf("%s\\n", cudnnGetErrorString(status)); } while (0)
"""

OLD = (
    START
    + """
int main() {
  cudnnConvolutionDescriptor_t c; cudnnTensorDescriptor_t x; cudnnFilterDescriptor_t f = new Tensor();
  CHECK(cudnnCreateConvolutionDescriptor(&c)); CHECK(cudnnCreateTensorDescriptor(&x));
  x->type = CUDNN_DATA_DOUBLE;
  CHECK(cudnnSetConvolution2dDescriptor(c, 7, 7, 1, 1, 1, 1, CUDNN_CROSS_CORRELATION));
  CHECK(cudnnSetFilter4dDescriptor(f, CUDNN_DATA_DOUBLE, 5, 1, 1, 1));
  CHECK(cudnnSetFilter4dDescriptor_v4(f, CUDNN_DATA_DOUBLE, CUDNN_TENSOR_NCHW, 6, 1, 1, 1));
  CHECK(cudnnSetPooling2dDescriptor(0, CUDNN_POOLING_MAX, 2, 2, 0, 0, 2, 2));
  CHECK(cudnnSetPooling2dDescriptor_v4(0, CUDNN_POOLING_MAX, CUDNN_PROPAGATE_NAN, 2, 2, 0, 0, 2, 2));
  CHECK(cudnnActivationForward(0, CUDNN_ACTIVATION_RELU, 0, x, 0, 0, x, 0));
  CHECK(cudnnActivationBackward(0, CUDNN_ACTIVATION_RELU, 0, x, 0, x, 0, x, 0, 0, x, 0));
  CHECK(cudnnAddTensor(0, CUDNN_ADD_SAME_C, 0, x, 0, 0, x, 0));
  CHECK(cudnnConvolutionBackwardFilter(0, 0, x, 0, x, 0, c, 0, f, 0));
  CHECK(cudnnConvolutionBackwardData(0, 0, f, 0, x, 0, c, 0, x, 0));
  cudnnConvolutionFwdAlgo_t algorithm;
  CHECK(cudnnGetConvolutionForwardAlgorithm(0, x, f, c, x, CUDNN_CONVOLUTION_FWD_SPECIFY_WORKSPACE_LIMIT, 8 << 20, &algorithm));
  std::printf("pad %d, filters %d, computed in %d\\n", c->pad, f->sizes[0], c->type);
}
"""
)


@needs_compiler
@pytest.mark.parametrize("cudnn", [5, 6, 7, 8, 9])
def test_calls_of_cudnn_2_to_5_compile_with_every_later_one(tmp_path: Path, cudnn: int) -> None:
    standard = "c++98" if cudnn < 8 else "c++11"
    said = run(headers(tmp_path, cudnn=cudnn), OLD, standard=standard)
    computed = 0 if cudnn < 6 else 1  # from cuDNN 6 on the descriptor says so: double in double
    assert said == f"pad 7, filters 6, computed in {computed}\n"


ALGORITHMS = (
    START
    + """
#include <thread>
#include <vector>
struct Net {
  cudnnConvolutionDescriptor_t c; cudnnTensorDescriptor_t x, y; cudnnFilterDescriptor_t w;
  explicit Net(int height) : x(new Tensor()), y(new Tensor()), w(new Tensor()) { cudnnCreateConvolutionDescriptor(&c); x->sizes[2] = height; }
};
void reshape(Net& n, size_t limit, int* algorithms, size_t* sizes) {
  cudnnConvolutionFwdAlgo_t f; cudnnConvolutionBwdFilterAlgo_t b; cudnnConvolutionBwdDataAlgo_t d;
  CHECK(cudnnGetConvolutionForwardAlgorithm(0, n.x, n.w, n.c, n.y, CUDNN_CONVOLUTION_FWD_SPECIFY_WORKSPACE_LIMIT, limit, &f));
  CHECK(cudnnGetConvolutionForwardWorkspaceSize(0, n.x, n.w, n.c, n.y, f, &sizes[0]));
  CHECK(cudnnGetConvolutionBackwardFilterAlgorithm(0, n.x, n.y, n.c, n.w, CUDNN_CONVOLUTION_BWD_FILTER_SPECIFY_WORKSPACE_LIMIT, limit, &b));
  CHECK(cudnnGetConvolutionBackwardFilterWorkspaceSize(0, n.x, n.y, n.c, n.w, b, &sizes[1]));
  CHECK(cudnnGetConvolutionBackwardDataAlgorithm(0, n.w, n.y, n.c, n.x, CUDNN_CONVOLUTION_BWD_DATA_SPECIFY_WORKSPACE_LIMIT, limit, &d));
  CHECK(cudnnGetConvolutionBackwardDataWorkspaceSize(0, n.w, n.y, n.c, n.x, d, &sizes[2]));
  algorithms[0] = f; algorithms[1] = b; algorithms[2] = d;
}
void show(const char* what, Net& n, size_t limit) {
  int algorithms[3]; size_t sizes[3], before = asked;
  reshape(n, limit, algorithms, sizes);
  std::printf("%s: %d %d %d, %d %d %d, %s\\n", what, algorithms[0], algorithms[1], algorithms[2], (int)sizes[0], (int)sizes[1], (int)sizes[2],
              asked == (int)before ? "remembered" : "asked");
}
int main() {
  Net one(10), twin(10), other(11);
  show("first", one, 8 << 20);
  show("again", one, 8 << 20);
  show("twin", twin, 8 << 20);
  show("limit", one, 1000);
  show("fits", one, 1024);
  show("size", other, 8 << 20);
  device_now = 1;
  show("device", one, 8 << 20);
  device_now = 0;
  one.c->math = CUDNN_TENSOR_OP_MATH;
  show("math", one, 8 << 20);
  one.c->math = CUDNN_FMA_MATH;
  for (int height = 100; height < 20000; ++height) { Net many(height); int a[3]; size_t s[3]; reshape(many, 8 << 20, a, s); }
  show("bounded", one, 8 << 20);
  std::vector<std::thread> solvers;
  for (int solver = 0; solver < 8; ++solver) solvers.push_back(std::thread([] {
    for (int i = 0; i < 200; ++i) { Net net(i % 7); int a[3]; size_t s[3]; reshape(net, 8 << 20, a, s); if (a[0] != 1 || s[0] != 1024) std::printf("wrong\\n"); }
  }));
  for (std::thread& solver : solvers) solver.join();
}
"""
)


@needs_compiler
@pytest.mark.parametrize("cudnn", [8, 9])
def test_algorithms_keep_the_limit_and_are_remembered_by_what_descriptors_hold(tmp_path: Path, cudnn: int) -> None:
    said = run(headers(tmp_path, cudnn=cudnn), ALGORITHMS, "-O1")
    assert said.splitlines() == [
        "first: 1 1 1, 1024 1024 1024, asked",  # 0 is refused; 1000 bytes are rounded up
        "again: 1 1 1, 1024 1024 1024, remembered",
        "twin: 1 1 1, 1024 1024 1024, remembered",
        "limit: 2 2 2, 0 0 0, asked",  # 1000 rounded up does not fit
        "fits: 1 1 1, 1024 1024 1024, asked",
        "size: 1 1 1, 1024 1024 1024, asked",
        "device: 1 1 1, 1024 1024 1024, asked",
        "math: 1 1 1, 1024 1024 1024, asked",
        "bounded: 1 1 1, 1024 1024 1024, asked",  # forgotten after thousands of others
    ]


PREFERENCES = (
    START
    + """
int main() {
  cudnnConvolutionDescriptor_t c; Tensor t = Tensor(); cudnnConvolutionFwdAlgo_t algorithm;
  cudnnCreateConvolutionDescriptor(&c);
  CHECK(cudnnGetConvolutionForwardAlgorithm(0, &t, &t, c, &t, CUDNN_CONVOLUTION_FWD_PREFER_FASTEST, 0, &algorithm));
  std::printf("%d ", algorithm);
  CHECK(cudnnGetConvolutionForwardAlgorithm(0, &t, &t, c, &t, CUDNN_CONVOLUTION_FWD_NO_WORKSPACE, 1 << 20, &algorithm));
  std::printf("%d ", algorithm);
  cudnnConvolutionFwdAlgoPerf_t list[3]; int found = 0;
  CHECK(cudnnGetConvolutionForwardAlgorithm_v7(0, &t, &t, c, &t, 3, &found, list));
  std::printf("%d %d ", found, (int)list[1].memory);
  std::printf("%d ", c->math);
  cudnnSetConvolutionMathType(c, CUDNN_DEFAULT_MATH); std::printf("%d ", c->math);
  cudnnSetConvolutionMathType(c, CUDNN_TENSOR_OP_MATH); std::printf("%d\\n", c->math);
}
"""
)


@needs_compiler
@pytest.mark.parametrize(("flags", "maths"), [((), "3 3 1"), (("-DCAFFEUP_TF32=1",), "0 0 1"), (("-DCAFFEUP_TF32=0",), "3 3 1")])
def test_preferences_and_floats_in_float(tmp_path: Path, flags: tuple[str, ...], maths: str) -> None:
    assert run(headers(tmp_path), PREFERENCES, *flags) == f"1 2 3 1024 {maths}\n"


KERNELS = (
    START
    + """
int main() {
  const size_t limit = 8 << 20;
  for (int kernel = 1; kernel < 8; kernel += 2) {
    cudnnConvolutionDescriptor_t c; Tensor t = Tensor(), w = Tensor(); w.sizes[2] = 1; w.sizes[3] = kernel;
    cudnnConvolutionFwdAlgo_t f; cudnnConvolutionBwdFilterAlgo_t b; cudnnConvolutionBwdDataAlgo_t d;
    cudnnCreateConvolutionDescriptor(&c);
    CHECK(cudnnGetConvolutionForwardAlgorithm(0, &t, &w, c, &t, CUDNN_CONVOLUTION_FWD_SPECIFY_WORKSPACE_LIMIT, limit, &f));
    CHECK(cudnnGetConvolutionBackwardFilterAlgorithm(0, &t, &t, c, &w, CUDNN_CONVOLUTION_BWD_FILTER_SPECIFY_WORKSPACE_LIMIT, limit, &b));
    CHECK(cudnnGetConvolutionBackwardDataAlgorithm(0, &w, &t, c, &t, CUDNN_CONVOLUTION_BWD_DATA_SPECIFY_WORKSPACE_LIMIT, limit, &d));
    std::printf("%d%d%d ", f, b, d);
  }
}
"""
)


@needs_compiler
@pytest.mark.parametrize(("flags", "algorithms"), [((), "111 111 222 222 "), (("-DCAFFEUP_TF32=1",), "111 111 111 111 ")])
def test_winograd_is_not_taken_for_kernels_with_which_it_loses_digits(
    tmp_path: Path, flags: tuple[str, ...], algorithms: str
) -> None:
    assert run(headers(tmp_path), KERNELS, *flags) == algorithms


WORKSPACES = (
    START
    + """
void compute(const char* what, int algorithm, size_t bytes) {
  cudnnConvolutionDescriptor_t c; cudnnCreateConvolutionDescriptor(&c);
  Tensor x = Tensor(), y = Tensor(), w = Tensor();
  int by[3], before = asked;
  cudnnStatus_t said[3];
  said[0] = cudnnConvolutionForward(0, 0, &x, 0, &w, 0, c, (cudnnConvolutionFwdAlgo_t)algorithm, 0, bytes, 0, &y, 0); by[0] = used;
  said[1] = cudnnConvolutionBackwardFilter(0, 0, &x, 0, &y, 0, c, (cudnnConvolutionBwdFilterAlgo_t)algorithm, 0, bytes, 0, &w, 0); by[1] = used;
  said[2] = cudnnConvolutionBackwardData(0, 0, &w, 0, &y, 0, c, (cudnnConvolutionBwdDataAlgo_t)algorithm, 0, bytes, 0, &x, 0); by[2] = used;
  std::printf("%s: by %d %d %d, %d %d %d%s\\n", what, by[0], by[1], by[2], said[0], said[1], said[2], asked == before ? "" : ", asked");
}
int main() {
  compute("enough", 1, 1024);
  compute("no workspace", 2, 0);
  compute("too small", 1, 512);
  compute("again", 1, 512);
  compute("none at all", 1, 0);
  compute("not for these shapes", 0, 4096);
}
"""
)


@needs_compiler
@pytest.mark.parametrize("cudnn", [8, 9])
def test_a_workspace_that_a_tree_guessed_too_small_gets_an_algorithm_that_fits(tmp_path: Path, cudnn: int) -> None:
    said = run(headers(tmp_path, cudnn=cudnn), WORKSPACES)
    assert said.splitlines() == [
        "enough: by 1 1 1, 0 0 0",  # a call that cuDNN takes asks nothing
        "no workspace: by 2 2 2, 0 0 0",
        "too small: by 2 2 2, 0 0 0, asked",
        "again: by 2 2 2, 0 0 0",
        "none at all: by 2 2 2, 0 0 0, asked",
        "not for these shapes: by 1 1 1, 0 0 0, asked",
    ]


@needs_compiler
def test_what_cudnn_refuses_for_another_reason_is_refused(tmp_path: Path) -> None:
    folder = headers(tmp_path)
    real = (folder / "cudnn.h").read_text()
    (folder / "cudnn.h").write_text(real.replace("used = algorithm;", "used = algorithm; return CUDNN_STATUS_BAD_PARAM;"))
    assert run(folder, WORKSPACES).splitlines()[0] == "enough: by 1 1 1, 3 3 3, asked"


ERRORS = (
    START
    + """
inline const char* cudnnGetErrorString(cudnnStatus_t status) {
  switch (status) { case CUDNN_STATUS_SUCCESS: return "of the tree"; case CUDNN_STATUS_BAD_PARAM: return "of the tree"; }
  return "Unknown cudnn status";
}
namespace caffe { inline void check() { CHECK(CUDNN_STATUS_NEWER); const cudnnStatus_t fixed = CUDNN_STATUS_BAD_PARAM; std::printf("%s\\n", ::cudnnGetErrorString(fixed)); } }
int main() { caffe::check(); }
"""
)


@needs_compiler
@pytest.mark.parametrize(("cudnn", "standard"), [(5, "c++98"), (7, "c++11"), (9, "c++17")])
def test_checks_print_the_words_of_cudnn_and_the_memory_that_is_free(tmp_path: Path, cudnn: int, standard: str) -> None:
    last = "; cuDNN says: dimA[i] <= 0 second line" if cudnn >= 9 else ""
    line = f"CUDNN_STATUS_OF_CUDNN{last}; GPU memory: 12 MiB free of 512 MiB"
    assert run(headers(tmp_path, cudnn=cudnn), ERRORS, standard=standard).splitlines() == [line, line]  # and -Wswitch is silent


PROPERTIES = """
#include <cuda_runtime.h>
#include <cstdio>
int device_now = 0;
int main() {
  struct cudaDeviceProp one; cudaDeviceProp other; int device;
  cudaGetDeviceProperties(&one, 0); cudaGetDeviceProperties(&other, 0); cudaChooseDevice(&device, &other); cudaThreadSynchronize();
  std::printf("%c %d %d %d %d\\n", one.name[0], one.clockRate, one.deviceOverlap, one.kernelExecTimeoutEnabled, other.computeMode);
}
"""


@needs_compiler
def test_lost_fields_of_device_properties_are_filled(tmp_path: Path) -> None:
    assert run(headers(tmp_path, cuda=13000), PROPERTIES) == "G 1013 1015 1017 1020\n"


@needs_compiler
def test_where_the_toolkit_has_them_nothing_is_done(tmp_path: Path) -> None:
    source = PROPERTIES.replace("int main", "#ifdef cudaDeviceProp\n#error\n#endif\nint main")
    assert run(headers(tmp_path, cuda=12000), source, "-Wno-uninitialized", "-Wno-maybe-uninitialized").startswith("G ")


@needs_compiler
@pytest.mark.parametrize("header", ["math_functions.h", "device_functions.h"])
def test_private_headers_of_cuda_are_not_needed(tmp_path: Path, header: str) -> None:
    source = f'#include <{header}>\n#include <cstdio>\nint device_now;\nint main() {{ std::printf("%d\\n", CUDART_VERSION); }}\n'
    assert run(headers(tmp_path, cuda=13000), source) == "13000\n"


@needs_compiler
def test_two_trees_shims_on_one_path_do_no_harm(tmp_path: Path) -> None:
    for name in ("cudnn", "cuda"):
        shutil.copytree(SHIMS / name, tmp_path / "another", dirs_exist_ok=True)
    assert run(headers(tmp_path), PREFERENCES, f"-I{tmp_path / 'another'}") == "1 2 3 1024 3 3 1\n"


@needs_compiler
def test_gpp_sees_the_shims_also_where_a_tree_passes_its_folders_with_isystem(tmp_path: Path) -> None:
    headers(tmp_path)
    argv = [GXX, "-E", "-dM", "-x", "c++", "-", *(f"-I{SHIMS / name}" for name in ("cudnn", "cuda")), "-isystem", str(tmp_path)]
    done = subprocess.run(argv, input="#include <cudnn.h>\n", capture_output=True, text=True, check=True)
    assert "#define CAFFEUP_CUDNN_H_" in done.stdout
    assert "#define CAFFEUP_CUDA_RUNTIME_H_" in done.stdout


@needs_nvcc
def test_nvcc_sees_the_shims_without_an_include(tmp_path: Path) -> None:
    (tmp_path / "empty.cu").write_text("#ifndef CAFFEUP_CUDA_RUNTIME_H_\n#error not seen\n#endif\nint seen;\n")
    done = subprocess.run(
        [NVCC, "-E", f"-I{SHIMS / 'cuda'}", str(tmp_path / "empty.cu")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "int seen;" in done.stdout


OWN_ATOMIC = """#include "caffe/util/gpu_util.cuh"
{before}static __inline__ __device__ double atomicAdd(double* address, double val) {{
  unsigned long long int* address_as_ull = (unsigned long long int*)address;
  do {{
    assumed = old;
  }} while (assumed != old);
  return __longlong_as_double(old);
}}
{after}template <typename Dtype> __global__ void Kernel() {{ atomicAdd(a, b); }}
"""


def test_the_trees_own_double_atomic_is_for_gpus_without_one() -> None:
    spec = parse_edit((bundled("patches") / "edits" / "atomic-add-guard.toml").read_text())
    path = "src/caffe/layers/pool_layer.cu"
    bare = OWN_ATOMIC.format(before="", after="")
    edited = work_out(spec, "atomic-add-guard", {path: bare.encode()}, {0: (path,)})
    guard = "#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 600  /* newer GPUs have it */\n"
    assert edited.files[path].decode() == OWN_ATOMIC.format(before=guard, after="#endif\n")
    guarded = OWN_ATOMIC.format(before="#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 600\n#else\n", after="#endif\n")
    assert not work_out(spec, "atomic-add-guard", {path: guarded.encode()}, {0: (path,)}).files
