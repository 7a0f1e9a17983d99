/* opencv2/imgcodecs.hpp, and after it the C constants that it had up to OpenCV 3: see caffeup/opencv_constants.h.
 *
 * Why:   OpenCV 4 and 5 do not define them here any more; OpenCV 2 has no header of this name.
 * Since: OpenCV 4.0 (BVLC/caffe#6680); the name is OpenCV 3's (weiliu89/caffe#65).
 * Whom:  every tree that was written for OpenCV 2 or 3; with OpenCV 2, forks that were moved to OpenCV 3.
 */
#ifndef CAFFEUP_OPENCV2_IMGCODECS_HPP_
#define CAFFEUP_OPENCV2_IMGCODECS_HPP_

#include <opencv2/core/version.hpp>
#ifdef CV_VERSION_EPOCH /* OpenCV 2 */
#include <opencv2/highgui/highgui.hpp>
#else
#include_next <opencv2/imgcodecs.hpp>
#endif
#include "caffeup/opencv_constants.h"

#endif  /* CAFFEUP_OPENCV2_IMGCODECS_HPP_ */
