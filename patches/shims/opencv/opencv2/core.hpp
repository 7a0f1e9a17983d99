/* opencv2/core.hpp, also with OpenCV 2.
 *
 * Why:   OpenCV 2 has no header of this name.
 * Since: the name is OpenCV 3's (weiliu89/caffe#65).
 * Whom:  forks that were moved to OpenCV 3, where OpenCV 2 is installed.
 */
#ifndef CAFFEUP_OPENCV2_CORE_HPP_
#define CAFFEUP_OPENCV2_CORE_HPP_

#include <opencv2/core/version.hpp>
#ifdef CV_VERSION_EPOCH /* OpenCV 2 */
#include <opencv2/core/core.hpp>
#else
#include_next <opencv2/core.hpp>
#endif

#endif  /* CAFFEUP_OPENCV2_CORE_HPP_ */
