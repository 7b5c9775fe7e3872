// Rule free: freeing memory of the device waits for all work of the context, whether it uses that memory or not.
// verdicts: racy 1, ordered 0
#include "litmus.h"

int main(int argc, char **argv) {
	bool racy = start(argc, argv);
	int *a = zeros(), *b = zeros(), *other;
	OK(cudaMalloc(&other, bytes));
	cudaStream_t s = stream(), t = stream();
	late<<<1, count, 0, s>>>(a); // first
	if (!racy)
		OK(cudaFree(other));
	take<<<1, count, 0, t>>>(b, a); // then
	return saw(b);
}
