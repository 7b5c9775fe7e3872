// Rule default: the legacy default stream waits for blocking streams, and not for others.
// verdicts: racy 1, ordered 0
#include "litmus.h"

int main(int argc, char **argv) {
	bool racy = start(argc, argv);
	int *a = zeros(), *b = zeros();
	cudaStream_t s = stream(racy ? cudaStreamNonBlocking : cudaStreamDefault);
	late<<<1, count, 0, s>>>(a); // first
	take<<<1, count>>>(b, a); // then
	return saw(b);
}
