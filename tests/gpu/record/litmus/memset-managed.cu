// Rule memset: the host waits for a synchronous memset of managed memory, and not for an asynchronous one.
// verdicts: racy 1, ordered 0
#include "litmus.h"

int main(int argc, char **argv) {
	bool racy = start(argc, argv);
	int *a, *b = zeros(), *c = zeros();
	OK(cudaMallocManaged(&a, bytes));
	OK(cudaMemset(a, 0, bytes));
	OK(cudaDeviceSynchronize());
	cudaStream_t t = stream();
	late<<<1, count>>>(c);
	if (racy)
		OK(cudaMemsetAsync(a, 1, bytes, 0)); // first
	else
		OK(cudaMemset(a, 1, bytes));
	take<<<1, count, 0, t>>>(b, a); // then
	return saw(b, 0x01010101);
}
