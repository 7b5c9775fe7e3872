// The types of cuFFT.
#include <cufft.h>
