// Rule copy: the host does not wait for a copy within the device, not even for a synchronous one.
// verdicts: racy 1, ordered 0
#include "litmus.h"

int main(int argc, char **argv) {
	bool racy = start(argc, argv);
	int *a = zeros(), *b = zeros(), *c = zeros();
	cudaStream_t t = stream();
	late<<<1, count>>>(a);
	OK(cudaMemcpy(c, a, bytes, cudaMemcpyDeviceToDevice)); // first
	if (!racy)
		OK(cudaStreamSynchronize(0));
	take<<<1, count, 0, t>>>(b, c); // then
	return saw(b);
}
