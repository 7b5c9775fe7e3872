// Only the bytes that are touched count: two streams may write two halves of a buffer, and may not both write the element between.
// verdicts: racy 1, ordered 0
#include "litmus.h"

__global__ void ones(int *to, int from, int end) {
	for (int i = from + threadIdx.x; i < end; i += blockDim.x)
		to[i] = 1;
}

int main(int argc, char **argv) {
	bool racy = start(argc, argv);
	int *a = zeros();
	cudaStream_t s = stream(), t = stream();
	ones<<<1, 32, 0, s>>>(a, 0, count / 2 + racy); // first
	ones<<<1, 32, 0, t>>>(a, count / 2, count); // then
	return saw(a);
}
