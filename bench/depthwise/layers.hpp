// The depthwise layers that are measured; each line is every layer of that shape in its net.
#pragma once

struct LayerShape {
  const char* net;
  const char* name;
  int channels, size, kernel, stride;
};

static const LayerShape kLayers[] = {
    {"ssd300", "conv1/dw", 32, 150, 3, 1},     {"ssd300", "conv2/dw", 64, 150, 3, 2},     {"ssd300", "conv3/dw", 128, 75, 3, 1},
    {"ssd300", "conv4/dw", 128, 75, 3, 2},     {"ssd300", "conv5/dw", 256, 38, 3, 1},     {"ssd300", "conv6/dw", 256, 38, 3, 2},
    {"ssd300", "conv7-11/dw", 512, 19, 3, 1},  {"ssd300", "conv12/dw", 512, 19, 3, 2},    {"ssd300", "conv13/dw", 1024, 10, 3, 1},
    {"v1-224", "conv2_1/dw", 32, 112, 3, 1},   {"v1-224", "conv2_2/dw", 64, 112, 3, 2},   {"v1-224", "conv3_1/dw", 128, 56, 3, 1},
    {"v1-224", "conv3_2/dw", 128, 56, 3, 2},   {"v1-224", "conv4_1/dw", 256, 28, 3, 1},   {"v1-224", "conv4_2/dw", 256, 28, 3, 2},
    {"v1-224", "conv5_1-5/dw", 512, 14, 3, 1}, {"v1-224", "conv5_6/dw", 512, 14, 3, 2},   {"v1-224", "conv6/dw", 1024, 7, 3, 1},
    {"v2-224", "conv2_1/dw", 32, 112, 3, 1},   {"v2-224", "conv2_2/dw", 96, 112, 3, 2},   {"v2-224", "conv3_1/dw", 144, 56, 3, 1},
    {"v2-224", "conv3_2/dw", 144, 56, 3, 2},   {"v2-224", "conv4_1-2/dw", 192, 28, 3, 1}, {"v2-224", "conv4_7/dw", 192, 28, 3, 2},
    {"v2-224", "conv4_3-6/dw", 384, 14, 3, 1}, {"v2-224", "conv5_1-2/dw", 576, 14, 3, 1}, {"v2-224", "conv5_3/dw", 576, 14, 3, 2},
    {"v2-224", "conv6_1-3/dw", 960, 7, 3, 1},  {"5x5", "k5 56", 128, 56, 5, 1},           {"5x5", "k5 56/2", 128, 56, 5, 2},
    {"5x5", "k5 19", 512, 19, 5, 1},           {"5x5", "k5 19/2", 512, 19, 5, 2},
};
