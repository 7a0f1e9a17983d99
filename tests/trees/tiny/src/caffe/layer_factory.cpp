#include "caffe/layer.hpp"

namespace caffe {

bool KnownLayer(const std::string& type) { return type == "Twice"; }

}  // namespace caffe
