#ifndef CAFFE_BLOB_HPP_
#define CAFFE_BLOB_HPP_

#include <vector>

#include "caffe/common.hpp"

namespace caffe {

template <typename Dtype>
struct Blob {
  std::vector<int> shape;
  std::vector<Dtype> data;
  int count() const;
};

}  // namespace caffe

#endif  // CAFFE_BLOB_HPP_
