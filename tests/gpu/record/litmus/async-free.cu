// Rule stream-ordered: freeing in the order of a stream takes the memory, so who uses it on another stream must be waited for.
// verdicts: racy 1, ordered 0
#include "litmus.h"

int main(int argc, char **argv) {
	bool racy = start(argc, argv);
	int *a, *b = zeros();
	cudaStream_t s = stream(), t = stream();
	OK(cudaMallocAsync(&a, bytes, s));
	OK(cudaStreamSynchronize(s));
	late<<<1, count, 0, t>>>(a); // first
	if (!racy)
		order(t, s);
	OK(cudaFreeAsync(a, s)); // then
	take<<<1, count, 0, t>>>(b, b);
	return saw(b, 0);
}
