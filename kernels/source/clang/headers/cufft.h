// The types of cuFFT, for kernels in files that also call it.
#pragma once
typedef float cufftReal;
typedef double cufftDoubleReal;
typedef float2 cufftComplex;
typedef double2 cufftDoubleComplex;
