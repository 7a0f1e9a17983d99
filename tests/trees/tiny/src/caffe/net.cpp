#include "caffe/net.hpp"

namespace caffe {

void Net::Add(const std::string& type) {
  CHECK(KnownLayer(type));
  layers_.push_back(type);
}

}  // namespace caffe
