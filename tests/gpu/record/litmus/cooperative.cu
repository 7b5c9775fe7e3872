// A cooperative launch is measured like any other.
// verdicts: racy 1, ordered 0
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
