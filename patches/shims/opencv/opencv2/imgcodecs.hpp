/* opencv2/imgcodecs.hpp, and after it the C constants that it had up to OpenCV 3: see caffeup/opencv_constants.h.
 *
 * Why:   OpenCV 4 and 5 do not define them here any more.
 * Since: OpenCV 4.0.
 * Whom:  every tree that was written for OpenCV 2 or 3.
 */
#ifndef CAFFEUP_OPENCV2_IMGCODECS_HPP_
#define CAFFEUP_OPENCV2_IMGCODECS_HPP_

#include_next <opencv2/imgcodecs.hpp>
#include "caffeup/opencv_constants.h"

#endif  /* CAFFEUP_OPENCV2_IMGCODECS_HPP_ */
