/* opencv2/videoio.hpp of OpenCV 3, for OpenCV 2.
 *
 * Why:   OpenCV 3 split highgui into imgcodecs, videoio and highgui, and named its headers anew.
 * Since: needed with OpenCV 2 only, and installed only there (weiliu89/caffe#65).
 * Whom:  forks that were moved to OpenCV 3 or later.
 */
#ifndef CAFFEUP_2_OPENCV2_VIDEOIO_HPP_
#define CAFFEUP_2_OPENCV2_VIDEOIO_HPP_

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

#endif  /* CAFFEUP_2_OPENCV2_VIDEOIO_HPP_ */
