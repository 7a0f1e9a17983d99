/*
 * Depthwise convolution for Caffe: each channel has its own filter.
 *
 * Copyright (c) 2026, the caffeup authors. All rights reserved.
 *
 * Redistribution and use in source and binary forms, with or without
 * modification, are permitted provided that the following conditions are met:
 *
 * 1. Redistributions of source code must retain the above copyright notice,
 *    this list of conditions and the following disclaimer.
 * 2. Redistributions in binary form must reproduce the above copyright notice,
 *    this list of conditions and the following disclaimer in the documentation
 *    and/or other materials provided with the distribution.
 *
 * THIS SOFTWARE IS PROVIDED BY THE COPYRIGHT HOLDERS AND CONTRIBUTORS "AS IS"
 * AND ANY EXPRESS OR IMPLIED WARRANTIES, INCLUDING, BUT NOT LIMITED TO, THE
 * IMPLIED WARRANTIES OF MERCHANTABILITY AND FITNESS FOR A PARTICULAR PURPOSE
 * ARE DISCLAIMED. IN NO EVENT SHALL THE COPYRIGHT OWNER OR CONTRIBUTORS BE
 * LIABLE FOR ANY DIRECT, INDIRECT, INCIDENTAL, SPECIAL, EXEMPLARY, OR
 * CONSEQUENTIAL DAMAGES (INCLUDING, BUT NOT LIMITED TO, PROCUREMENT OF
 * SUBSTITUTE GOODS OR SERVICES; LOSS OF USE, DATA, OR PROFITS; OR BUSINESS
 * INTERRUPTION) HOWEVER CAUSED AND ON ANY THEORY OF LIABILITY, WHETHER IN
 * CONTRACT, STRICT LIABILITY, OR TORT (INCLUDING NEGLIGENCE OR OTHERWISE)
 * ARISING IN ANY WAY OUT OF THE USE OF THIS SOFTWARE, EVEN IF ADVISED OF THE
 * POSSIBILITY OF SUCH DAMAGE.
 */

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"

#include "caffe/blob.hpp"
#include "caffe/common.hpp"
#include "caffe/filler.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/layers/depthwise_conv_layer.hpp"
#include "caffe/net.hpp"

#include "caffe/test/test_caffe_main.hpp"
#include "caffe/test/test_gradient_check_util.hpp"

