/* opencv2/videoio/videoio_c.h, and after it the C constants that it had up to OpenCV 3: see caffeup/opencv_constants.h.
 *
 * Why:   OpenCV 4 and 5 do not define them here any more.
 * Since: OpenCV 4.0.
 * Whom:  every tree that was written for OpenCV 2 or 3.
 */
#ifndef CAFFEUP_OPENCV2_VIDEOIO_VIDEOIO_C_H_
#define CAFFEUP_OPENCV2_VIDEOIO_VIDEOIO_C_H_

/* In OpenCV 4 this header is a mere #error, in OpenCV 5 it is gone. */
#include <opencv2/core/version.hpp>
#if defined(CV_VERSION_EPOCH) || CV_VERSION_MAJOR < 4
#include_next <opencv2/videoio/videoio_c.h>
#else
#include <opencv2/videoio.hpp>
#endif
#include "caffeup/opencv_constants.h"

#endif  /* CAFFEUP_OPENCV2_VIDEOIO_VIDEOIO_C_H_ */
