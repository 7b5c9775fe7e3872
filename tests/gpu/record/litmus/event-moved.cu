// Rule event: a wait is for the record that was the latest then. Recording the event again, on another stream, does not move the wait.
// verdicts: racy 1, ordered 0
#include "litmus.h"

int main(int argc, char **argv) {
	bool racy = start(argc, argv);
	int *a = zeros(), *b = zeros();
	cudaStream_t s = stream(), t = stream(), u = stream();
	cudaEvent_t e = event();
	late<<<1, count, 0, s>>>(a); // first
	OK(cudaEventRecord(e, racy ? u : s));
	OK(cudaStreamWaitEvent(t, e, 0));
	OK(cudaEventRecord(e, racy ? s : u));
	take<<<1, count, 0, t>>>(b, a); // then
	return saw(b);
}
