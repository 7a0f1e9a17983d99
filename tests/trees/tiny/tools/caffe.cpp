#include <cstring>
#include <iostream>

#include "caffe/caffe.hpp"

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "--version") == 0) {
    std::cout << "caffe version " << caffe::Caffe::version() << std::endl;
    return 0;
  }
  std::cerr << "caffe: command line brew\nusage: caffe <command> <args>" << std::endl;
  return 0;
}
