#include "caffe/util/io.hpp"

#include <cstdio>

namespace caffe {

std::string ReadTextFile(const char* filename) {
  std::string text;
  FILE* file = std::fopen(filename, "rb");
  if (file == NULL) return text;
  for (int letter = std::fgetc(file); letter != EOF; letter = std::fgetc(file)) text.push_back(static_cast<char>(letter));
  std::fclose(file);
  return text;
}

}  // namespace caffe
