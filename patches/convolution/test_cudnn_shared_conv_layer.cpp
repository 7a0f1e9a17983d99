/*
 * Convolution through cuDNN with one handle and one workspace for all layers.
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

#ifdef USE_CUDNN
#include <algorithm>
#include <string>
#include <vector>

#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"

#include "caffe/blob.hpp"
#include "caffe/common.hpp"
#include "caffe/filler.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/layers/cudnn_shared_conv_layer.hpp"

#include "caffe/test/test_caffe_main.hpp"
#include "caffe/test/test_gradient_check_util.hpp"

// Last: the gradient checker of 2015 takes fabs for that of double alone.
#include <boost/thread.hpp>  // NOLINT(build/include_order)

namespace caffe {

namespace {

struct Case {
  int num, channels, height, width, outputs, group;
  int kernel_h, kernel_w, stride_h, stride_w, pad_h, pad_w, dilation;
  bool bias;
};

const Case kCases[] = {
  // One group: kernels of all kinds, and products of matrices.
  {2, 3, 16, 17, 8, 1, 3, 3, 1, 1, 1, 1, 1, true},
  {2, 3, 32, 32, 8, 1, 3, 3, 2, 2, 1, 1, 1, false},
  {1, 64, 19, 19, 32, 1, 1, 1, 1, 1, 0, 0, 1, true},
  {4, 64, 19, 19, 32, 1, 1, 1, 1, 1, 0, 0, 1, true},
  {1, 16, 10, 10, 8, 1, 1, 1, 2, 2, 0, 0, 1, true},
  {2, 4, 15, 12, 6, 1, 5, 5, 1, 1, 2, 2, 1, true},
  {1, 3, 64, 64, 32, 1, 5, 5, 1, 1, 2, 2, 1, true},
  {16, 32, 32, 32, 32, 1, 5, 5, 1, 1, 2, 2, 1, true},
  {1, 3, 40, 40, 4, 1, 7, 7, 2, 2, 3, 3, 1, true},
  {2, 4, 9, 11, 6, 1, 5, 1, 2, 1, 2, 0, 1, true},
  {2, 4, 9, 11, 6, 1, 2, 4, 1, 2, 1, 2, 1, true},
  {2, 4, 12, 13, 6, 1, 3, 3, 1, 1, 2, 2, 2, true},
  {32, 8, 7, 7, 8, 1, 3, 3, 1, 1, 1, 1, 1, true},
  {2, 4, 1, 1, 6, 1, 3, 3, 1, 1, 1, 1, 1, true},
  // Several, up to one a channel.
  {2, 6, 16, 17, 4, 2, 3, 3, 1, 1, 1, 1, 1, true},
  {2, 6, 16, 17, 9, 3, 5, 5, 2, 2, 2, 2, 1, false},
  {3, 64, 14, 14, 64, 32, 3, 3, 1, 1, 1, 1, 1, true},
  {2, 8, 12, 12, 8, 4, 1, 1, 1, 1, 0, 0, 1, true},
  {2, 16, 19, 19, 16, 16, 3, 3, 1, 1, 1, 1, 1, true},
  {2, 16, 19, 19, 32, 16, 3, 3, 2, 2, 1, 1, 1, true},
  {2, 6, 12, 13, 6, 6, 3, 3, 1, 1, 2, 2, 2, true},
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

LayerParameter Parameter(const Case& c, ConvolutionParameter_Engine engine) {
  LayerParameter param;
  param.set_name("layer");
  param.set_type("Convolution");
  ConvolutionParameter* const conv = param.mutable_convolution_param();
  conv->set_num_output(c.outputs);
  conv->set_group(c.group);
  conv->set_kernel_h(c.kernel_h);
  conv->set_kernel_w(c.kernel_w);
  conv->set_stride_h(c.stride_h);
  conv->set_stride_w(c.stride_w);
  conv->set_pad_h(c.pad_h);
  conv->set_pad_w(c.pad_w);
  if (c.dilation > 1) { SetDilation(conv, c.dilation); }
  conv->set_bias_term(c.bias);
  conv->set_engine(engine);
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

// Algorithms by Winograd and Fourier are less exact than a sum of products.
template <typename Dtype>
void ExpectNear(int count, const Dtype* actual, const Dtype* expected,
    const char* what, int index) {
  const Dtype share = sizeof(Dtype) == sizeof(float) ? 1e-4 : 1e-9;
  Dtype largest = 1;
  for (int i = 0; i < count; ++i) {
    largest = std::max(largest, std::abs(expected[i]));
  }
  for (int i = 0; i < count; ++i) {
    ASSERT_NEAR(actual[i], expected[i], share * largest)
        << what << " " << i << " of case " << index;
  }
}

// A layer with blobs of its own.
template <typename Dtype>
class Setup {
 public:
  explicit Setup(shared_ptr<Layer<Dtype> > l) : layer(l) {
    bottoms.push_back(&bottom);
    tops.push_back(&top);
  }
  void Start(const vector<int>& shape) {
    Fill(shape, &bottom, false);
    layer->SetUp(bottoms, tops);
    for (size_t i = 0; i < layer->blobs().size(); ++i) {
      Fill(layer->blobs()[i]->shape(), layer->blobs()[i].get(), true);
    }
  }
  void StartAs(const Setup& other) {
    bottom.CopyFrom(other.bottom, false, true);
    layer->SetUp(bottoms, tops);
    CopyFrom(other);
  }
  void CopyFrom(const Setup& other) {
    for (size_t i = 0; i < layer->blobs().size(); ++i) {
      layer->blobs()[i]->CopyFrom(*other.layer->blobs()[i], false);
      layer->blobs()[i]->CopyFrom(*other.layer->blobs()[i], true);
    }
  }
  void Forward() { layer->Forward(bottoms, tops); }
  void Backward(bool propagate = true) {
    layer->Backward(tops, vector<bool>(bottoms.size(), propagate), bottoms);
  }

  shared_ptr<Layer<Dtype> > layer;
  Blob<Dtype> bottom, top;
  vector<Blob<Dtype>*> bottoms, tops;
};

}  // namespace

template <typename Dtype>
class CuDNNSharedConvLayerTest : public GPUDeviceTest<Dtype> {
 public:
  static shared_ptr<Layer<Dtype> > Ours(const Case& c,
      ConvolutionParameter_Engine engine = ConvolutionParameter_Engine_CUDNN) {
    return shared_ptr<Layer<Dtype> >(
        new CuDNNSharedConvLayer<Dtype>(Parameter(c, engine)));
  }
  static shared_ptr<Layer<Dtype> > Caffes(const Case& c) {
    return shared_ptr<Layer<Dtype> >(new ConvolutionLayer<Dtype>(
        Parameter(c, ConvolutionParameter_Engine_CAFFE)));
  }
  static vector<int> BottomShape(const Case& c) {
    vector<int> shape(4);
    shape[0] = c.num;
    shape[1] = c.channels;
    shape[2] = c.height;
    shape[3] = c.width;
    return shape;
  }
  static bool HasDilation() {
    ConvolutionParameter param;
    return SetDilation(&param, 1);
  }
  // Runs both forward and backward on the same and compares everything.
  static void ExpectSame(Setup<Dtype>* actual, Setup<Dtype>* expected,
      int index) {
    expected->Forward();
    actual->Forward();
    ASSERT_TRUE(actual->top.shape() == expected->top.shape());
    ExpectNear(expected->top.count(), actual->top.cpu_data(),
        expected->top.cpu_data(), "top", index);
    Fill(expected->top.shape(), &expected->top, true);
    actual->top.CopyFrom(expected->top, true);
    expected->Backward();
    actual->Backward();
    ExpectNear(expected->bottom.count(), actual->bottom.cpu_diff(),
        expected->bottom.cpu_diff(), "bottom diff", index);
    for (size_t i = 0; i < actual->layer->blobs().size(); ++i) {
      ExpectNear(expected->layer->blobs()[i]->count(),
          actual->layer->blobs()[i]->cpu_diff(),
          expected->layer->blobs()[i]->cpu_diff(),
          i == 0 ? "weight diff" : "bias diff", index);
    }
  }
};

TYPED_TEST_CASE(CuDNNSharedConvLayerTest, TestDtypes);

TYPED_TEST(CuDNNSharedConvLayerTest, TestAgainstCaffe) {
  for (int i = 0; i < kCaseCount; ++i) {
    if (kCases[i].dilation > 1 && !this->HasDilation()) { continue; }
    for (int by_name = 0; by_name < 2; ++by_name) {
      Setup<TypeParam> expected(this->Caffes(kCases[i]));
      Setup<TypeParam> actual(this->Ours(kCases[i],
          by_name ? ConvolutionParameter_Engine_CUDNN :
                    ConvolutionParameter_Engine_DEFAULT));
      expected.Start(this->BottomShape(kCases[i]));
      actual.StartAs(expected);
      this->ExpectSame(&actual, &expected, i);
      if (this->HasFatalFailure()) { return; }
    }
  }
}

TYPED_TEST(CuDNNSharedConvLayerTest, TestGradient) {
  const Case cases[] = {
    {2, 2, 4, 3, 2, 1, 3, 3, 1, 1, 1, 1, 1, true},
    {2, 4, 5, 4, 4, 2, 3, 3, 2, 2, 1, 1, 1, true},
    {1, 3, 4, 3, 3, 3, 3, 3, 1, 1, 1, 1, 1, false},
  };
  for (int i = 0; i < 3; ++i) {
    Setup<TypeParam> s(this->Ours(cases[i]));
    Fill(this->BottomShape(cases[i]), &s.bottom, false);
    GradientChecker<TypeParam> checker(1e-2, 1e-3);
    checker.CheckGradientExhaustive(s.layer.get(), s.bottoms, s.tops);
  }
}

TYPED_TEST(CuDNNSharedConvLayerTest, TestNewShape) {
  Case c = {4, 6, 20, 20, 8, 2, 3, 3, 1, 1, 1, 1, 1, true};
  Setup<TypeParam> actual(this->Ours(c));
  actual.Start(this->BottomShape(c));
  actual.Forward();
  actual.Backward();
  const int sizes[][3] = {{1, 7, 9}, {16, 33, 12}, {2, 1, 1}, {4, 20, 20}};
  for (int i = 0; i < 4; ++i) {
    c.num = sizes[i][0];
    c.height = sizes[i][1];
    c.width = sizes[i][2];
    Setup<TypeParam> expected(this->Caffes(c));
    expected.Start(this->BottomShape(c));
    actual.bottom.CopyFrom(expected.bottom, false, true);
    actual.CopyFrom(expected);
    this->ExpectSame(&actual, &expected, i);
    if (this->HasFatalFailure()) { return; }
  }
}

TYPED_TEST(CuDNNSharedConvLayerTest, TestSeveralBottoms) {
  const Case c = {2, 4, 8, 11, 6, 2, 3, 3, 1, 1, 1, 1, 1, true};
  Setup<TypeParam> expected(this->Caffes(c)), actual(this->Ours(c));
  Setup<TypeParam>* const both[] = {&expected, &actual};
  Blob<TypeParam> bottoms[2], tops[2];
  Fill(this->BottomShape(c), &bottoms[0], false);
  bottoms[1].CopyFrom(bottoms[0], false, true);
  for (int i = 0; i < 2; ++i) {
    both[i]->bottoms.push_back(&bottoms[i]);
    both[i]->tops.push_back(&tops[i]);
  }
  expected.Start(this->BottomShape(c));
  actual.StartAs(expected);
  expected.Forward();
  Fill(tops[0].shape(), &tops[0], true);
  tops[1].ReshapeLike(tops[0]);
  tops[1].CopyFrom(tops[0], true);
  this->ExpectSame(&actual, &expected, 0);
  ExpectNear(tops[0].count(), tops[1].cpu_data(), tops[0].cpu_data(), "top", 1);
  ExpectNear(bottoms[0].count(), bottoms[1].cpu_diff(), bottoms[0].cpu_diff(),
      "bottom diff", 1);
}

TYPED_TEST(CuDNNSharedConvLayerTest, TestWhatIsNotAskedForIsLeft) {
  const Case c = {2, 4, 9, 9, 6, 2, 3, 3, 1, 1, 1, 1, 1, true};
  for (int asked = 0; asked < 2; ++asked) {  // the bias alone, the rest alone
    Setup<TypeParam> s(this->Ours(c));
    s.Start(this->BottomShape(c));
    s.Forward();
    Fill(s.bottom.shape(), &s.bottom, true);
    Fill(s.top.shape(), &s.top, true);
    Blob<TypeParam> bottom, weight, bias;
    bottom.CopyFrom(s.bottom, true, true);
    weight.CopyFrom(*s.layer->blobs()[0], true, true);
    bias.CopyFrom(*s.layer->blobs()[1], true, true);
    s.layer->set_param_propagate_down(asked ? 1 : 0, false);
    s.Backward(asked);
    const bool kept[] = {!asked, !asked, !!asked};
    EXPECT_EQ(kept[0], bottom.cpu_diff()[0] == s.bottom.cpu_diff()[0]);
    EXPECT_EQ(kept[1],
        weight.cpu_diff()[0] == s.layer->blobs()[0]->cpu_diff()[0]);
    EXPECT_EQ(kept[2],
        bias.cpu_diff()[0] == s.layer->blobs()[1]->cpu_diff()[0]);
  }
}

// Layers of thousands of groups, as MobileNets have, all alive at a time.
TYPED_TEST(CuDNNSharedConvLayerTest, TestManyGroups) {
  const Case c = {1, 1024, 4, 4, 1024, 1024, 3, 3, 1, 1, 1, 1, 1, false};
  vector<shared_ptr<Setup<TypeParam> > > all;
  for (int i = 0; i < 32; ++i) {
    all.push_back(shared_ptr<Setup<TypeParam> >(
        new Setup<TypeParam>(this->Ours(c))));
    if (i == 0) {
      all[0]->Start(this->BottomShape(c));
    } else {
      all[i]->StartAs(*all[0]);
    }
    all[i]->Forward();
    ExpectNear(all[0]->top.count(), all[i]->top.cpu_data(),
        all[0]->top.cpu_data(), "top", i);
  }
}

TYPED_TEST(CuDNNSharedConvLayerTest, TestFactory) {
  const Case c = {2, 4, 6, 6, 4, 2, 3, 3, 1, 1, 1, 1, 1, true};
  const ConvolutionParameter_Engine engines[] = {
      ConvolutionParameter_Engine_CAFFE, ConvolutionParameter_Engine_CUDNN};
  for (int i = 0; i < 2; ++i) {
    const shared_ptr<Layer<TypeParam> > layer =
        LayerRegistry<TypeParam>::CreateLayer(Parameter(c, engines[i]));
    EXPECT_EQ(i == 1,
        dynamic_cast<CuDNNSharedConvLayer<TypeParam>*>(layer.get()) != NULL);
    EXPECT_STREQ("Convolution", layer->type());
  }
}

// What has three spatial axes is not cuDNN's, and works unless it must be.
TYPED_TEST(CuDNNSharedConvLayerTest, TestThreeSpatialAxes) {
  if (!this->HasDilation()) { return; }  // older than convolution in N-d
  LayerParameter param;
  param.set_type("Convolution");
  google::protobuf::TextFormat::ParseFromString(
      "num_output: 2 kernel_size: 3 pad: 1 weight_filler { type: 'gaussian' }",
      param.mutable_convolution_param());
  vector<int> shape(5, 4);
  Setup<TypeParam> actual(shared_ptr<Layer<TypeParam> >(
      new CuDNNSharedConvLayer<TypeParam>(param)));
  Setup<TypeParam> expected(shared_ptr<Layer<TypeParam> >(
      new ConvolutionLayer<TypeParam>(param)));
  expected.Start(shape);
  actual.StartAs(expected);
  this->ExpectSame(&actual, &expected, 0);
  param.mutable_convolution_param()->set_engine(
      ConvolutionParameter_Engine_CUDNN);
  Setup<TypeParam> refused(shared_ptr<Layer<TypeParam> >(
      new CuDNNSharedConvLayer<TypeParam>(param)));
  Caffe::set_mode(Caffe::CPU);  // CUDA does not work in a forked process
  EXPECT_DEATH(refused.Start(shape), "2 spatial axes");
  Caffe::set_mode(Caffe::GPU);
}

template <typename Dtype>
void RunInThread(int device, Setup<Dtype>* s) {
  CUDA_CHECK(cudaSetDevice(device));
  Caffe::set_mode(Caffe::GPU);
  s->Forward();
  s->top.cpu_data();
}

// A net may be made in one thread and used in others, as servers do.
TYPED_TEST(CuDNNSharedConvLayerTest, TestThreads) {
  const Case c = {2, 6, 20, 20, 8, 2, 3, 3, 1, 1, 1, 1, 1, true};
  int device;
  CUDA_CHECK(cudaGetDevice(&device));
  Setup<TypeParam> expected(this->Ours(c)), actual(this->Ours(c));
  expected.Start(this->BottomShape(c));
  expected.Forward();
  actual.StartAs(expected);
  for (int i = 0; i < 3; ++i) {
    caffe_set(actual.top.count(), TypeParam(0), actual.top.mutable_cpu_data());
    boost::thread thread(&RunInThread<TypeParam>, device, &actual);
    thread.join();
    ExpectNear(expected.top.count(), actual.top.cpu_data(),
        expected.top.cpu_data(), "top", i);
  }
}

}  // namespace caffe
#endif  // USE_CUDNN
