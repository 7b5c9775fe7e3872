// Rule memset: the host does not wait for a memset of the device's memory.
// verdicts: racy 1, ordered 0
#include "litmus.h"

int main(int argc, char **argv) {
	bool racy = start(argc, argv);
	int *a = zeros(), *b = zeros(), *c = zeros();
	cudaStream_t t = stream();
	late<<<1, count>>>(c);
	OK(cudaMemset(a, 1, bytes)); // first
	if (!racy)
		OK(cudaDeviceSynchronize());
	take<<<1, count, 0, t>>>(b, a); // then
	return saw(b, 0x01010101);
}
