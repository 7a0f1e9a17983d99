/* Gives back the C constants (CV_LOAD_IMAGE_COLOR, CV_BGR2GRAY, CV_FILLED, CV_FOURCC …) that Caffe and its forks use.
 *
 * Why:   OpenCV 4 moved them to headers that nothing includes any more; OpenCV 5 has no C headers at all.
 * Since: OpenCV 4.0 (BVLC/caffe#6680), OpenCV 5.0.
 * Whom:  every tree that was written for OpenCV 2 or 3.
 *
 * Does nothing with OpenCV 2 and 3. With OpenCV 4 it includes OpenCV's own headers with these constants, so that
 * a source that includes them too meets the same definitions. They are enumerators: a source that has macros of the
 * same names (under "#if CV_VERSION_MAJOR == 3", say) may define them before or after.
 */
#ifndef CAFFEUP_OPENCV_CONSTANTS_H_
#define CAFFEUP_OPENCV_CONSTANTS_H_

#include <opencv2/core/version.hpp>

/* OpenCV 2.4 calls its major version CV_VERSION_EPOCH, and CV_VERSION_MAJOR is 4 there. */
#if !defined(CV_VERSION_EPOCH) && CV_VERSION_MAJOR >= 4

/* A compiler that knows no __has_include is one for OpenCV 4 at the newest, and there the headers exist. */
#if !defined(__has_include)
#define CAFFEUP_OPENCV_HAS_LEGACY
#elif __has_include(<opencv2/imgcodecs/legacy/constants_c.h>)
#define CAFFEUP_OPENCV_HAS_LEGACY
#endif

#ifdef CAFFEUP_OPENCV_HAS_LEGACY

#include <opencv2/imgcodecs/legacy/constants_c.h>
#include <opencv2/imgproc/imgproc_c.h>
#ifndef __has_include
#include <opencv2/videoio/legacy/constants_c.h>
#elif __has_include(<opencv2/videoio/legacy/constants_c.h>)
#include <opencv2/videoio/legacy/constants_c.h>
#endif

#else  /* OpenCV 5 and later */

#include <opencv2/imgcodecs.hpp>
#include <opencv2/imgproc.hpp>

/* A name that is a macro already is the source's own, and stays. */
/* imgcodecs */
enum {
#ifndef CV_LOAD_IMAGE_UNCHANGED
  CV_LOAD_IMAGE_UNCHANGED = cv::IMREAD_UNCHANGED,
#endif
#ifndef CV_LOAD_IMAGE_GRAYSCALE
  CV_LOAD_IMAGE_GRAYSCALE = cv::IMREAD_GRAYSCALE,
#endif
#ifndef CV_LOAD_IMAGE_COLOR
  CV_LOAD_IMAGE_COLOR = cv::IMREAD_COLOR,
#endif
#ifndef CV_LOAD_IMAGE_ANYDEPTH
  CV_LOAD_IMAGE_ANYDEPTH = cv::IMREAD_ANYDEPTH,
#endif
#ifndef CV_LOAD_IMAGE_ANYCOLOR
  CV_LOAD_IMAGE_ANYCOLOR = cv::IMREAD_ANYCOLOR,
#endif
#ifndef CV_IMWRITE_JPEG_QUALITY
  CV_IMWRITE_JPEG_QUALITY = cv::IMWRITE_JPEG_QUALITY,
#endif
#ifndef CV_IMWRITE_PNG_COMPRESSION
  CV_IMWRITE_PNG_COMPRESSION = cv::IMWRITE_PNG_COMPRESSION,
#endif
#ifndef CV_IMWRITE_PXM_BINARY
  CV_IMWRITE_PXM_BINARY = cv::IMWRITE_PXM_BINARY,
#endif
  CAFFEUP_OPENCV_END_OF_IMGCODECS
};

