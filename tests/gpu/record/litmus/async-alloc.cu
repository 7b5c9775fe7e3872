// Rule stream-ordered: memory allocated in the order of a stream is there for others once they wait for that stream.
// verdicts: racy 1, ordered 0
#include "litmus.h"

int main(int argc, char **argv) {
	bool racy = start(argc, argv);
	int *a, *b = zeros(), *c = zeros();
	cudaStream_t s = stream(), t = stream();
	late<<<1, count, 0, s>>>(c);
	OK(cudaMallocAsync(&a, bytes, s)); // first
	if (!racy)
		order(s, t);
	take<<<1, count, 0, t>>>(a, b); // then
	take<<<1, count, 0, t>>>(b, a);
	return saw(b, 0);
}
