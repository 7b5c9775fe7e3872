// Rule synchronize: a thread that waited for the device submits after all work.
// verdicts: racy 1, ordered 0
#include "litmus.h"

int main(int argc, char **argv) {
	bool racy = start(argc, argv);
	int *a = zeros(), *b = zeros();
	cudaStream_t s = stream(), t = stream();
	cudaEvent_t e = event();
	late<<<1, count, 0, s>>>(a); // first
	OK(cudaEventRecord(e, s));
	if (!racy) {
		OK(cudaDeviceSynchronize());
	}
	take<<<1, count, 0, t>>>(b, a); // then
	return saw(b);
}
