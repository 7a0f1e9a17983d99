/* opencv2/videoio.hpp, and after it the C constants that it had up to OpenCV 3: see caffeup/opencv_constants.h.
 *
 * Why:   OpenCV 4 and 5 do not define them here any more; OpenCV 2 has no header of this name.
 * Since: OpenCV 4.0 (BVLC/caffe#6680); the name is OpenCV 3's (weiliu89/caffe#65).
 * Whom:  every tree that was written for OpenCV 2 or 3; with OpenCV 2, forks that were moved to OpenCV 3.
 */
#ifndef CAFFEUP_OPENCV2_VIDEOIO_HPP_
#define CAFFEUP_OPENCV2_VIDEOIO_HPP_

#include <opencv2/core/version.hpp>
#ifdef CV_VERSION_EPOCH /* OpenCV 2 */
#include <opencv2/highgui/highgui.hpp>

namespace cv {
enum {
  CAP_PROP_POS_MSEC = CV_CAP_PROP_POS_MSEC,
  CAP_PROP_POS_FRAMES = CV_CAP_PROP_POS_FRAMES,
  CAP_PROP_POS_AVI_RATIO = CV_CAP_PROP_POS_AVI_RATIO,
  CAP_PROP_FRAME_WIDTH = CV_CAP_PROP_FRAME_WIDTH,
  CAP_PROP_FRAME_HEIGHT = CV_CAP_PROP_FRAME_HEIGHT,
  CAP_PROP_FPS = CV_CAP_PROP_FPS,
  CAP_PROP_FOURCC = CV_CAP_PROP_FOURCC,
  CAP_PROP_FRAME_COUNT = CV_CAP_PROP_FRAME_COUNT,
  CAP_ANY = CV_CAP_ANY
};
}  // namespace cv

#else
#include_next <opencv2/videoio.hpp>
#endif
#include "caffeup/opencv_constants.h"

#endif  /* CAFFEUP_OPENCV2_VIDEOIO_HPP_ */
