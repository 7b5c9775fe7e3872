// Rules default and synchronize: who waits for the legacy default stream has waited for the blocking streams, and not for others.
// verdicts: racy 1, ordered 0
#include "litmus.h"

int main(int argc, char **argv) {
	bool racy = start(argc, argv);
	int *a = zeros(), *b = zeros();
	cudaStream_t s = stream(racy ? cudaStreamNonBlocking : cudaStreamDefault), t = stream();
	late<<<1, count, 0, s>>>(a); // first
	OK(cudaStreamSynchronize(cudaStreamLegacy));
	take<<<1, count, 0, t>>>(b, a); // then
	return saw(b);
}
