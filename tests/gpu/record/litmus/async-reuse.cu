// Rules reuse and stream-ordered: the pool gives freed memory to another stream. Who uses it after the free is in no order with its new owner.
// verdicts: racy 1, ordered 0
#include "litmus.h"

int main(int argc, char **argv) {
	bool racy = start(argc, argv);
	int *a, *again, *b = zeros(), *c = zeros();
	cudaStream_t s = stream(), t = stream();
	OK(cudaMallocAsync(&a, bytes, s));
	if (!racy)
		late<<<1, count, 0, s>>>(a);
	OK(cudaFreeAsync(a, s));
	OK(cudaStreamSynchronize(s));
	OK(cudaMallocAsync(&again, bytes, t)); // the same memory, as a rule
	if (racy)
		late<<<1, count, 0, s>>>(a); // first
	take<<<1, count, 0, t>>>(again, c); // then
	OK(cudaStreamSynchronize(s));
	take<<<1, count, 0, t>>>(b, again);
	return saw(b, 0);
}
