/* opencv/cv.h, OpenCV 1's name, for an OpenCV without it.
 *
 * Why:   OpenCV 4 removed the headers of OpenCV 1.
 * Since: OpenCV 4.0.
 * Whom:  forks whose own layers still include it.
 */
#ifndef CAFFEUP_OPENCV_CV_H_
#define CAFFEUP_OPENCV_CV_H_

#ifndef __has_include_next
#include_next <opencv/cv.h>
#elif __has_include_next(<opencv/cv.h>)
#include_next <opencv/cv.h>
#else
#include <opencv2/imgproc/imgproc.hpp>
#include <opencv2/imgproc/imgproc_c.h>
#endif
#include "caffeup/opencv_constants.h"

#endif  /* CAFFEUP_OPENCV_CV_H_ */
