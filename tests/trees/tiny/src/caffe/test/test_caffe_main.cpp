#include "gtest/gtest.h"

int main(int argc, char** argv) { return testing::Main(argc, argv); }
