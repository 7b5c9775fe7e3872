// Rule default: blocking streams wait for the legacy default stream, and others do not.
// verdicts: racy 1, ordered 0
#include "litmus.h"

int main(int argc, char **argv) {
	bool racy = start(argc, argv);
	int *a = zeros(), *b = zeros();
	cudaStream_t s = stream(racy ? cudaStreamNonBlocking : cudaStreamDefault);
	late<<<1, count>>>(a); // first
	take<<<1, count, 0, s>>>(b, a); // then
	return saw(b);
}
