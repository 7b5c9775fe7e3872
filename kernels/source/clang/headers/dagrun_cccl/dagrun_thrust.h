// The parts of Thrust that device code uses of any of its headers.
#pragma once
#ifdef __CUDACC_RTC__ // NVRTC takes no host functions. Those of templates are not used as what they become here.
#include <cuda/std/__cccl/execution_space.h>
#undef _CCCL_HOST
#define _CCCL_HOST __device__
#endif
#include <thrust/functional.h>
#include <thrust/pair.h>
#include <thrust/tuple.h>
