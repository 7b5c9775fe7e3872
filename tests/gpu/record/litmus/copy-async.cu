// Rules stream and event: an asynchronous copy is work of its stream, and another stream must wait for it.
// verdicts: racy 1, ordered 0
#include "litmus.h"

int main(int argc, char **argv) {
	bool racy = start(argc, argv);
	int *a = zeros(), *b = zeros();
	cudaStream_t s = stream(), t = stream();
	late<<<1, count, 0, s>>>(a); // first
	if (!racy)
		order(s, t);
	OK(cudaMemcpyAsync(b, a, bytes, cudaMemcpyDeviceToDevice, t)); // then
	return saw(b);
}
