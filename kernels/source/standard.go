// The standard headers that kernels use and NVRTC lacks. What they declare, NVRTC mostly has built in.

package source

import (
	"regexp"
	"slices"
	"strings"

	"github.com/dagrun/dagrun/kernels/source/clang"
	"github.com/dagrun/dagrun/kernels/source/nvrtc"
)

// libraryTypes is the header of the types that the headers of NVIDIA's libraries bring in.
const libraryTypes = "dagrun_library_types.h"

// standardHeaders are for NVRTC. clang has headers of its own from dagrun, and nvcc those of the host. What NVRTC lacks of a header that is empty
// here, device code does not use.
var standardHeaders = []nvrtc.Header{
	{Name: "stdint.h", Code: []byte(fixedWidths)},
	{Name: "cstdint", Code: []byte(fixedWidths + fixedWidthsInStd)},
	{Name: "stddef.h", Code: []byte("#pragma once\n")},
	{Name: "cstddef", Code: []byte("#pragma once\n")},
	{Name: "stdbool.h", Code: []byte("#pragma once\n")},
	{Name: "limits.h", Code: clang.Header("limits.h")},
	{Name: "climits", Code: clang.Header("limits.h")},
	{Name: "float.h", Code: clang.Header("float.h")},
	{Name: "cfloat", Code: clang.Header("float.h")},
	{Name: "math.h", Code: mathConstants},
	{Name: "cmath", Code: mathInStd},
	{Name: "assert.h", Code: []byte("#pragma once\n")},
	{Name: "cufft.h", Code: []byte(transformTypes)},
	{Name: "cufftXt.h", Code: []byte(transformTypes)},
	{Name: "cassert", Code: []byte("#pragma once\n")},
	{Name: "cuComplex.h", Code: clang.Header("cuComplex.h")},
	{Name: "type_traits", Code: clang.Header("type_traits")},
	{Name: "limits", Code: clang.Header("limits")},
	{Name: "utility", Code: clang.Header("utility")},
	{Name: libraryTypes, Code: clang.Header(libraryTypes)},
	{Name: "stdio.h", Code: []byte("#pragma once\n")},
	{Name: "cstdio", Code: []byte("#pragma once\n")},
	{Name: "stdlib.h", Code: []byte("#pragma once\n")},
	{Name: "cstdlib", Code: []byte("#pragma once\n")},
	{Name: "string.h", Code: []byte("#pragma once\n")},
	{Name: "cstring", Code: []byte("#pragma once\n")},
	{Name: "algorithm", Code: clang.Header("algorithm")},
	{Name: "new", Code: []byte("#pragma once\n")},
	{Name: "iterator", Code: []byte("#pragma once\n")},
	{Name: "initializer_list", Code: []byte("#pragma once\n")},
}

// preludeHeaders are for sources that NVRTC does not compile without what nvcc includes in every file, and without the parts of CCCL that need no host.
var preludeHeaders = []nvrtc.Header{
	{Name: preludeHeader, Code: []byte(prelude)},
	{Name: "complex", Code: []byte("#pragma once\nnamespace std { template <class T> class complex; }\n")},
	{Name: "sstream", Code: clang.Header("dagrun_cccl/sstream")},
	{Name: "tuple", Code: clang.Header("tuple")},
	{Name: "cub/cub.cuh", Code: clang.Header("dagrun_cccl/cub/cub.cuh")},
	{Name: "thrust/detail/complex/stream.h", Code: clang.Header("dagrun_cccl/thrust/detail/complex/stream.h")},
	{Name: thrustHeader, Code: clang.Header("dagrun_cccl/" + thrustHeader)},
}

const (
	preludeHeader = "dagrun_prelude.h"
	thrustHeader  = "dagrun_thrust.h"
)

