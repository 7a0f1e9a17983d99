#!/bin/sh
# Times a whole net with `caffe time`, its depthwise layers computed in each way: sh whole_net.sh CAFFE PROTOTXT [OPTION…]
exec python3 "$(dirname "$0")/whole_net.py" "$@"
