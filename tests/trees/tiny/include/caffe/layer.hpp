#ifndef CAFFE_LAYER_HPP_
#define CAFFE_LAYER_HPP_

#include "caffe/blob.hpp"

namespace caffe {

bool KnownLayer(const std::string& type);

}  // namespace caffe

#endif  // CAFFE_LAYER_HPP_
