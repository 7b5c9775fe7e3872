// A cooperative launch is not measured, and the report says so: what its arguments point into is assumed, so the race is a possible one.
// verdicts: racy 3, ordered 3
// says: not measured
// racy says: possible race
#include "litmus.h"
#include <cooperative_groups.h>

__global__ void together(int *to) {
	busy(2000000);
	cooperative_groups::this_grid().sync();
	to[blockIdx.x * blockDim.x + threadIdx.x] = 1;
}

int main(int argc, char **argv) {
	bool racy = start(argc, argv);
	int *a = zeros(), *b = zeros();
	cudaStream_t s = stream(), t = stream();
	void *arguments[] = {&a};
	OK(cudaLaunchCooperativeKernel((void *)together, dim3(8), dim3(count / 8), arguments, 0, s)); // first
	if (!racy)
		order(s, t);
	take<<<1, count, 0, t>>>(b, a); // then
	return saw(b);
}
