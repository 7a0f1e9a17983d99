#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "caffe/caffe.hpp"
#include "gtest/gtest.h"

using caffe::TwiceLayer;

template <typename Dtype>
static void Forward() {
  std::vector<Dtype> bottom(3, Dtype(2)), top;
  TwiceLayer<Dtype>().Forward(bottom, &top);
  EXPECT(top.size() == 3);
  EXPECT(top[2] == Dtype(4));
}

TINY_TEST(TwiceLayerTest/0, "caffe::CPUDevice<float>", TestForward, Forward<float>());
TINY_TEST(TwiceLayerTest/1, "caffe::CPUDevice<double>", TestForward, Forward<double>());

static void LeavesFolder() {
  const char* temp = std::getenv("TMPDIR");
  std::string name = std::string(temp != NULL ? temp : "/tmp") + "/caffe_test.XXXXXX";
  EXPECT(mkdtemp(&name[0]) != NULL);
}
TINY_TEST(HabitTest, "", TestLeavesFolder, LeavesFolder());

static void AskedToFail() { EXPECT(std::getenv("TINY_FAIL") == NULL); }
TINY_TEST(HabitTest, "", TestFails, AskedToFail());

static void AskedToAbort() { CHECK(std::getenv("TINY_ABORT") == NULL); }
TINY_TEST(HabitTest, "", TestAborts, AskedToAbort());

static void AfterAbort() { EXPECT(1 + 1 == 2); }
TINY_TEST(LastTest, "", TestStillRuns, AfterAbort());
