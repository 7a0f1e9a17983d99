#ifndef CAFFE_NET_HPP_
#define CAFFE_NET_HPP_

#include "caffe/layer.hpp"

namespace caffe {

class Net {
 public:
  void Add(const std::string& type);
  size_t size() const { return layers_.size(); }

 private:
  std::vector<std::string> layers_;
};

}  // namespace caffe

#endif  // CAFFE_NET_HPP_
