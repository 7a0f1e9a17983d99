/* opencv2/imgproc/imgproc_c.h, and after it the C constants that it had up to OpenCV 3: see caffeup/opencv_constants.h.
 *
 * Why:   OpenCV 4 and 5 do not define them here any more.
 * Since: OpenCV 4.0.
 * Whom:  every tree that was written for OpenCV 2 or 3.
 */
#ifndef CAFFEUP_OPENCV2_IMGPROC_IMGPROC_C_H_
#define CAFFEUP_OPENCV2_IMGPROC_IMGPROC_C_H_

/* OpenCV 5 has no such header. */
#ifndef __has_include_next
#include_next <opencv2/imgproc/imgproc_c.h>
#elif __has_include_next(<opencv2/imgproc/imgproc_c.h>)
#include_next <opencv2/imgproc/imgproc_c.h>
#else
#include <opencv2/imgproc.hpp>
#endif
#include "caffeup/opencv_constants.h"

#endif  /* CAFFEUP_OPENCV2_IMGPROC_IMGPROC_C_H_ */