namespace caffe {

namespace {

struct Case {
  int num, channels, multiplier, height, width;
  int kernel_h, kernel_w, stride_h, stride_w, pad_h, pad_w, dilation;
  bool bias;
};

const Case kCases[] = {
  // What MobileNets are made of, at batch sizes and widths of all kinds.
  {1, 4, 1, 16, 16, 3, 3, 1, 1, 1, 1, 1, true},
  {2, 4, 1, 16, 16, 3, 3, 2, 2, 1, 1, 1, true},
  {2, 3, 1, 19, 19, 3, 3, 1, 1, 1, 1, 1, false},
  {2, 3, 1, 19, 19, 3, 3, 2, 2, 1, 1, 1, true},
  {3, 5, 1, 10, 10, 3, 3, 1, 1, 1, 1, 1, true},
  {3, 5, 1, 10, 10, 3, 3, 2, 2, 1, 1, 1, false},
  {64, 2, 1, 7, 7, 3, 3, 1, 1, 1, 1, 1, true},
  {64, 2, 1, 7, 7, 3, 3, 2, 2, 1, 1, 1, true},
  {1, 2, 1, 75, 75, 3, 3, 1, 1, 1, 1, 1, true},
  {1, 2, 1, 150, 150, 3, 3, 2, 2, 1, 1, 1, true},
  {1, 2, 1, 9, 301, 3, 3, 1, 1, 1, 1, 1, true},
  {1, 1, 1, 260, 5, 3, 3, 1, 1, 1, 1, 1, true},
  {1, 1, 1, 3, 3000, 3, 3, 1, 1, 1, 1, 1, true},
  {2, 7, 1, 14, 17, 5, 5, 1, 1, 2, 2, 1, true},
  {2, 7, 1, 17, 14, 5, 5, 2, 2, 2, 2, 1, true},
  // Maps smaller than the kernel, as in the heads of SSDLite.
  {2, 6, 1, 1, 1, 3, 3, 1, 1, 1, 1, 1, true},
  {2, 6, 1, 2, 2, 3, 3, 1, 1, 1, 1, 1, true},
  {2, 6, 1, 2, 2, 3, 3, 2, 2, 1, 1, 1, true},
  {2, 6, 1, 1, 9, 3, 3, 1, 1, 1, 1, 1, true},
  {2, 6, 1, 9, 1, 3, 3, 2, 2, 1, 1, 1, true},
  {2, 6, 1, 3, 3, 5, 5, 1, 1, 2, 2, 1, true},
  {2, 6, 1, 5, 5, 7, 7, 1, 1, 3, 3, 1, true},
  // Other padding, kernels, strides and dilation.
  {2, 3, 1, 11, 12, 3, 3, 1, 1, 0, 0, 1, true},
  {2, 3, 1, 11, 12, 3, 3, 2, 2, 0, 0, 1, true},
  {2, 3, 1, 11, 12, 3, 3, 1, 1, 2, 2, 1, true},
  {2, 3, 1, 8, 9, 3, 3, 2, 2, 2, 0, 1, true},
  {2, 3, 1, 8, 9, 3, 3, 1, 1, 4, 3, 1, true},
  {2, 3, 1, 8, 9, 2, 4, 1, 1, 1, 2, 1, true},
  {2, 3, 1, 12, 9, 5, 1, 2, 1, 2, 0, 1, true},
  {2, 3, 1, 12, 9, 3, 3, 1, 2, 1, 1, 1, true},
  {2, 3, 1, 12, 9, 3, 3, 3, 3, 1, 1, 1, true},
  {2, 3, 1, 9, 9, 1, 1, 2, 2, 0, 0, 1, true},
  {2, 3, 1, 12, 13, 3, 3, 1, 1, 2, 2, 2, true},
  {2, 3, 1, 12, 13, 3, 3, 2, 2, 2, 1, 2, true},
  // Several filters a channel.
  {2, 3, 2, 10, 12, 3, 3, 1, 1, 1, 1, 1, true},
  {2, 3, 2, 10, 12, 3, 3, 2, 2, 1, 1, 1, true},
  {2, 3, 4, 7, 8, 5, 5, 1, 1, 2, 2, 1, false},
  {2, 1, 8, 9, 9, 3, 3, 1, 1, 1, 1, 1, true},
};
const int kCaseCount = sizeof(kCases) / sizeof(kCases[0]);

// False where the tree's Caffe is older than dilation.
bool SetDilation(ConvolutionParameter* param, int dilation) {
  const google::protobuf::FieldDescriptor* const field =
      param->GetDescriptor()->FindFieldByName("dilation");
  if (field) {
    param->GetReflection()->AddUInt32(param, field, dilation);
  }
  return field != NULL;
}

LayerParameter Parameter(const Case& c, const std::string& type) {
  LayerParameter param;
  param.set_name("layer");
  param.set_type(type);
  ConvolutionParameter* const conv = param.mutable_convolution_param();
  conv->set_num_output(c.channels * c.multiplier);
  conv->set_group(c.channels);
  conv->set_kernel_h(c.kernel_h);
  conv->set_kernel_w(c.kernel_w);
  conv->set_stride_h(c.stride_h);
  conv->set_stride_w(c.stride_w);
  conv->set_pad_h(c.pad_h);
  conv->set_pad_w(c.pad_w);
  if (c.dilation > 1) { SetDilation(conv, c.dilation); }
  conv->set_bias_term(c.bias);
  conv->mutable_weight_filler()->set_type("gaussian");
  conv->mutable_bias_filler()->set_type("gaussian");
  return param;
}

template <typename Dtype>
void Fill(const vector<int>& shape, Blob<Dtype>* blob, bool diff) {
  FillerParameter param;
  GaussianFiller<Dtype> filler(param);
  Blob<Dtype> values(shape);
  filler.Fill(&values);
  blob->Reshape(shape);
  caffe_copy(values.count(), values.cpu_data(),
      diff ? blob->mutable_cpu_diff() : blob->mutable_cpu_data());
}

template <typename Dtype>
void ExpectNear(int count, const Dtype* actual, const Dtype* expected,
    const char* what, int index) {
  Dtype largest = 1;
  for (int i = 0; i < count; ++i) {
    largest = std::max(largest, std::abs(expected[i]));
  }
  for (int i = 0; i < count; ++i) {
    ASSERT_NEAR(actual[i], expected[i], 2e-5 * largest)
        << what << " " << i << " of case " << index;
  }
}

}  // namespace

// A layer with blobs of its own.
template <typename Dtype>
class Setup {
 public:
  explicit Setup(shared_ptr<Layer<Dtype> > l) : layer(l) {
    bottoms.push_back(&bottom);
    tops.push_back(&top);
  }
  void Run(bool propagate = true) {
    layer->Forward(bottoms, tops);
    Fill(top.shape(), &top, true);
    Backward(propagate);
  }
  void Backward(bool propagate = true) {
    layer->Backward(tops, vector<bool>(1, propagate), bottoms);
  }
  // Takes what the other has before a run.
  void CopyFrom(const Setup& other) {
    for (size_t i = 0; i < layer->blobs().size(); ++i) {
      layer->blobs()[i]->CopyFrom(*other.layer->blobs()[i], false);
      layer->blobs()[i]->CopyFrom(*other.layer->blobs()[i], true);
    }
  }

