/* opencv2/highgui.hpp of OpenCV 3, for OpenCV 2.
 *
 * Why:   OpenCV 3 split highgui into imgcodecs, videoio and highgui, and named its headers anew.
 * Since: needed with OpenCV 2 only, and installed only there (weiliu89/caffe#65).
 * Whom:  forks that were moved to OpenCV 3 or later.
 */
#ifndef CAFFEUP_2_OPENCV2_HIGHGUI_HPP_
#define CAFFEUP_2_OPENCV2_HIGHGUI_HPP_

#include <opencv2/highgui/highgui.hpp>

#endif  /* CAFFEUP_2_OPENCV2_HIGHGUI_HPP_ */
