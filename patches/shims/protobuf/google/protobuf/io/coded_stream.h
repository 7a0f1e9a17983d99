/* google/protobuf/io/coded_stream.h, where SetTotalBytesLimit(limit, warning) may be called with two arguments.
 *
 * Why:   protobuf dropped the second argument, which Caffe gives in src/caffe/util/io.cpp (BVLC/caffe PR 7044).
 * Since: protobuf 3.13 has the one-argument form alone; up to 3.5 there is the two-argument form alone.
 * Whom:  every tree.
 *
 * A macro cannot ask which overloads a class has. It need not: from 3.12.0 on the one-argument form is there, and before
 * that nothing is done, because the two-argument form is there up to 3.12.4. Both ends were looked up in the headers.
 */
#ifndef CAFFEUP_CODED_STREAM_H_
#define CAFFEUP_CODED_STREAM_H_

#include_next <google/protobuf/io/coded_stream.h>

#ifndef GOOGLE_PROTOBUF_VERSION
#include <google/protobuf/stubs/common.h>
#endif

#if !defined(GOOGLE_PROTOBUF_VERSION) || GOOGLE_PROTOBUF_VERSION >= 3012000
#define CAFFEUP_FIRST_OF(first, ...) first
#define SetTotalBytesLimit(...) SetTotalBytesLimit(CAFFEUP_FIRST_OF(__VA_ARGS__, 0))
#endif

#endif  /* CAFFEUP_CODED_STREAM_H_ */
