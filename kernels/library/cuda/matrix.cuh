// How far apart the rows of a matrix are. Kernels whose names have _ld take tiles; others take matrices whose rows follow each other.
#pragma once
#include "common.cuh"

// The elements from one row to the next: as many as a row has, or more where the matrix is a tile of a larger one.
struct Dense { DEVICE_MEMBER i64 operator()(i64 cols) const { return cols; } };
struct Apart {
  i64 elements; // 0: rows follow each other
  DEVICE_MEMBER i64 operator()(i64 cols) const { return elements == 0 ? cols : elements; }
};
