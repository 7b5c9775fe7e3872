// Rule event: a stream that waits for an event comes after what was submitted before its record.
// verdicts: racy 1, ordered 0
#include "litmus.h"

int main(int argc, char **argv) {
	bool racy = start(argc, argv);
	int *a = zeros(), *b = zeros();
	cudaStream_t s = stream(), t = stream();
	late<<<1, count, 0, s>>>(a); // first
	if (!racy)
		order(s, t);
	take<<<1, count, 0, t>>>(b, a); // then
	return saw(b);
}
