// The functions that elementwise expressions call. They are a file of their own because dagrun writes the kernels of expressions
// directly in PTX, which calls these.
#include "math.cuh"

#define FUNCTION(name, body) \
  extern "C" __device__ __attribute__((noinline)) f32 dagrun_function_##name##_f32(f32 x) { return body; } \
  extern "C" __device__ __attribute__((noinline)) f64 dagrun_function_##name##_f64(f64 x) { return body; }

FUNCTION(exp, exponential(x))
FUNCTION(log, logarithm(x))
FUNCTION(log2, logarithm2(x))
FUNCTION(sin, sine(x))
FUNCTION(cos, cosine(x))
FUNCTION(tanh, hyperbolic_tangent(x))

extern "C" __device__ __attribute__((noinline)) f32 dagrun_function_pow_f32(f32 x, f32 y) { return (f32)power((f64)x, (f64)y); }
extern "C" __device__ __attribute__((noinline)) f64 dagrun_function_pow_f64(f64 x, f64 y) { return power(x, y); }
