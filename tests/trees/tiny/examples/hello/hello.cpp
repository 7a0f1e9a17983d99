#include "caffe/caffe.hpp"

int main() {
  std::vector<float> bottom(1, 21.f), top;
  caffe::TwiceLayer<float>().Forward(bottom, &top);
  std::cout << top[0] << std::endl;
  return 0;
}
