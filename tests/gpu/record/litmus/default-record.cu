// Rules default and event: an event recorded on the legacy default stream comes after the work of blocking streams, and not after that of others.
// verdicts: racy 1, ordered 0
#include "litmus.h"

int main(int argc, char **argv) {
	bool racy = start(argc, argv);
	int *a = zeros(), *b = zeros();
	cudaStream_t s = stream(racy ? cudaStreamNonBlocking : cudaStreamDefault), t = stream();
	late<<<1, count, 0, s>>>(a); // first
	order(cudaStreamLegacy, t);
	take<<<1, count, 0, t>>>(b, a); // then
	return saw(b);
}