/* imgproc colour */
enum {
#ifndef CV_BGR2BGRA
  CV_BGR2BGRA = cv::COLOR_BGR2BGRA,
#endif
#ifndef CV_RGB2RGBA
  CV_RGB2RGBA = cv::COLOR_RGB2RGBA,
#endif
#ifndef CV_BGRA2BGR
  CV_BGRA2BGR = cv::COLOR_BGRA2BGR,
#endif
#ifndef CV_RGBA2RGB
  CV_RGBA2RGB = cv::COLOR_RGBA2RGB,
#endif
#ifndef CV_BGR2RGBA
  CV_BGR2RGBA = cv::COLOR_BGR2RGBA,
#endif
#ifndef CV_RGB2BGRA
  CV_RGB2BGRA = cv::COLOR_RGB2BGRA,
#endif
#ifndef CV_RGBA2BGR
  CV_RGBA2BGR = cv::COLOR_RGBA2BGR,
#endif
#ifndef CV_BGRA2RGB
  CV_BGRA2RGB = cv::COLOR_BGRA2RGB,
#endif
#ifndef CV_BGR2RGB
  CV_BGR2RGB = cv::COLOR_BGR2RGB,
#endif
#ifndef CV_RGB2BGR
  CV_RGB2BGR = cv::COLOR_RGB2BGR,
#endif
#ifndef CV_BGRA2RGBA
  CV_BGRA2RGBA = cv::COLOR_BGRA2RGBA,
#endif
#ifndef CV_RGBA2BGRA
  CV_RGBA2BGRA = cv::COLOR_RGBA2BGRA,
#endif
#ifndef CV_BGR2GRAY
  CV_BGR2GRAY = cv::COLOR_BGR2GRAY,
#endif
#ifndef CV_RGB2GRAY
  CV_RGB2GRAY = cv::COLOR_RGB2GRAY,
#endif
#ifndef CV_GRAY2BGR
  CV_GRAY2BGR = cv::COLOR_GRAY2BGR,
#endif
#ifndef CV_GRAY2RGB
  CV_GRAY2RGB = cv::COLOR_GRAY2RGB,
#endif
#ifndef CV_GRAY2BGRA
  CV_GRAY2BGRA = cv::COLOR_GRAY2BGRA,
#endif
#ifndef CV_GRAY2RGBA
  CV_GRAY2RGBA = cv::COLOR_GRAY2RGBA,
#endif
#ifndef CV_BGRA2GRAY
  CV_BGRA2GRAY = cv::COLOR_BGRA2GRAY,
#endif
#ifndef CV_RGBA2GRAY
  CV_RGBA2GRAY = cv::COLOR_RGBA2GRAY,
#endif
#ifndef CV_BGR2XYZ
  CV_BGR2XYZ = cv::COLOR_BGR2XYZ,
#endif
#ifndef CV_RGB2XYZ
  CV_RGB2XYZ = cv::COLOR_RGB2XYZ,
#endif
#ifndef CV_XYZ2BGR
  CV_XYZ2BGR = cv::COLOR_XYZ2BGR,
#endif
#ifndef CV_XYZ2RGB
  CV_XYZ2RGB = cv::COLOR_XYZ2RGB,
#endif
#ifndef CV_BGR2YCrCb
  CV_BGR2YCrCb = cv::COLOR_BGR2YCrCb,
#endif
#ifndef CV_RGB2YCrCb
  CV_RGB2YCrCb = cv::COLOR_RGB2YCrCb,
#endif
#ifndef CV_YCrCb2BGR
  CV_YCrCb2BGR = cv::COLOR_YCrCb2BGR,
#endif
#ifndef CV_YCrCb2RGB
  CV_YCrCb2RGB = cv::COLOR_YCrCb2RGB,
#endif
#ifndef CV_BGR2HSV
  CV_BGR2HSV = cv::COLOR_BGR2HSV,
#endif
#ifndef CV_RGB2HSV
  CV_RGB2HSV = cv::COLOR_RGB2HSV,
#endif
#ifndef CV_HSV2BGR
  CV_HSV2BGR = cv::COLOR_HSV2BGR,
#endif
#ifndef CV_HSV2RGB
  CV_HSV2RGB = cv::COLOR_HSV2RGB,
#endif
#ifndef CV_BGR2Lab
  CV_BGR2Lab = cv::COLOR_BGR2Lab,
#endif
#ifndef CV_RGB2Lab
  CV_RGB2Lab = cv::COLOR_RGB2Lab,
#endif
#ifndef CV_Lab2BGR
  CV_Lab2BGR = cv::COLOR_Lab2BGR,
#endif
#ifndef CV_Lab2RGB
  CV_Lab2RGB = cv::COLOR_Lab2RGB,
#endif
#ifndef CV_BGR2Luv
  CV_BGR2Luv = cv::COLOR_BGR2Luv,
#endif
#ifndef CV_RGB2Luv
  CV_RGB2Luv = cv::COLOR_RGB2Luv,
#endif
#ifndef CV_Luv2BGR
  CV_Luv2BGR = cv::COLOR_Luv2BGR,
#endif
#ifndef CV_Luv2RGB
  CV_Luv2RGB = cv::COLOR_Luv2RGB,
#endif
#ifndef CV_BGR2HLS
  CV_BGR2HLS = cv::COLOR_BGR2HLS,
#endif
#ifndef CV_RGB2HLS
  CV_RGB2HLS = cv::COLOR_RGB2HLS,
#endif
#ifndef CV_HLS2BGR
  CV_HLS2BGR = cv::COLOR_HLS2BGR,
#endif
#ifndef CV_HLS2RGB
  CV_HLS2RGB = cv::COLOR_HLS2RGB,
#endif
#ifndef CV_BGR2YUV
  CV_BGR2YUV = cv::COLOR_BGR2YUV,
#endif
#ifndef CV_RGB2YUV
  CV_RGB2YUV = cv::COLOR_RGB2YUV,
#endif
#ifndef CV_YUV2BGR
  CV_YUV2BGR = cv::COLOR_YUV2BGR,
#endif
#ifndef CV_YUV2RGB
  CV_YUV2RGB = cv::COLOR_YUV2RGB,
#endif
  CAFFEUP_OPENCV_END_OF_IMGPROC_COLOUR
};