  shared_ptr<Layer<Dtype> > layer;
  Blob<Dtype> bottom, top;
  vector<Blob<Dtype>*> bottoms, tops;
};

template <typename TypeParam>
class DepthwiseConvLayerTest : public MultiDeviceTest<TypeParam> {
 protected:
  typedef typename TypeParam::Dtype Dtype;

  static shared_ptr<Layer<Dtype> > Depthwise(const LayerParameter& param) {
    return shared_ptr<Layer<Dtype> >(
        new DepthwiseConvLayer<Dtype>(param));
  }
  static shared_ptr<Layer<Dtype> > Grouped(const LayerParameter& param) {
    return shared_ptr<Layer<Dtype> >(new ConvolutionLayer<Dtype>(param));
  }
  static vector<int> BottomShape(const Case& c) {
    vector<int> shape(4);
    shape[0] = c.num;
    shape[1] = c.channels;
    shape[2] = c.height;
    shape[3] = c.width;
    return shape;
  }
  static void SetUpLayer(const Case& c, Setup<Dtype>* s) {
    Fill(BottomShape(c), &s->bottom, false);
    s->layer->SetUp(s->bottoms, s->tops);
    for (size_t i = 0; i < s->layer->blobs().size(); ++i) {
      Fill(s->layer->blobs()[i]->shape(), s->layer->blobs()[i].get(), true);
    }
  }
  // Runs `actual` on what `expected` started from and compares everything.
  static void ExpectSame(Setup<Dtype>* actual, Setup<Dtype>* expected,
      int index, Caffe::Brew mode) {
    actual->bottom.CopyFrom(expected->bottom, false, true);
    actual->layer->SetUp(actual->bottoms, actual->tops);
    actual->CopyFrom(*expected);
    const Caffe::Brew before = Caffe::mode();
    Caffe::set_mode(mode);
    expected->Run();
    Caffe::set_mode(before);
    actual->layer->Forward(actual->bottoms, actual->tops);
    ASSERT_TRUE(actual->top.shape() == expected->top.shape());
    actual->top.CopyFrom(expected->top, true);
    const int count = expected->top.count();
    ExpectNear(count, actual->top.cpu_data(), expected->top.cpu_data(), "top",
        index);
    actual->Backward();
    ExpectNear(actual->bottom.count(), actual->bottom.cpu_diff(),
        expected->bottom.cpu_diff(), "bottom diff", index);
    for (size_t i = 0; i < actual->layer->blobs().size(); ++i) {
      ExpectNear(actual->layer->blobs()[i]->count(),
          actual->layer->blobs()[i]->cpu_diff(),
          expected->layer->blobs()[i]->cpu_diff(),
          i == 0 ? "weight diff" : "bias diff", index);
    }
  }
};

TYPED_TEST_CASE(DepthwiseConvLayerTest, TestDtypesAndDevices);

TYPED_TEST(DepthwiseConvLayerTest, TestSetUp) {
  typedef typename TypeParam::Dtype Dtype;
  const Case c = {2, 3, 2, 6, 5, 3, 3, 2, 2, 1, 1, 1, true};
  Setup<Dtype> s(this->Depthwise(Parameter(c, "DepthwiseConvolution")));
  this->SetUpLayer(c, &s);
  EXPECT_EQ(2, s.top.shape(0));
  EXPECT_EQ(6, s.top.shape(1));
  EXPECT_EQ(3, s.top.shape(2));
  EXPECT_EQ(3, s.top.shape(3));
  EXPECT_EQ(2, s.layer->blobs().size());
  EXPECT_EQ(6, s.layer->blobs()[0]->shape(0));
  EXPECT_EQ(1, s.layer->blobs()[0]->shape(1));
  EXPECT_EQ(3, s.layer->blobs()[0]->shape(2));
  EXPECT_EQ(3, s.layer->blobs()[0]->shape(3));
  EXPECT_EQ(6, s.layer->blobs()[1]->count());
}

TYPED_TEST(DepthwiseConvLayerTest, TestAgainstGroups) {
  typedef typename TypeParam::Dtype Dtype;
  LayerParameter param;
  const bool has_dilation = SetDilation(param.mutable_convolution_param(), 1);
  for (int i = 0; i < kCaseCount; ++i) {
    if (kCases[i].dilation > 1 && !has_dilation) { continue; }
    Setup<Dtype> expected(this->Grouped(Parameter(kCases[i], "Convolution")));
    Setup<Dtype> actual(
        this->Depthwise(Parameter(kCases[i], "DepthwiseConvolution")));
    this->SetUpLayer(kCases[i], &expected);
    this->ExpectSame(&actual, &expected, i, Caffe::mode());
    if (this->HasFatalFailure()) { return; }
  }
}

TYPED_TEST(DepthwiseConvLayerTest, TestAgainstCPU) {
  typedef typename TypeParam::Dtype Dtype;
  if (Caffe::mode() == Caffe::CPU) { return; }
  for (int i = 0; i < kCaseCount; ++i) {
    const LayerParameter param = Parameter(kCases[i], "DepthwiseConvolution");
    Setup<Dtype> expected(this->Depthwise(param));
    Setup<Dtype> actual(this->Depthwise(param));
    this->SetUpLayer(kCases[i], &expected);
    this->ExpectSame(&actual, &expected, i, Caffe::CPU);
    if (this->HasFatalFailure()) { return; }
  }
}

TYPED_TEST(DepthwiseConvLayerTest, TestGradient) {
  typedef typename TypeParam::Dtype Dtype;
  const Case cases[] = {
    {2, 2, 1, 6, 5, 3, 3, 1, 1, 1, 1, 1, true},
    {2, 2, 1, 5, 6, 3, 3, 2, 2, 1, 1, 1, true},
    {1, 2, 2, 6, 5, 3, 3, 1, 1, 1, 1, 1, true},
    {1, 2, 1, 5, 7, 5, 5, 2, 2, 2, 2, 1, false},
    {1, 2, 1, 5, 4, 2, 3, 1, 2, 0, 1, 1, true},
  };
  for (int i = 0; i < 5; ++i) {
    Blob<Dtype> bottom, top;
    Fill(this->BottomShape(cases[i]), &bottom, false);
    vector<Blob<Dtype>*> bottoms(1, &bottom), tops(1, &top);
    DepthwiseConvLayer<Dtype> layer(
        Parameter(cases[i], "DepthwiseConvolution"));
    GradientChecker<Dtype> checker(1e-2, 1e-3);
    checker.CheckGradientExhaustive(&layer, bottoms, tops);
  }
}

TYPED_TEST(DepthwiseConvLayerTest, TestSameBitsAgain) {
  typedef typename TypeParam::Dtype Dtype;
  const Case c = {8, 16, 1, 30, 31, 3, 3, 1, 1, 1, 1, 1, true};
  const LayerParameter param = Parameter(c, "DepthwiseConvolution");
  Setup<Dtype> first(this->Depthwise(param)), second(this->Depthwise(param));
  this->SetUpLayer(c, &first);
  second.bottom.CopyFrom(first.bottom, false, true);
  second.layer->SetUp(second.bottoms, second.tops);
  second.CopyFrom(first);
  first.Run();
  for (int repeat = 0; repeat < 3; ++repeat) {
    second.layer->Forward(second.bottoms, second.tops);
    second.top.CopyFrom(first.top, true);
    Blob<Dtype> weight_before;
    weight_before.CopyFrom(*second.layer->blobs()[0], true, true);
    second.Backward();
    for (int i = 0; i < first.top.count(); ++i) {
      ASSERT_EQ(first.top.cpu_data()[i], second.top.cpu_data()[i]);
    }
    for (int i = 0; i < first.bottom.count(); ++i) {
      ASSERT_EQ(first.bottom.cpu_diff()[i], second.bottom.cpu_diff()[i]);
    }
    for (int i = 0; i < weight_before.count(); ++i) {
      ASSERT_EQ(first.layer->blobs()[0]->cpu_diff()[i],
          second.layer->blobs()[0]->cpu_diff()[i]);
    }
    second.layer->blobs()[0]->CopyFrom(weight_before, true);
  }
}

TYPED_TEST(DepthwiseConvLayerTest, TestWhatIsNotAskedForIsLeft) {
  typedef typename TypeParam::Dtype Dtype;
  const Case c = {2, 4, 1, 9, 9, 3, 3, 1, 1, 1, 1, 1, true};
  Setup<Dtype> s(this->Depthwise(Parameter(c, "DepthwiseConvolution")));
  this->SetUpLayer(c, &s);
  Fill(s.bottom.shape(), &s.bottom, true);
  Blob<Dtype> bottom, weight, bias;
  bottom.CopyFrom(s.bottom, true, true);
  weight.CopyFrom(*s.layer->blobs()[0], true, true);
  bias.CopyFrom(*s.layer->blobs()[1], true, true);
  s.layer->set_param_propagate_down(0, false);
  s.Run(false);
  for (int i = 0; i < bottom.count(); ++i) {
    ASSERT_EQ(bottom.cpu_diff()[i], s.bottom.cpu_diff()[i]);
  }
  for (int i = 0; i < weight.count(); ++i) {
    ASSERT_EQ(weight.cpu_diff()[i], s.layer->blobs()[0]->cpu_diff()[i]);
  }
  EXPECT_NE(bias.cpu_diff()[0], s.layer->blobs()[1]->cpu_diff()[0]);
  bias.CopyFrom(*s.layer->blobs()[1], true);
  s.layer->set_param_propagate_down(0, true);
  s.layer->set_param_propagate_down(1, false);
  s.Run(false);
  EXPECT_NE(weight.cpu_diff()[0], s.layer->blobs()[0]->cpu_diff()[0]);
  for (int i = 0; i < bias.count(); ++i) {
    ASSERT_EQ(bias.cpu_diff()[i], s.layer->blobs()[1]->cpu_diff()[i]);
  }
}

TYPED_TEST(DepthwiseConvLayerTest, TestNewShape) {
  typedef typename TypeParam::Dtype Dtype;
  Case c = {4, 3, 1, 20, 20, 3, 3, 1, 1, 1, 1, 1, true};
  const LayerParameter param = Parameter(c, "DepthwiseConvolution");
  Setup<Dtype> actual(this->Depthwise(param));
  this->SetUpLayer(c, &actual);
  actual.Run();
  const int sizes[][3] = {{1, 7, 9}, {16, 33, 12}, {2, 1, 1}};
  for (int i = 0; i < 3; ++i) {
    c.num = sizes[i][0];
    c.height = sizes[i][1];
    c.width = sizes[i][2];
    Setup<Dtype> expected(this->Grouped(Parameter(c, "Convolution")));
    this->SetUpLayer(c, &expected);
    actual.CopyFrom(expected);
    actual.bottom.CopyFrom(expected.bottom, false, true);
    expected.Run();
    actual.layer->Forward(actual.bottoms, actual.tops);
    ASSERT_TRUE(actual.top.shape() == expected.top.shape());
    actual.top.CopyFrom(expected.top, true);
    actual.Backward();
    ExpectNear(expected.top.count(), actual.top.cpu_data(),
        expected.top.cpu_data(), "top", i);
    ExpectNear(expected.bottom.count(), actual.bottom.cpu_diff(),
        expected.bottom.cpu_diff(), "bottom diff", i);
    ExpectNear(expected.layer->blobs()[0]->count(),
        actual.layer->blobs()[0]->cpu_diff(),
        expected.layer->blobs()[0]->cpu_diff(), "weight diff", i);
  }
}

TYPED_TEST(DepthwiseConvLayerTest, TestSeveralBottoms) {
  typedef typename TypeParam::Dtype Dtype;
  const Case c = {2, 3, 1, 8, 11, 3, 3, 1, 1, 1, 1, 1, true};
  Setup<Dtype> expected(this->Grouped(Parameter(c, "Convolution")));
  Setup<Dtype> actual(this->Depthwise(Parameter(c, "DepthwiseConvolution")));
  Blob<Dtype> bottom, top[2];
  Fill(this->BottomShape(c), &bottom, false);
  expected.bottoms.push_back(&bottom);
  actual.bottoms.push_back(&bottom);
  expected.tops.push_back(&top[0]);
  actual.tops.push_back(&top[1]);
  this->SetUpLayer(c, &expected);
  actual.bottom.CopyFrom(expected.bottom, false, true);
  actual.layer->SetUp(actual.bottoms, actual.tops);
  actual.CopyFrom(expected);
  expected.layer->Forward(expected.bottoms, expected.tops);
  actual.layer->Forward(actual.bottoms, actual.tops);
  for (int i = 0; i < 2; ++i) {
    Fill(top[0].shape(), expected.tops[i], true);
    actual.tops[i]->CopyFrom(*expected.tops[i], true);
    ExpectNear(top[0].count(), actual.tops[i]->cpu_data(),
        expected.tops[i]->cpu_data(), "top", i);
  }
  const vector<bool> propagate(2, true);
  expected.layer->Backward(expected.tops, propagate, expected.bottoms);
  actual.layer->Backward(actual.tops, propagate, actual.bottoms);
  ExpectNear(expected.layer->blobs()[0]->count(),
      actual.layer->blobs()[0]->cpu_diff(),
      expected.layer->blobs()[0]->cpu_diff(), "weight diff", 0);
}

TYPED_TEST(DepthwiseConvLayerTest, TestNamesAndDefaults) {
  typedef typename TypeParam::Dtype Dtype;
  const Case c = {1, 3, 1, 6, 6, 3, 3, 1, 1, 1, 1, 1, true};
  const char* const names[] = {"DepthwiseConvolution", "ConvolutionDepthwise"};
  for (int i = 0; i < 2; ++i) {
    LayerParameter param = Parameter(c, names[i]);
    param.mutable_convolution_param()->clear_group();
    param.mutable_convolution_param()->clear_num_output();
    Setup<Dtype> s(LayerRegistry<Dtype>::CreateLayer(param));
    this->SetUpLayer(c, &s);
    EXPECT_STREQ(names[i], s.layer->type());
    EXPECT_EQ(3, s.layer->layer_param().convolution_param().group());
    EXPECT_EQ(3, s.top.shape(1));
    EXPECT_EQ(1, s.layer->blobs()[0]->shape(1));
  }
}

// In place of a Convolution, what is not depthwise goes to another layer.
TYPED_TEST(DepthwiseConvLayerTest, TestInPlaceOfConvolution) {
  typedef typename TypeParam::Dtype Dtype;
  const Case c = {2, 4, 1, 9, 7, 3, 3, 1, 1, 1, 1, 1, true};
  for (int groups = 1; groups <= 4; groups *= 2) {
    LayerParameter param = Parameter(c, "Convolution");
    param.mutable_convolution_param()->set_group(groups);
    for (int with_other = 0; with_other < 2; ++with_other) {
      Setup<Dtype> expected(this->Grouped(param));
      Setup<Dtype> actual(shared_ptr<Layer<Dtype> >(
          new DepthwiseConvLayer<Dtype>(param,
              with_other ? &TestFixture::Grouped : NULL)));
      EXPECT_STREQ("Convolution", actual.layer->type());
      this->SetUpLayer(c, &expected);
      this->ExpectSame(&actual, &expected, groups, Caffe::mode());
      if (this->HasFatalFailure()) { return; }
    }
  }
}

// What is made for a Convolution, by its groups, its engine and the wish.
TYPED_TEST(DepthwiseConvLayerTest, TestMadeForConvolution) {
  typedef typename TypeParam::Dtype Dtype;
  typedef DepthwiseConvLayer<Dtype> Ours;
  const Case c = {1, 4, 1, 6, 6, 3, 3, 1, 1, 1, 1, 1, true};
  const char* const before = std::getenv("CAFFE_AUTO_DEPTHWISE");
  const std::string wish = before ? before : "";
  for (int on = 0; on < 2; ++on) {
    setenv("CAFFE_AUTO_DEPTHWISE", on ? "1" : "0", 1);
    for (int groups = 1; groups <= 4; groups *= 4) {
      for (int engine = 0; engine < 2; ++engine) {
        LayerParameter param = Parameter(c, "Convolution");
        param.mutable_convolution_param()->set_group(groups);
        param.mutable_convolution_param()->set_engine(engine ?
            ConvolutionParameter_Engine_CAFFE :
            ConvolutionParameter_Engine_DEFAULT);
        const shared_ptr<Layer<Dtype> > layer =
            Ours::MakeConvolution(param, &TestFixture::Grouped);
        EXPECT_EQ(on && groups == 4 && !engine,
            dynamic_cast<Ours*>(layer.get()) != NULL);
        EXPECT_STREQ("Convolution", layer->type());
      }
    }
  }
  if (before) {
    setenv("CAFFE_AUTO_DEPTHWISE", wish.c_str(), 1);
  } else {
    unsetenv("CAFFE_AUTO_DEPTHWISE");
  }
}

TYPED_TEST(DepthwiseConvLayerTest, TestRefusals) {
  typedef typename TypeParam::Dtype Dtype;
  if (Caffe::mode() != Caffe::CPU) { return; }
  const Case c = {1, 4, 1, 6, 6, 3, 3, 1, 1, 1, 1, 1, true};
  LayerParameter param = Parameter(c, "DepthwiseConvolution");
  param.mutable_convolution_param()->set_group(2);
  Setup<Dtype> two_groups(this->Depthwise(param));
  EXPECT_DEATH(this->SetUpLayer(c, &two_groups), "as many groups");
  Setup<Dtype> five_axes(
      this->Depthwise(Parameter(c, "DepthwiseConvolution")));
  five_axes.bottom.Reshape(vector<int>(5, 4));
  EXPECT_DEATH(five_axes.layer->SetUp(five_axes.bottoms, five_axes.tops),
      "4 axes");
}

// A model that was trained with Convolution gives the same results here.
TYPED_TEST(DepthwiseConvLayerTest, TestLoadsConvolutionModel) {
  typedef typename TypeParam::Dtype Dtype;
  const std::string data =
      "layer { name: 'data' type: 'DummyData' top: 'data' dummy_data_param {"
      "  shape { dim: 2 dim: 5 dim: 11 dim: 13 }"
      "  data_filler { type: 'constant' value: 0.5 } } } "
      "layer { name: 'dw' bottom: 'data' top: 'dw' type: '";
  const std::string convolution =
      "' convolution_param { num_output: 5 group: 5 kernel_size: 3 pad: 1 "
      "engine: CAFFE weight_filler { type: 'gaussian' std: 1 } "
      "bias_filler { type: 'gaussian' std: 1 } } }";
  NetParameter trained_param, param, model;
  CHECK(google::protobuf::TextFormat::ParseFromString(
      data + "Convolution" + convolution, &trained_param));
  CHECK(google::protobuf::TextFormat::ParseFromString(
      data + "DepthwiseConvolution" + convolution, &param));
  Net<Dtype> trained(trained_param);
  trained.ToProto(&model, false);
  Net<Dtype> net(param);
  net.CopyTrainedLayersFrom(model);
  trained.ForwardFrom(0);
  net.ForwardFrom(0);
  const Blob<Dtype>& expected = *trained.blob_by_name("dw");
  ExpectNear(expected.count(), net.blob_by_name("dw")->cpu_data(),
      expected.cpu_data(), "top", 0);
}

}  // namespace caffe
