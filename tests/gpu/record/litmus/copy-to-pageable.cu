// Rule copy: an asynchronous copy to pageable memory is complete when it returns; one to pinned memory is not.
// verdicts: racy 1, ordered 0
#include "litmus.h"

int main(int argc, char **argv) {
	bool racy = start(argc, argv);
	int *a = zeros(), *b = zeros(), *pinned;
	OK(cudaMallocHost(&pinned, bytes));
	cudaStream_t s = stream(), t = stream();
	late<<<1, count, 0, s>>>(a); // first
	OK(cudaMemcpyAsync(racy ? pinned : (int *)malloc(bytes), a, bytes, cudaMemcpyDeviceToHost, s));
	take<<<1, count, 0, t>>>(b, a); // then
	return saw(b);
}
