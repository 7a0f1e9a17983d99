/* opencv/cxcore.h, OpenCV 1's name, for an OpenCV without it.
 *
 * Why:   OpenCV 4 removed the headers of OpenCV 1.
 * Since: OpenCV 4.0.
 * Whom:  forks whose own layers still include it.
 */
#ifndef CAFFEUP_OPENCV_CXCORE_H_
#define CAFFEUP_OPENCV_CXCORE_H_

#ifndef __has_include_next
#include_next <opencv/cxcore.h>
#elif __has_include_next(<opencv/cxcore.h>)
#include_next <opencv/cxcore.h>
#else
#include <opencv2/core/core.hpp>
#endif
#include "caffeup/opencv_constants.h"

#endif  /* CAFFEUP_OPENCV_CXCORE_H_ */
