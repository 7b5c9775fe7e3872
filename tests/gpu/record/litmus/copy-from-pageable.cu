// Rule copy: a copy from pageable memory has only been staged when it returns, so another stream must wait for it. (It is too fast for anyone to see.)
// verdicts: racy 1, ordered 0
#include "litmus.h"

int main(int argc, char **argv) {
	bool racy = start(argc, argv);
	int *a = zeros(), *b = zeros(), ones[count];
	for (int &one : ones)
		one = 1;
	cudaStream_t t = stream();
	OK(cudaMemcpy(a, ones, bytes, cudaMemcpyHostToDevice)); // first
	if (!racy)
		OK(cudaDeviceSynchronize());
	take<<<1, count, 0, t>>>(b, a); // then
	return saw(b);
}
