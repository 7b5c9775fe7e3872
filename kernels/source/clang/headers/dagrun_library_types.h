// The types that the headers of NVIDIA's libraries bring in.
#pragma once
#if __has_include(<cuda_fp16.h>)
#include <cuda_fp16.h>
#endif
#if __has_include(<cuda_bf16.h>)
#include <cuda_bf16.h>
#endif
#include <cuComplex.h>
