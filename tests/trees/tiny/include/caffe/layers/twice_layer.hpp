#ifndef CAFFE_TWICE_LAYER_HPP_
#define CAFFE_TWICE_LAYER_HPP_

#include <vector>

#include "caffe/common.hpp"

namespace caffe {

/// Gives each number twice as large.
template <typename Dtype>
class TwiceLayer {
 public:
  void Forward(const std::vector<Dtype>& bottom, std::vector<Dtype>* top);

 protected:
  void Forward_cpu(const std::vector<Dtype>& bottom, std::vector<Dtype>* top);
  void Forward_gpu(const std::vector<Dtype>& bottom, std::vector<Dtype>* top);
};

}  // namespace caffe

#endif  // CAFFE_TWICE_LAYER_HPP_
