/* highgui.h, OpenCV 1's name, for an OpenCV without it.
 *
 * Why:   OpenCV 4 removed the headers of OpenCV 1.
 * Since: OpenCV 4.0.
 * Whom:  forks whose own layers still include it.
 */
#ifndef CAFFEUP_HIGHGUI_H_
#define CAFFEUP_HIGHGUI_H_

#ifndef __has_include_next
#include_next <highgui.h>
#elif __has_include_next(<highgui.h>)
#include_next <highgui.h>
#else
#include <opencv2/highgui/highgui.hpp>
#include <opencv2/highgui/highgui_c.h>
#endif
#include "caffeup/opencv_constants.h"

#endif  /* CAFFEUP_HIGHGUI_H_ */
