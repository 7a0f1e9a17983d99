#include "caffe/blob.hpp"

namespace caffe {

template <typename Dtype>
int Blob<Dtype>::count() const {
  int product = 1;
  for (size_t i = 0; i < shape.size(); ++i) product *= shape[i];
  return product;
}

template struct Blob<float>;
template struct Blob<double>;

}  // namespace caffe
