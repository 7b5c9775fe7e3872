// What every kernel source starts with: element types, thread indices, 16-byte packs. Compiles with clang (to PTX, without a CUDA
// toolkit) and with NVRTC.
#pragma once

typedef long long i64;
typedef unsigned long long u64;
typedef int i32;
typedef unsigned int u32;
typedef unsigned short u16;
typedef float f32;
typedef double f64;

#ifdef __clang__
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))
#endif

#define DEVICE static __device__ __forceinline__
#define DEVICE_MEMBER __device__ __forceinline__
#define KERNEL(name) extern "C" __global__ void dagrun_##name
// A kernel of 256 threads a block that uses so few registers that some blocks run at once on a multiprocessor: most kernels wait for memory,
// and more threads keep more loads in flight.
#define KERNEL_OF(blocks, name) extern "C" __global__ void __launch_bounds__(256, blocks) dagrun_##name

// Indices of threads and blocks.
#ifdef __clang__
DEVICE u32 thread_x() { return __nvvm_read_ptx_sreg_tid_x(); }
DEVICE u32 block_x() { return __nvvm_read_ptx_sreg_ctaid_x(); }
DEVICE u32 block_y() { return __nvvm_read_ptx_sreg_ctaid_y(); }
DEVICE u32 block_z() { return __nvvm_read_ptx_sreg_ctaid_z(); }
DEVICE u32 threads_x() { return __nvvm_read_ptx_sreg_ntid_x(); }
DEVICE u32 blocks_x() { return __nvvm_read_ptx_sreg_nctaid_x(); }
DEVICE u32 blocks_y() { return __nvvm_read_ptx_sreg_nctaid_y(); }
DEVICE u32 blocks_z() { return __nvvm_read_ptx_sreg_nctaid_z(); }
// The barrier is written in PTX with a "memory" clobber, because LLVM moves loads from __shared__ memory across its own barrier: it
// assumes that an intrinsic does not change a static variable whose address is not taken.
DEVICE void barrier() { asm volatile("bar.sync 0;" ::: "memory"); }
DEVICE void fence() { asm volatile("membar.gl;" ::: "memory"); }
DEVICE i32 bits_of(f32 x) { return __nvvm_bitcast_f2i(x); }
DEVICE f32 f32_of(i32 x) { return __nvvm_bitcast_i2f(x); }
DEVICE i64 bits_of(f64 x) { return __nvvm_bitcast_d2ll(x); }
DEVICE f64 f64_of(i64 x) { return __nvvm_bitcast_ll2d(x); }
DEVICE f32 root(f32 x) { return __nvvm_sqrt_rn_f(x); }
DEVICE f64 root(f64 x) { return __nvvm_sqrt_rn_d(x); }
DEVICE f32 fused(f32 a, f32 b, f32 c) { return __nvvm_fma_rn_f(a, b, c); }
DEVICE f64 fused(f64 a, f64 b, f64 c) { return __nvvm_fma_rn_d(a, b, c); }
DEVICE u32 high_product(u32 a, u32 b) { return __nvvm_mulhi_ui(a, b); }
#else
DEVICE u32 thread_x() { return threadIdx.x; }
DEVICE u32 block_x() { return blockIdx.x; }
DEVICE u32 block_y() { return blockIdx.y; }
DEVICE u32 block_z() { return blockIdx.z; }
DEVICE u32 threads_x() { return blockDim.x; }
DEVICE u32 blocks_x() { return gridDim.x; }
DEVICE u32 blocks_y() { return gridDim.y; }
DEVICE u32 blocks_z() { return gridDim.z; }
DEVICE void barrier() { __syncthreads(); }
DEVICE void fence() { __threadfence(); }
DEVICE i32 bits_of(f32 x) { return __float_as_int(x); }
DEVICE f32 f32_of(i32 x) { return __int_as_float(x); }
DEVICE i64 bits_of(f64 x) { return __double_as_longlong(x); }
DEVICE f64 f64_of(i64 x) { return __longlong_as_double(x); }
DEVICE f32 root(f32 x) { return __fsqrt_rn(x); }
DEVICE f64 root(f64 x) { return __dsqrt_rn(x); }
DEVICE f32 fused(f32 a, f32 b, f32 c) { return __fmaf_rn(a, b, c); }
DEVICE f64 fused(f64 a, f64 b, f64 c) { return __fma_rn(a, b, c); }
DEVICE u32 high_product(u32 a, u32 b) { return __umulhi(a, b); }
#endif

DEVICE i64 first_index() { return (i64)block_x() * threads_x() + thread_x(); }
DEVICE i64 index_step() { return (i64)blocks_x() * threads_x(); }

template <class T> DEVICE T smaller(T a, T b) { return b < a ? b : a; }
template <class T> DEVICE T larger(T a, T b) { return a < b ? b : a; }

// f16 and bf16 are 16 bits in memory and f32 in registers. They are rounded to nearest even: bf16 with integer operations, f16 with
// the conversion that every GPU has. Arithmetic is in f32, so that every device and the Go reference agree.
struct f16 { u16 bits; };
struct bf16 { u16 bits; };
struct bits16 { u16 bits; }; // either of them, copied unchanged

template <class T> struct computed { typedef T type; };
template <> struct computed<f16> { typedef f32 type; };
template <> struct computed<bf16> { typedef f32 type; };

DEVICE f32 widen(f32 x) { return x; }
DEVICE f64 widen(f64 x) { return x; }
DEVICE i32 widen(i32 x) { return x; }
DEVICE bits16 widen(bits16 x) { return x; }
DEVICE f32 widen(bf16 x) { return f32_of((i32)((u32)x.bits << 16)); }
DEVICE f32 widen(f16 x) {
  f32 r;
  asm("cvt.f32.f16 %0, %1;" : "=f"(r) : "h"(x.bits));
  return r;
}

DEVICE void narrow(f32 &to, f32 x) { to = x; }
DEVICE void narrow(f64 &to, f64 x) { to = x; }
DEVICE void narrow(i32 &to, i32 x) { to = x; }
DEVICE void narrow(bits16 &to, bits16 x) { to = x; }
DEVICE void narrow(bf16 &to, f32 x) {
  u32 b = (u32)bits_of(x);
  if ((b & 0x7fffffffu) > 0x7f800000u) to.bits = (u16)(b >> 16 | 0x40u);
  else to.bits = (u16)((b + 0x7fffu + (b >> 16 & 1u)) >> 16);
}
DEVICE void narrow(f16 &to, f32 x) { asm("cvt.rn.f16.f32 %0, %1;" : "=h"(to.bits) : "f"(x)); }

template <int n> struct number { enum { value = n }; };

// A pack is 16 bytes of elements: one vector load or store. Two 16-bit elements share a word.
template <class T> struct alignas(16) pack {
  T v[16 / sizeof(T)];
  DEVICE_MEMBER T get(int i) const { return v[i]; }
  DEVICE_MEMBER void set(int i, T x) { v[i] = x; }
};
template <class T> struct alignas(16) pack16 {
  u32 w[4] = {0, 0, 0, 0};
  DEVICE_MEMBER T get(int i) const { T x; x.bits = (u16)(w[i / 2] >> (i % 2 * 16)); return x; }
  DEVICE_MEMBER void set(int i, T x) { w[i / 2] |= (u32)x.bits << (i % 2 * 16); }
};
template <> struct pack<f16> : pack16<f16> {};
template <> struct pack<bf16> : pack16<bf16> {};
template <> struct pack<bits16> : pack16<bits16> {};
