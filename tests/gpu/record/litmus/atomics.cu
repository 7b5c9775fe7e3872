// Atomic updates of the same bytes are no race; an atomic update and a plain write are.
// verdicts: racy 1, ordered 0
#include "litmus.h"

__global__ void add(int *to) { atomicAdd(to + threadIdx.x, 1); }

__global__ void plain(int *to) { to[threadIdx.x] = 1; }

int main(int argc, char **argv) {
	bool racy = start(argc, argv);
	int *a = zeros();
	cudaStream_t s = stream(), t = stream();
	add<<<1, count, 0, s>>>(a); // first
	if (racy)
		plain<<<1, count, 0, t>>>(a); // then
	else
		add<<<1, count, 0, t>>>(a);
	return saw(a, racy ? 1 : 2);
}
