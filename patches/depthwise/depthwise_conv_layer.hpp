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

#ifndef CAFFE_DEPTHWISE_CONV_LAYER_HPP_
#define CAFFE_DEPTHWISE_CONV_LAYER_HPP_

#ifndef DEPTHWISE_CONV_STANDALONE
#include <string>
#include <vector>

#include "caffe/blob.hpp"
#include "caffe/layer.hpp"
#include "caffe/proto/caffe.pb.h"
#include "caffe/syncedmem.hpp"
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
#endif  // DEPTHWISE_CONV_STANDALONE

namespace caffe {
namespace depthwise {

/// @brief A depthwise convolution: output channel c * multiplier + m is input
///        channel c under a filter of its own.
struct Shape {
  int num, channels, multiplier;
  int height, width, out_height, out_width;
  int kernel_h, kernel_w, stride_h, stride_w;
  int pad_h, pad_w, dilation_h, dilation_w;
};

/// @brief How one direction is cut into tiles, and who computes them.
struct TilePlan {
  int planes;   // whole planes a tile; 1 where planes are cut into rows
  int rows;     // rows a tile
  int walk;     // rows a thread
  int threads;  // a block; 0: the generic kernels
  int stages;   // tiles of a block that are loaded at a time
  int blocks;   // that take turns at the tiles; 0: as many as tiles
};

/// @brief How the GPU computes one shape.
struct Plan {
  TilePlan forward, backward, weights;
  int weight_images;  // images whose weight gradients one block adds up
};

/// @brief What a plan depends on.
struct Gpu {
  int processors;
  int shared_bytes;  // of shared memory in each
};

/// @brief The plan of least cost for elements of so many bytes.
Plan make_plan(const Shape& shape, int element_size, const Gpu& gpu);

}  // namespace depthwise

#ifndef DEPTHWISE_CONV_STANDALONE

/**
 * @brief Convolves every input channel with filters of its own: Convolution
 *        with group == channels, computed directly, without im2col or a loop
 *        over groups.
 *
 * Takes ConvolutionParameter as ConvolutionLayer does, and has the same weights
 * in the same shape: (num_output, 1, kernel_h, kernel_w), num_output being a
 * multiple of the input's channels. Where group is not given it is the number
 * of channels, and so is num_output.
 *
 * Registered as DepthwiseConvolution and ConvolutionDepthwise. Under these
 * names it refuses what is not a depthwise convolution over 4 axes. In place of
 * a Convolution (see the constructor) it leaves such a layer to another.
 */
template <typename Dtype>
class DepthwiseConvLayer : public ConvolutionLayer<Dtype> {
 public:
  typedef shared_ptr<Layer<Dtype> > (*Creator)(const LayerParameter&);

  /**
   * @param otherwise makes the layer that computes a "Convolution" which turns
   *        out not to be depthwise once its bottoms are known; without it,
   *        ConvolutionLayer does.
   */
  explicit DepthwiseConvLayer(const LayerParameter& param,
      Creator otherwise = NULL)
      : ConvolutionLayer<Dtype>(param), otherwise_(otherwise),
        depthwise_(false), planned_(false) {}

  /**
   * @brief Makes a "Convolution": this layer for one with groups that names no
   *        engine, whatever `otherwise` makes for the rest. With
   *        CAFFE_AUTO_DEPTHWISE=0 in the environment, always the latter.
   */
  static shared_ptr<Layer<Dtype> > MakeConvolution(const LayerParameter& param,
      Creator otherwise);

  virtual void LayerSetUp(const vector<Blob<Dtype>*>& bottom,
      const vector<Blob<Dtype>*>& top);
  virtual void Reshape(const vector<Blob<Dtype>*>& bottom,
      const vector<Blob<Dtype>*>& top);

  virtual inline const char* type() const {
    const std::string& name = this->layer_param_.type();
    return name.empty() ? "DepthwiseConvolution" : name.c_str();
  }

 protected:
  virtual void Forward_cpu(const vector<Blob<Dtype>*>& bottom,
      const vector<Blob<Dtype>*>& top);
  virtual void Forward_gpu(const vector<Blob<Dtype>*>& bottom,
      const vector<Blob<Dtype>*>& top);
  virtual void Backward_cpu(const vector<Blob<Dtype>*>& top,
      const vector<bool>& propagate_down, const vector<Blob<Dtype>*>& bottom);
  virtual void Backward_gpu(const vector<Blob<Dtype>*>& top,
      const vector<bool>& propagate_down, const vector<Blob<Dtype>*>& bottom);

  bool by_name() const { return this->layer_param_.type() != "Convolution"; }
  bool is_depthwise(const Blob<Dtype>& bottom) const;
  bool reshaped(const vector<Blob<Dtype>*>& bottom,
      const vector<Blob<Dtype>*>& top) const;
  void other_backward(const vector<Blob<Dtype>*>& top,
      const vector<bool>& propagate_down, const vector<Blob<Dtype>*>& bottom);
  void make_gpu_plan();

  Creator otherwise_;
  shared_ptr<Layer<Dtype> > other_;  // computes what is not depthwise
  bool depthwise_, planned_;
  vector<int> bottom_size_, top_size_;
  depthwise::Shape shape_;
  depthwise::Plan plan_;
  // For the CPU.
  vector<size_t> offsets_;
  vector<Dtype> scratch_;
  // For the weight gradients on the GPU.
  shared_ptr<SyncedMemory> partial_, finished_;
};

#endif  // DEPTHWISE_CONV_STANDALONE

}  // namespace caffe

#endif  // CAFFE_DEPTHWISE_CONV_LAYER_HPP_
