// Vector types, with the alignment that CUDA gives them, and their make_ functions.
#pragma once

#define __DAGRUN_VECTORS(name, type, pair, quad)                                                                   \
  struct name##1 { type x; };                                                                                      \
  struct __attribute__((aligned(pair))) name##2 { type x, y; };                                                    \
  struct name##3 { type x, y, z; };                                                                                \
  struct __attribute__((aligned(quad))) name##4 { type x, y, z, w; };                                              \
  __DAGRUN_BOTH name##1 make_##name##1(type x) { name##1 v = {x}; return v; }                                      \
  __DAGRUN_BOTH name##2 make_##name##2(type x, type y) { name##2 v = {x, y}; return v; }                           \
  __DAGRUN_BOTH name##3 make_##name##3(type x, type y, type z) { name##3 v = {x, y, z}; return v; }                \
  __DAGRUN_BOTH name##4 make_##name##4(type x, type y, type z, type w) { name##4 v = {x, y, z, w}; return v; }
__DAGRUN_VECTORS(char, signed char, 2, 4)
__DAGRUN_VECTORS(uchar, unsigned char, 2, 4)
__DAGRUN_VECTORS(short, short, 4, 8)
__DAGRUN_VECTORS(ushort, unsigned short, 4, 8)
__DAGRUN_VECTORS(int, int, 8, 16)
__DAGRUN_VECTORS(uint, unsigned, 8, 16)
__DAGRUN_VECTORS(long, long, 16, 16)
__DAGRUN_VECTORS(ulong, unsigned long, 16, 16)
__DAGRUN_VECTORS(longlong, long long, 16, 16)
__DAGRUN_VECTORS(ulonglong, unsigned long long, 16, 16)
__DAGRUN_VECTORS(float, float, 8, 16)
__DAGRUN_VECTORS(double, double, 16, 16)
#undef __DAGRUN_VECTORS

struct dim3 {
  unsigned x, y, z;
  __attribute__((host)) __attribute__((device)) constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
  __attribute__((host)) __attribute__((device)) constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
  __attribute__((host)) __attribute__((device)) constexpr operator uint3() const { return uint3{x, y, z}; }
};