const prelude = `#pragma once
#include <limits.h>
#include <math.h>
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;
namespace std {
typedef decltype(sizeof(0)) size_t;
typedef decltype((char *)0 - (char *)0) ptrdiff_t;
typedef decltype(nullptr) nullptr_t;
}
#include <algorithm>
#include <limits>
#include <type_traits>
#include <utility>
template <class E> __device__ const char *cudaGetErrorString(E error) { return error ? "an error of CUDA" : "no error"; }
template <class E> __device__ const char *cudaGetErrorName(E error) { return error ? "an error of CUDA" : "cudaSuccess"; }
template <class T, class L> __device__ T __shfl(T value, L lane, int width = 32) { return __shfl_sync(__activemask(), value, lane, width); }
template <class T, class L> __device__ T __shfl_up(T value, L lanes, int width = 32) { return __shfl_up_sync(__activemask(), value, lanes, width); }
template <class T, class L> __device__ T __shfl_down(T value, L lanes, int width = 32) { return __shfl_down_sync(__activemask(), value, lanes, width); }
template <class T, class L> __device__ T __shfl_xor(T value, L lanes, int width = 32) { return __shfl_xor_sync(__activemask(), value, lanes, width); }
template <class P> __device__ int __any(P p) { return __any_sync(__activemask(), p); }
template <class P> __device__ int __all(P p) { return __all_sync(__activemask(), p); }
template <class P> __device__ unsigned __ballot(P p) { return __ballot_sync(__activemask(), p); }
`

// Types of fixed width, and what declares them.
var (
	fixedWidthType     = regexp.MustCompile(`\bu?int(?:8|16|32|64|ptr)_t\b`)
	fixedWidthDeclared = regexp.MustCompile(`\btypedef\b[^;{}]*\bu?int(?:8|16|32|64|ptr)_t\s*;|\busing\s+u?int(?:8|16|32|64|ptr)_t\s*=`)
	fixedWidthIncluded = regexp.MustCompile(`#[ \t]*include[ \t]*[<"]c?stdint`)
)

const fixedWidths = `#pragma once
typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long long int64_t; // as in libcu++, for NVRTC
typedef unsigned long long uint64_t;
typedef int64_t intptr_t;
typedef uint64_t uintptr_t;
#define INT8_MAX 127
#define INT16_MAX 32767
#define INT32_MAX 2147483647
#define INT64_MAX 9223372036854775807LL
#define UINT8_MAX 255
#define UINT16_MAX 65535
#define UINT32_MAX 4294967295U
#define UINT64_MAX 18446744073709551615ULL
#define INT8_MIN (-128)
#define INT16_MIN (-32768)
#define INT32_MIN (-INT32_MAX - 1)
#define INT64_MIN (-INT64_MAX - 1)
#define INT32_C(x) x
#define UINT32_C(x) x##U
#define INT64_C(x) x##LL
#define UINT64_C(x) x##ULL
`

// ofLongs are the types of fixed width as nvcc has them on Linux: those of 64 bits are long. Libraries for NVRTC have others.
var ofLongs = strings.NewReplacer("typedef long long int64_t; // as in libcu++, for NVRTC", "typedef long int64_t;", "typedef unsigned long long uint64_t;",
	"typedef unsigned long uint64_t;")

const fixedWidthsInStd = `namespace std {
using ::int8_t; using ::uint8_t; using ::int16_t; using ::uint16_t; using ::int32_t; using ::uint32_t; using ::int64_t; using ::uint64_t;
using ::intptr_t; using ::uintptr_t;
}
`

var mathConstants = append(clang.Header("dagrun_math_constants.h"), `#ifndef INFINITY
#define INFINITY __int_as_float(0x7f800000)
#endif
#ifndef NAN
#define NAN __int_as_float(0x7fffffff)
#endif
`...)

const transformTypes = `#pragma once
typedef float cufftReal;
typedef double cufftDoubleReal;
typedef float2 cufftComplex;
typedef double2 cufftDoubleComplex;
`

// mathInStd is what clang has. Of the functions that are macros in C, NVRTC may have only those that stay.
var mathInStd = slices.Concat(mathConstants, []byte(`namespace std {
template <class T> __device__ bool isfinite(T x) { return x - x == 0; }
template <class T> __device__ bool signbit(T x) { return copysign(1.0, double(x)) < 0; }
}
`), regexp.MustCompile(`using ::(?:isfinite|signbit);\n`).ReplaceAll(clang.Header("cmath"), nil))