/* imgproc threshold */
enum {
#ifndef CV_THRESH_BINARY
  CV_THRESH_BINARY = cv::THRESH_BINARY,
#endif
#ifndef CV_THRESH_BINARY_INV
  CV_THRESH_BINARY_INV = cv::THRESH_BINARY_INV,
#endif
#ifndef CV_THRESH_TRUNC
  CV_THRESH_TRUNC = cv::THRESH_TRUNC,
#endif
#ifndef CV_THRESH_TOZERO
  CV_THRESH_TOZERO = cv::THRESH_TOZERO,
#endif
#ifndef CV_THRESH_TOZERO_INV
  CV_THRESH_TOZERO_INV = cv::THRESH_TOZERO_INV,
#endif
#ifndef CV_THRESH_MASK
  CV_THRESH_MASK = cv::THRESH_MASK,
#endif
#ifndef CV_THRESH_OTSU
  CV_THRESH_OTSU = cv::THRESH_OTSU,
#endif
#ifndef CV_INTER_AREA
  CV_INTER_AREA = cv::INTER_AREA,
#endif
#ifndef CV_INTER_NN
  CV_INTER_NN = cv::INTER_NEAREST,
#endif
#ifndef CV_INTER_LINEAR
  CV_INTER_LINEAR = cv::INTER_LINEAR,
#endif
#ifndef CV_INTER_CUBIC
  CV_INTER_CUBIC = cv::INTER_CUBIC,
#endif
#ifndef CV_INTER_LANCZOS4
  CV_INTER_LANCZOS4 = cv::INTER_LANCZOS4,
#endif
#ifndef CV_WARP_INVERSE_MAP
  CV_WARP_INVERSE_MAP = cv::WARP_INVERSE_MAP,
#endif
#ifndef CV_WARP_FILL_OUTLIERS
  CV_WARP_FILL_OUTLIERS = cv::WARP_FILL_OUTLIERS,
#endif
#ifndef CV_RETR_EXTERNAL
  CV_RETR_EXTERNAL = cv::RETR_EXTERNAL,
#endif
#ifndef CV_RETR_LIST
  CV_RETR_LIST = cv::RETR_LIST,
#endif
#ifndef CV_RETR_CCOMP
  CV_RETR_CCOMP = cv::RETR_CCOMP,
#endif
#ifndef CV_RETR_TREE
  CV_RETR_TREE = cv::RETR_TREE,
#endif
#ifndef CV_CHAIN_APPROX_NONE
  CV_CHAIN_APPROX_NONE = cv::CHAIN_APPROX_NONE,
#endif
#ifndef CV_CHAIN_APPROX_SIMPLE
  CV_CHAIN_APPROX_SIMPLE = cv::CHAIN_APPROX_SIMPLE,
#endif
#ifndef CV_FILLED
  CV_FILLED = cv::FILLED,
#endif
#ifndef CV_AA
  CV_AA = cv::LINE_AA,
#endif
#ifndef CV_FONT_HERSHEY_SIMPLEX
  CV_FONT_HERSHEY_SIMPLEX = cv::FONT_HERSHEY_SIMPLEX,
#endif
#ifndef CV_FONT_HERSHEY_PLAIN
  CV_FONT_HERSHEY_PLAIN = cv::FONT_HERSHEY_PLAIN,
#endif
#ifndef CV_FONT_HERSHEY_DUPLEX
  CV_FONT_HERSHEY_DUPLEX = cv::FONT_HERSHEY_DUPLEX,
#endif
#ifndef CV_FONT_HERSHEY_COMPLEX
  CV_FONT_HERSHEY_COMPLEX = cv::FONT_HERSHEY_COMPLEX,
#endif
#ifndef CV_FONT_HERSHEY_TRIPLEX
  CV_FONT_HERSHEY_TRIPLEX = cv::FONT_HERSHEY_TRIPLEX,
#endif
  CAFFEUP_OPENCV_END_OF_IMGPROC_THRESHOLD
};

