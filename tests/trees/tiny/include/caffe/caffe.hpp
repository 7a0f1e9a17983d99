#ifndef CAFFE_CAFFE_HPP_
#define CAFFE_CAFFE_HPP_

#include "caffe/common.hpp"
#include "caffe/layers/twice_layer.hpp"
#include "caffe/net.hpp"

#endif  // CAFFE_CAFFE_HPP_
