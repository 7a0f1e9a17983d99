/* boost/shared_ptr.hpp, and the standard headers that Caffe uses without including them.
 *
 * Why:   each libstdc++ includes fewer of its own headers in others: <limits> is not in <algorithm> from 11 on,
 *        <cstdint> not in <string> from 13 on, <algorithm> not in <functional> from 14 on.
 * Since: gcc 10 (https://gcc.gnu.org/gcc-11/porting_to.html, gcc-13, gcc-14).
 * Whom:  forks whose own layers use numeric_limits, uint8_t or sort and rely on others for the header.
 *
 * caffe/common.hpp includes this header before anything else, in every tree. Nothing is defined here.
 */
#ifndef CAFFEUP_BOOST_SHARED_PTR_HPP_
#define CAFFEUP_BOOST_SHARED_PTR_HPP_

#include_next <boost/shared_ptr.hpp>

#include <stdint.h>
#include <algorithm>
#include <cfloat>
#include <climits>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <numeric>
#if __cplusplus >= 201103L
#include <cstdint>
#include <functional>
#endif

#endif  /* CAFFEUP_BOOST_SHARED_PTR_HPP_ */