/* videoio */
enum {
#ifndef CV_CAP_PROP_POS_MSEC
  CV_CAP_PROP_POS_MSEC = 0,
#endif
#ifndef CV_CAP_PROP_POS_FRAMES
  CV_CAP_PROP_POS_FRAMES = 1,
#endif
#ifndef CV_CAP_PROP_POS_AVI_RATIO
  CV_CAP_PROP_POS_AVI_RATIO = 2,
#endif
#ifndef CV_CAP_PROP_FRAME_WIDTH
  CV_CAP_PROP_FRAME_WIDTH = 3,
#endif
#ifndef CV_CAP_PROP_FRAME_HEIGHT
  CV_CAP_PROP_FRAME_HEIGHT = 4,
#endif
#ifndef CV_CAP_PROP_FPS
  CV_CAP_PROP_FPS = 5,
#endif
#ifndef CV_CAP_PROP_FOURCC
  CV_CAP_PROP_FOURCC = 6,
#endif
#ifndef CV_CAP_PROP_FRAME_COUNT
  CV_CAP_PROP_FRAME_COUNT = 7,
#endif
#ifndef CV_CAP_PROP_FORMAT
  CV_CAP_PROP_FORMAT = 8,
#endif
#ifndef CV_CAP_PROP_MODE
  CV_CAP_PROP_MODE = 9,
#endif
#ifndef CV_CAP_ANY
  CV_CAP_ANY = 0,
#endif
  CAFFEUP_OPENCV_END_OF_VIDEOIO
};

/* highgui */
enum {
#ifndef CV_WINDOW_NORMAL
  CV_WINDOW_NORMAL = 0,
#endif
#ifndef CV_WINDOW_AUTOSIZE
  CV_WINDOW_AUTOSIZE = 1,
#endif
  CAFFEUP_OPENCV_END_OF_HIGHGUI
};

#ifndef CV_FOURCC
/* The four-character code of a codec. */
static inline int CV_FOURCC(char c1, char c2, char c3, char c4) {
  return (c1 & 255) + ((c2 & 255) << 8) + ((c3 & 255) << 16) + ((c4 & 255) << 24);
}
#endif

#ifndef CV_RGB
#define CV_RGB(r, g, b) cv::Scalar((b), (g), (r), 0)
#endif

#endif  /* CAFFEUP_OPENCV_HAS_LEGACY */
#endif  /* OpenCV 4 and later */

#endif  /* CAFFEUP_OPENCV_CONSTANTS_H_ */
