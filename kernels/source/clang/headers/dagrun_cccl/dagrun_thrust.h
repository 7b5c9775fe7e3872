// The parts of Thrust that device code uses of any of its headers.
#pragma once
#include <thrust/functional.h>
#include <thrust/pair.h>
#include <thrust/tuple.h>
