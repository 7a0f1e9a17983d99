/* Gives back the C constants (CV_LOAD_IMAGE_COLOR, CV_BGR2GRAY, CV_FILLED, CV_FOURCC …) that Caffe and its forks use.
 *
 * Why:   OpenCV 4 moved them to headers that nothing includes any more; OpenCV 5 has no C headers at all.
 * Since: OpenCV 4.0 (BVLC/caffe#6680), OpenCV 5.0.
 * Whom:  every tree that was written for OpenCV 2 or 3.
 *
 * Does nothing with OpenCV 2 and 3. With OpenCV 4 it includes OpenCV's own headers with these constants, so that
 * a source that includes them too meets the same definitions. They are enumerators: a source that has macros of the
 * same names (under "#if CV_VERSION_MAJOR == 3", say) may define them before or after.
 */
#ifndef CAFFEUP_OPENCV_CONSTANTS_H_
#define CAFFEUP_OPENCV_CONSTANTS_H_

#include <opencv2/core/core.hpp>

/* OpenCV 2.4 calls its major version CV_VERSION_EPOCH, and CV_VERSION_MAJOR is 4 there. */
#if !defined(CV_VERSION_EPOCH) && CV_VERSION_MAJOR >= 4

/* A compiler that knows no __has_include is one for OpenCV 4 at the newest, and there the headers exist. */
#if !defined(__has_include)
#define CAFFEUP_OPENCV_HAS_LEGACY
#elif __has_include(<opencv2/imgcodecs/legacy/constants_c.h>)
#define CAFFEUP_OPENCV_HAS_LEGACY
#endif

#ifdef CAFFEUP_OPENCV_HAS_LEGACY

#include <opencv2/imgcodecs/legacy/constants_c.h>
#include <opencv2/imgproc/imgproc_c.h>
#ifndef __has_include
#include <opencv2/videoio/legacy/constants_c.h>
#elif __has_include(<opencv2/videoio/legacy/constants_c.h>)
#include <opencv2/videoio/legacy/constants_c.h>
#endif

#else  /* OpenCV 5 and later */

#include <opencv2/imgcodecs.hpp>
#include <opencv2/imgproc.hpp>

/* A source may have macros of these names already; the enumerators must not be rewritten by them. */
#include "caffeup/opencv_enumerators.h"

#endif  /* CAFFEUP_OPENCV_HAS_LEGACY */
#endif  /* OpenCV 4 and later */

#endif  /* CAFFEUP_OPENCV_CONSTANTS_H_ */
