// Rule default: a thread's default stream is blocking, so the legacy default stream waits for it. A non-blocking stream does not.
// nvcc: --default-stream per-thread
// verdicts: racy 1, ordered 0
#include "litmus.h"

int main(int argc, char **argv) {
	bool racy = start(argc, argv);
	int *a = zeros(), *b = zeros();
	cudaStream_t t = racy ? stream() : cudaStreamLegacy;
	late<<<1, count>>>(a); // first
	take<<<1, count, 0, t>>>(b, a); // then
	return saw(b);
}
