/* opencv2/imgproc.hpp of OpenCV 3, for OpenCV 2.
 *
 * Why:   OpenCV 3 split highgui into imgcodecs, videoio and highgui, and named its headers anew.
 * Since: needed with OpenCV 2 only, and installed only there (weiliu89/caffe#65).
 * Whom:  forks that were moved to OpenCV 3 or later.
 */
#ifndef CAFFEUP_2_OPENCV2_IMGPROC_HPP_
#define CAFFEUP_2_OPENCV2_IMGPROC_HPP_

#include <opencv2/imgproc/imgproc.hpp>

#endif  /* CAFFEUP_2_OPENCV2_IMGPROC_HPP_ */
