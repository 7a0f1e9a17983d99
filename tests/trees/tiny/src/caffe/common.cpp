#include "caffe/common.hpp"

namespace caffe {

static Caffe::Brew current_mode = Caffe::CPU;

Caffe::Brew Caffe::mode() { return current_mode; }

void Caffe::set_mode(Brew mode) { current_mode = mode; }

const char* Caffe::version() { return AS_STRING(CAFFE_VERSION); }

void Fatal(const char* file, int line, const std::string& message) {
  std::cerr << "F1201 00:00:00.000000     1 " << file << ":" << line << "] " << message
            << "\n*** Check failure stack trace: ***" << std::endl;
  std::abort();
}

}  // namespace caffe
