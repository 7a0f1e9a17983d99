#include "gtest/gtest.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace testing {

struct Test {
  std::string suite, type_param, name;
  Body body;
  std::string full() const { return suite + "." + name; }
};

struct Options {
  std::string filter;
  bool list, shuffle, also_disabled;
  int shards, shard;
};

static std::vector<Test>& All() {
  static std::vector<Test> all;
  return all;
}

static bool failed = false;

Registrar::Registrar(const char* suite, const char* type_param, const char* name, Body body) {
  const Test test = {suite, type_param, name, body};
  All().push_back(test);
}

void Fail(const char* file, int line, const char* expression) {
  std::printf("%s:%d: Failure\nValue of: %s\n  Actual: false\nExpected: true\n", file, line, expression);
  failed = true;
}

static bool Glob(const char* pattern, const char* text) {
  if (*pattern == '\0') return *text == '\0';
  if (*pattern == '*') return Glob(pattern + 1, text) || (*text != '\0' && Glob(pattern, text + 1));
  return *text != '\0' && (*pattern == '?' || *pattern == *text) && Glob(pattern + 1, text + 1);
}

static bool AnyGlob(const std::string& patterns, const std::string& text) {
  size_t start = 0;
  while (start <= patterns.size()) {
    size_t end = patterns.find(':', start);
    if (end == std::string::npos) end = patterns.size();
    if (Glob(patterns.substr(start, end - start).c_str(), text.c_str())) return true;
    start = end + 1;
  }
  return false;
}

static bool Wanted(const std::string& filter, const std::string& name) {
  const size_t dash = filter.find('-');
  const std::string positive = filter.substr(0, dash);
  const std::string negative = dash == std::string::npos ? "" : filter.substr(dash + 1);
  return AnyGlob(positive.empty() ? "*" : positive, name) && !(dash != std::string::npos && AnyGlob(negative, name));
}

static int FromEnvironment(const char* name, int otherwise) {
  const char* value = std::getenv(name);
  return value == NULL || *value == '\0' ? otherwise : std::atoi(value);
}

static Options Parse(int argc, char** argv) {
  const char* filter = std::getenv("GTEST_FILTER");
  Options options = {filter == NULL ? "*" : filter, false, false, false,
                     FromEnvironment("GTEST_TOTAL_SHARDS", 1), FromEnvironment("GTEST_SHARD_INDEX", 0)};
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word.compare(0, 15, "--gtest_filter=") == 0) options.filter = word.substr(15);
    if (word == "--gtest_list_tests") options.list = true;
    if (word == "--gtest_shuffle") options.shuffle = true;
  }
  return options;
}

static std::string Count(size_t n, const char* one) {
  char text[64];
  std::snprintf(text, sizeof(text), "%lu %s%s", static_cast<unsigned long>(n), one, n == 1 ? "" : "s");
  return text;
}

static std::vector<std::string> Suites(const std::vector<Test>& tests) {
  std::vector<std::string> suites;
  for (size_t i = 0; i < tests.size(); ++i) {
    if (std::find(suites.begin(), suites.end(), tests[i].suite) == suites.end()) suites.push_back(tests[i].suite);
  }
  return suites;
}

static void List(const std::vector<Test>& tests) {
  const std::vector<std::string> suites = Suites(tests);
  for (size_t s = 0; s < suites.size(); ++s) {
    std::printf("%s.\n", suites[s].c_str());
    for (size_t i = 0; i < tests.size(); ++i) {
      if (tests[i].suite == suites[s]) std::printf("  %s\n", tests[i].name.c_str());
    }
  }
}

static void RunOne(const Test& test, std::vector<std::string>* failures) {
  const std::string where = test.type_param.empty() ? "" : ", where TypeParam = " + test.type_param;
  std::printf("[ RUN      ] %s\n", test.full().c_str());
  std::fflush(stdout);
  failed = false;
  test.body();
  if (failed) {
    failures->push_back(test.full() + where);
    std::printf("[  FAILED  ] %s%s (0 ms)\n", test.full().c_str(), where.c_str());
  } else {
    std::printf("[       OK ] %s (0 ms)\n", test.full().c_str());
  }
  std::fflush(stdout);
}

static void RunSuite(const std::vector<Test>& tests, const std::string& suite, std::vector<std::string>* failures) {
  std::vector<Test> mine;
  for (size_t i = 0; i < tests.size(); ++i) {
    if (tests[i].suite == suite) mine.push_back(tests[i]);
  }
  const std::string where = mine[0].type_param.empty() ? "" : ", where TypeParam = " + mine[0].type_param;
  std::printf("[----------] %s from %s%s\n", Count(mine.size(), "test").c_str(), suite.c_str(), where.c_str());
  for (size_t i = 0; i < mine.size(); ++i) RunOne(mine[i], failures);
  std::printf("[----------] %s from %s (0 ms total)\n\n", Count(mine.size(), "test").c_str(), suite.c_str());
}

static int Run(const std::vector<Test>& tests) {
  const std::vector<std::string> suites = Suites(tests);
  std::vector<std::string> failures;
  const std::string counts = Count(tests.size(), "test") + " from " + Count(suites.size(), "test case");
  std::printf("[==========] Running %s.\n[----------] Global test environment set-up.\n", counts.c_str());
  for (size_t s = 0; s < suites.size(); ++s) RunSuite(tests, suites[s], &failures);
  std::printf("[----------] Global test environment tear-down\n[==========] %s ran. (0 ms total)\n", counts.c_str());
  std::printf("[  PASSED  ] %s.\n", Count(tests.size() - failures.size(), "test").c_str());
  if (failures.empty()) return 0;
  std::printf("[  FAILED  ] %s, listed below:\n", Count(failures.size(), "test").c_str());
  for (size_t i = 0; i < failures.size(); ++i) std::printf("[  FAILED  ] %s\n", failures[i].c_str());
  std::printf("\n%2d FAILED %s\n", static_cast<int>(failures.size()), failures.size() == 1 ? "TEST" : "TESTS");
  return 1;
}

int Main(int argc, char** argv) {
  const Options options = Parse(argc, argv);
  std::vector<Test> chosen;
  int number = 0;
  for (size_t i = 0; i < All().size(); ++i) {
    if (!Wanted(options.filter, All()[i].full())) continue;
    if (options.list || number % options.shards == options.shard) chosen.push_back(All()[i]);
    ++number;
  }
  if (options.list) {
    List(chosen);
    return 0;
  }
  if (options.filter != "*") std::printf("Note: Google Test filter = %s\n", options.filter.c_str());
  if (options.shards > 1) std::printf("Note: This is test shard %d of %d.\n", options.shard + 1, options.shards);
  if (options.shuffle) std::printf("Note: Randomizing tests' orders with a seed of 1 .\n");
  return Run(chosen);
}

}  // namespace testing
