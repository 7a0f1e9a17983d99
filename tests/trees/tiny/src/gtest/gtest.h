// A test runner of our own that takes the options and prints the lines of a gtest of 2013.
#ifndef TINY_GTEST_H_
#define TINY_GTEST_H_

#include <string>

namespace testing {

typedef void (*Body)();

struct Registrar {
  Registrar(const char* suite, const char* type_param, const char* name, Body body);
};

void Fail(const char* file, int line, const char* expression);

int Main(int argc, char** argv);

}  // namespace testing

#define EXPECT(condition) \
  if (!(condition)) ::testing::Fail(__FILE__, __LINE__, #condition)

#define TINY_JOIN2(a, b) a##b
#define TINY_JOIN(a, b) TINY_JOIN2(a, b)

// The suite's name may hold a slash, as that of a typed test does.
#define TINY_TEST(suite, type_param, name, call) \
  static void TINY_JOIN(TinyBody, __LINE__)() { call; } \
  static ::testing::Registrar TINY_JOIN(tiny_registrar, __LINE__)(#suite, type_param, #name, &TINY_JOIN(TinyBody, __LINE__))

#endif  // TINY_GTEST_H_
