#ifndef CAFFE_UTIL_IO_HPP_
#define CAFFE_UTIL_IO_HPP_

#include <string>

namespace caffe {

std::string ReadTextFile(const char* filename);

}  // namespace caffe

#endif  // CAFFE_UTIL_IO_HPP_
