// Rule copy: a synchronous copy from pageable memory returns after the work that its stream had to do before; an asynchronous one does not.
// verdicts: racy 1, ordered 0
#include "litmus.h"

int main(int argc, char **argv) {
	bool racy = start(argc, argv);
	int *a = zeros(), *b = zeros(), *c = zeros(), zero[count] = {};
	cudaStream_t t = stream();
	late<<<1, count>>>(a); // first
	if (racy)
		OK(cudaMemcpyAsync(c, zero, bytes, cudaMemcpyHostToDevice, 0));
	else
		OK(cudaMemcpy(c, zero, bytes, cudaMemcpyHostToDevice));
	take<<<1, count, 0, t>>>(b, a); // then
	return saw(b);
}
