// Rule event: the latest record counts, so an event that was recorded before a kernel orders nothing after it until it is recorded again.
// verdicts: racy 1, ordered 0
#include "litmus.h"

int main(int argc, char **argv) {
	bool racy = start(argc, argv);
	int *a = zeros(), *b = zeros();
	cudaStream_t s = stream(), t = stream();
	cudaEvent_t e = event();
	OK(cudaEventRecord(e, s));
	late<<<1, count, 0, s>>>(a); // first
	if (!racy)
		OK(cudaEventRecord(e, s));
	OK(cudaStreamWaitEvent(t, e, 0));
	take<<<1, count, 0, t>>>(b, a); // then
	return saw(b);
}
