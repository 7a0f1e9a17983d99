#!/bin/sh
# Times a whole net in a built Caffe: its depthwise layers as a loop over groups (the CAFFE engine, and cuDNN where it is
# built in) and computed by the layer of caffeup, the other layers with each engine.
#
#   sh whole_net.sh TREE NET.prototxt [ITERATIONS] [GPU]      GPU: a number, or cpu
#
# BATCHES="1 32" and LIMIT=300 (seconds for one measurement) in the environment change what they say. OTHER names the type of
# another depthwise layer that was built into the tree, to be measured beside; WAYS="ours group" picks ways by their first words.
# Every figure is a median of three runs of `caffe time`, in milliseconds a pass; `caffe time` synchronises after each layer.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
tree=${1:?the folder of a built Caffe}
net=${2:?a prototxt}
iterations=${3:-50}
gpu=${4:-0}
caffe=""
for place in "$tree"/build/tools/caffe "$tree"/.build_release/tools/caffe "$tree"/temp/tools/caffe; do
    if [ -x "$place" ]; then caffe=$place; break; fi
done
[ -n "$caffe" ] || { echo "$tree has no built tools/caffe" >&2; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
device=""
[ "$gpu" = cpu ] || device="-gpu $gpu"

# WAY ENGINE-OF-DEPTHWISE ENGINE-OF-OTHERS SWITCH; "default": no engine is named
measure() {
    case " ${WAYS:-$1} " in *" ${1%%[, ]*} "*|*" $1 "*) ;; *) return 0 ;; esac
    for batch in ${BATCHES:-1 32}; do
        python3 "$here/whole_net.py" rewrite "$net" "$work/net.prototxt" "$batch" "$2" "$3"
        run=0
        while [ $run -lt 3 ]; do
            run=$((run + 1))
            # shellcheck disable=SC2086
            CAFFE_AUTO_DEPTHWISE=$4 timeout "${LIMIT:-300}" "$caffe" time -model "$work/net.prototxt" \
                -iterations "$iterations" $device >"$work/log.$run" 2>&1 || echo "failed with $?" >>"$work/log.$run"
            # What takes seconds a pass, or fails, is not repeated.
            python3 "$here/whole_net.py" quick "$work/log.$run" || break
        done
        python3 "$here/whole_net.py" row "$1" "$batch" "$work/net.prototxt" "$work"/log.*
        rm -f "$work"/log.*
    done
}

echo "$net, $iterations iterations, device $gpu"
python3 "$here/whole_net.py" header
measure "group loop, CAFFE" CAFFE CAFFE 0
measure "ours, others CAFFE" default CAFFE 1
[ -z "${OTHER:-}" ] || measure "$OTHER, others CAFFE" "type:$OTHER" CAFFE 0
if [ "$gpu" != cpu ]; then
    measure "group loop, others cuDNN" CAFFE CUDNN 0
    measure "ours, others cuDNN" default CUDNN 1
    [ -z "${OTHER:-}" ] || measure "$OTHER, others cuDNN" "type:$OTHER" CUDNN 0
    measure "ours, others as built" default default 1
    measure "cuDNN in groups" CUDNN CUDNN 0
fi
