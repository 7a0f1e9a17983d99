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

/// @brief How one direction is cut into tiles, a block of threads each.
struct TilePlan {
  int planes;   // whole planes a tile; 1 where planes are cut into rows
  int rows;     // rows a tile
  int walk;     // rows a thread
  int threads;  // 0: the generic kernels
};

/// @brief How the GPU computes one shape.
struct Plan {
  TilePlan forward, backward, weights;
  int weight_images;  // images whose weight gradients one block adds up
  int weight_stages;  // of them, how many are loaded at a time
};

/// @brief The plan of least cost for elements of so many bytes on a GPU of so
///        many multiprocessors.
Plan make_plan(const Shape& shape, int element_size, int processors);

}  // namespace depthwise
}  // namespace caffe

#endif  // CAFFE_DEPTHWISE_CONV_LAYER_HPP_
