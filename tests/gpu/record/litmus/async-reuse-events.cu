// Rules reuse and stream-ordered: the pool gives memory that one stream freed to another that waits for it, and the driver keeps the order. Writing it
// without waiting is a race with the free.
// verdicts: racy 1, ordered 0
#include "litmus.h"

int main(int argc, char **argv) {
	bool racy = start(argc, argv);
	int *a, *again, *b = zeros(), *c = zeros();
	cudaStream_t s = stream(), t = stream(), u = stream();
	OK(cudaMallocAsync(&a, bytes, s));
	late<<<1, count, 0, s>>>(a);
	OK(cudaFreeAsync(a, s));
	order(s, t);
	OK(cudaMallocAsync(&again, bytes, t)); // first
	take<<<1, count, 0, racy ? u : t>>>(again, c); // then
	if (racy)
		order(u, t);
	take<<<1, count, 0, t>>>(b, again);
	return saw(b, 0);
}
