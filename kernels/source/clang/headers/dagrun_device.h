// What CUDA C offers without an include: keywords, indices, vector types, barriers, and device functions. clang knows the language but
// does not have these declarations. Every compilation starts with this file.
#pragma once

#define __CUDACC__ 1
#define __NVCC__ 1
#define __CUDACC_VER_MAJOR__ 12
#define __CUDACC_VER_MINOR__ 0
#define CUDART_VERSION 12000
#define CUDA_VERSION 12000
#define CUDARTAPI
#define CUDART_CB
#define CUDAAPI

#define __host__ __attribute__((host))
#define __device__ __attribute__((device))
#define __global__ __attribute__((global))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __managed__ __attribute__((device))
#define __grid_constant__
#define __noinline__ __attribute__((noinline))
#define __forceinline__ inline __attribute__((always_inline))
#define __inline_hint__ inline
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))
#define __align__(n) __attribute__((aligned(n)))
#define __builtin_align__(n) __attribute__((aligned(n)))
#define __device_builtin__
#define __cudart_builtin__
#define __nv_pure__
#define __restrict __restrict__
#define __nv_is_extended_device_lambda_closure_type(t) false

// Marks functions of these headers. They have no line information, so their instructions are attributed to the user's line that calls them.
#define __DAGRUN_BOTH static inline __attribute__((host)) __attribute__((device)) __attribute__((always_inline)) __attribute__((nodebug))
#define __DAGRUN_DEVICE static inline __attribute__((device)) __attribute__((always_inline)) __attribute__((nodebug))

// The C library of Linux declares these, and programs for nvcc use them.
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;
typedef long ssize_t;

#include <stddef.h>
#include <stdint.h>
#include <dagrun_vectors.h>

typedef struct CUstream_st *cudaStream_t;
typedef struct CUevent_st *cudaEvent_t;
typedef unsigned long long cudaTextureObject_t;
typedef unsigned long long cudaSurfaceObject_t;
enum cudaError {
  cudaSuccess = 0,
  cudaErrorInvalidValue = 1,
  cudaErrorMemoryAllocation = 2,
  cudaErrorInitializationError = 3,
  cudaErrorInvalidDeviceFunction = 98,
  cudaErrorInvalidDevice = 101,
  cudaErrorNotReady = 600,
  cudaErrorNotSupported = 801,
  cudaErrorUnknown = 999,
};
typedef enum cudaError cudaError_t;
struct cudaPitchedPtr {
  void *ptr;
  size_t pitch, xsize, ysize;
};
struct cudaExtent { size_t width, height, depth; };
struct cudaPos { size_t x, y, z; };
typedef struct cudaArray *cudaArray_t;
typedef struct cudaMipmappedArray *cudaMipmappedArray_t;
typedef struct CUgraph_st *cudaGraph_t;
typedef struct CUgraphExec_st *cudaGraphExec_t;

// Lets a <<<...>>> launch in host code compile. Its code is never used.
extern "C" __host__ cudaError_t cudaConfigureCall(dim3 grid, dim3 block, size_t shared = 0, cudaStream_t stream = nullptr);
extern "C" __host__ unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared = 0, void *stream = nullptr);

// Indices. Reading a member calls a function, so that threadIdx.x reads the register and nothing is stored in memory.
#define __DAGRUN_INDEX(name, register)                                                                            \
  struct __dagrun_##name {                                                                                        \
    __declspec(property(get = read_x)) unsigned x;                                                                \
    __declspec(property(get = read_y)) unsigned y;                                                                \
    __declspec(property(get = read_z)) unsigned z;                                                                \
    __DAGRUN_MEMBER unsigned read_x() { return __nvvm_read_ptx_sreg_##register##_x(); }                           \
    __DAGRUN_MEMBER unsigned read_y() { return __nvvm_read_ptx_sreg_##register##_y(); }                           \
    __DAGRUN_MEMBER unsigned read_z() { return __nvvm_read_ptx_sreg_##register##_z(); }                           \
    __attribute__((device)) operator dim3() const { return dim3(x, y, z); }                                       \
    __attribute__((device)) operator uint3() const { uint3 v = {x, y, z}; return v; }                             \
  };                                                                                                              \
  extern const __attribute__((device)) __attribute__((weak)) __dagrun_##name name;
#define __DAGRUN_MEMBER static inline __attribute__((device)) __attribute__((always_inline)) __attribute__((nodebug))
__DAGRUN_INDEX(threadIdx, tid)
__DAGRUN_INDEX(blockIdx, ctaid)
__DAGRUN_INDEX(blockDim, ntid)
__DAGRUN_INDEX(gridDim, nctaid)
#undef __DAGRUN_INDEX
#undef __DAGRUN_MEMBER
static constexpr int warpSize = 32;

extern "C" {
__host__ __device__ int printf(const char *format, ...);
__host__ __device__ void *malloc(size_t bytes);
__host__ __device__ void free(void *memory);
__host__ __device__ void *memcpy(void *to, const void *from, size_t bytes);
__host__ __device__ void *memmove(void *to, const void *from, size_t bytes);
__host__ __device__ void *memset(void *to, int value, size_t bytes);
__host__ __device__ void __assertfail(const void *condition, const void *file, unsigned line, const void *function, size_t size) __attribute__((noreturn));
}
// Functions of host code that libraries for both name.
extern "C" {
__host__ char *strcpy(char *to, const char *from);
__host__ char *strncpy(char *to, const char *from, size_t most);
__host__ size_t strlen(const char *s);
__host__ int strcmp(const char *a, const char *b);
__host__ int strncmp(const char *a, const char *b, size_t most);
__host__ char *strchr(const char *s, int c);
__host__ char *strrchr(const char *s, int c);
__host__ void *memchr(const void *at, int c, size_t bytes);
__host__ int memcmp(const void *a, const void *b, size_t bytes);
}
inline __host__ __device__ void *operator new(size_t, void *place) noexcept { return place; }
inline __host__ __device__ void *operator new[](size_t, void *place) noexcept { return place; }

#include <dagrun_threads.h>
#include <dagrun_atomics.h>
#include <dagrun_bits.h>
#include <dagrun_math.h>
#include <dagrun_intrinsics.h>
#include <dagrun_textures.h>
#include <assert.h>

// What nvcc's own headers and the host's standard library bring in without an include of its own.
#include <algorithm>
#include <climits>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#ifdef _CCCL_ENABLE_FREESTANDING
#include <dagrun_runtime.h>
typedef long long clock_t; // as NVIDIA's C++ library has it without a host
#else
typedef long clock_t;
#endif
