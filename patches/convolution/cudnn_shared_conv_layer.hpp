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

#ifndef CAFFE_CUDNN_SHARED_CONV_LAYER_HPP_
#define CAFFE_CUDNN_SHARED_CONV_LAYER_HPP_

#ifdef USE_CUDNN
#include <vector>

#include "caffe/blob.hpp"
#include "caffe/layer.hpp"
#include "caffe/proto/caffe.pb.h"
#include "caffe/util/cudnn.hpp"
// Trees before 2016 keep all layers in one header.
#ifdef __has_include
#if __has_include("caffe/layers/conv_layer.hpp")
#include "caffe/layers/conv_layer.hpp"
#else
#include "caffe/vision_layers.hpp"
#endif
#else
#include "caffe/layers/conv_layer.hpp"
#endif

namespace caffe {
namespace cudnn {

/// @brief What cuDNN is told about one convolution.
struct SharedConv {
  cudnnTensorDescriptor_t bottom, top, bias;
  cudnnFilterDescriptor_t filter;
  cudnnConvolutionDescriptor_t conv;
  int kernel;     // the larger side
  size_t macs;    // multiplications of one direction
};

/// @brief How one direction is computed.
template <typename Algorithm>
struct SharedChoice {
  SharedChoice() : asked(false), possible(false), workspace(0) {}
  bool asked, possible;
  Algorithm algorithm;
  size_t workspace;  // bytes
};

}  // namespace cudnn

/**
 * @brief Convolution through cuDNN 7 or newer, for any number of groups.
 *
 * All such layers of a thread share one handle, on the default stream, and one
 * workspace, so that layers with many groups take no more of the card than
 * others. cuDNN is told the groups and computes them in one call; what it is
 * told, and the algorithm of each direction, change only with a shape. A
 * direction that is never computed is never asked for.
 *
 * What cuDNN cannot do, for this shape or in the memory that is left, is
 * computed as by ConvolutionLayer. So are, where no engine is named, the 1x1
 * convolutions of a single image: one product of matrices each.
 *
 * cuDNN's own order of algorithms is followed, but for those that lose digits
 * and those that keep the host busy for longer than the GPU.
 *
 * float is computed in float. With CAFFEUP_TF32 defined as 1 cuDNN may use the
 * tensor cores of Ampere and newer, which round its inputs to 10 bits.
 */
template <typename Dtype>
class CuDNNSharedConvLayer : public ConvolutionLayer<Dtype> {
 public:
  explicit CuDNNSharedConvLayer(const LayerParameter& param)
      : ConvolutionLayer<Dtype>(param), created_(false), described_(false),
        suitable_(true) {}
  virtual ~CuDNNSharedConvLayer();
  virtual void Reshape(const vector<Blob<Dtype>*>& bottom,
      const vector<Blob<Dtype>*>& top);

 protected:
  virtual void Forward_gpu(const vector<Blob<Dtype>*>& bottom,
      const vector<Blob<Dtype>*>& top);
  virtual void Backward_gpu(const vector<Blob<Dtype>*>& top,
      const vector<bool>& propagate_down, const vector<Blob<Dtype>*>& bottom);

  bool same_shapes(const vector<Blob<Dtype>*>& bottom,
      const vector<Blob<Dtype>*>& top) const;
  bool is_suitable(const Blob<Dtype>& bottom) const;
  void describe();
  template <typename Perf, typename Algorithm>
  bool ready(cudnn::SharedChoice<Algorithm>* choice);

  bool created_, described_, suitable_;
  vector<int> bottom_size_, top_size_;
  cudnn::SharedConv shape_;
  cudnn::SharedChoice<cudnnConvolutionFwdAlgo_t> forward_;
  cudnn::SharedChoice<cudnnConvolutionBwdFilterAlgo_t> backward_filter_;
  cudnn::SharedChoice<cudnnConvolutionBwdDataAlgo_t> backward_data_;

  DISABLE_COPY_AND_ASSIGN(CuDNNSharedConvLayer);
};

}  // namespace caffe
#endif  // USE_CUDNN

#endif  // CAFFE_CUDNN_SHARED_CONV_LAYER_HPP_
