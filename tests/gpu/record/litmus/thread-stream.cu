// Rule default: each thread has a default stream of its own, if the program is compiled so. Two of them are in no order.
// nvcc: --default-stream per-thread
// verdicts: racy 1, ordered 0|3
#include "litmus.h"
#include <thread>

int main(int argc, char **argv) {
	bool racy = start(argc, argv);
	int *a = zeros(), *b = zeros();
	cudaEvent_t e = event();
	std::thread([&] {
		late<<<1, count>>>(a); // first
		OK(cudaEventRecord(e));
	}).join();
	if (!racy)
		OK(cudaStreamWaitEvent(0, e, 0));
	take<<<1, count>>>(b, a); // then
	return saw(b);
}
