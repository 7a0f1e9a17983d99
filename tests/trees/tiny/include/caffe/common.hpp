#ifndef CAFFE_COMMON_HPP_
#define CAFFE_COMMON_HPP_

#include <cstdlib>
#include <iostream>
#include <string>

#include "caffe/proto/caffe.pb.h"

// The names that are used around the world for "give up, and say where".
#define CHECK(condition) \
  if (!(condition)) \
    ::caffe::Fatal(__FILE__, __LINE__, "Check failed: " #condition)

#define STRINGIFY(m) #m
#define AS_STRING(m) STRINGIFY(m)

namespace caffe {

void Fatal(const char* file, int line, const std::string& message);

class Caffe {
 public:
  enum Brew { CPU, GPU };
  static Brew mode();
  static void set_mode(Brew mode);
  static const char* version();
};

}  // namespace caffe

#endif  // CAFFE_COMMON_HPP_
