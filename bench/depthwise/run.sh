#!/bin/sh
# Checks and times the depthwise kernels on this machine's GPU, beside a copy, PyTorch and cuDNN where they are there: sh run.sh [FOLDER]
set -eu
here=$(cd "$(dirname "$0")" && pwd)
out=${1:-$here/out}
mkdir -p "$out"
flags="-O3 -std=c++17 -arch=native -I$here/../../patches/depthwise -I$here"
cudnn=""
if echo '#include <cudnn.h>' | ${CXX:-c++} -E -x c++ -I/usr/local/cuda/include - >/dev/null 2>&1; then cudnn="-DWITH_CUDNN -lcudnn"; fi
nvcc $flags -x cu "$here/check.cpp" -o "$out/check" &
# shellcheck disable=SC2086
nvcc $flags $cudnn "$here/bench.cu" -o "$out/bench"
wait
"$out/check" 1 200
"$out/bench" --json "$out/bench.json" > "$out/bench.txt"
python3 "$here/torch_times.py" "$out/bench.json" "$out/all.json" || cp "$out/bench.json" "$out/all.json"
python3 "$here/table.py" "$out/all.json" | tee "$out/table.txt"
