#include "caffe/layers/twice_layer.hpp"

#ifdef TINY_BROKEN
#include "no_such_header_of_tiny.hpp"
#endif

namespace caffe {

template <typename Dtype>
void TwiceLayer<Dtype>::Forward(const std::vector<Dtype>& bottom, std::vector<Dtype>* top) {
  if (Caffe::mode() == Caffe::GPU) {
    Forward_gpu(bottom, top);
  } else {
    Forward_cpu(bottom, top);
  }
}

template <typename Dtype>
void TwiceLayer<Dtype>::Forward_cpu(const std::vector<Dtype>& bottom, std::vector<Dtype>* top) {
  top->resize(bottom.size());
  for (size_t i = 0; i < bottom.size(); ++i) {
    (*top)[i] = bottom[i] * Dtype(2);
  }
}

#ifdef CPU_ONLY
template <typename Dtype>
void TwiceLayer<Dtype>::Forward_gpu(const std::vector<Dtype>&, std::vector<Dtype>*) {
  Fatal(__FILE__, __LINE__, "Cannot use GPU in CPU-only Caffe: check mode.");
}
#endif

template class TwiceLayer<float>;
template class TwiceLayer<double>;

}  // namespace caffe
