// Rule threads: what a thread waited for is known to those that go on after its end. That is seen from the times of calls only, so it is assumed.
// verdicts: racy 1, ordered 3
// ordered says: assumed order
#include "litmus.h"
#include <thread>

int main(int argc, char **argv) {
	bool racy = start(argc, argv);
	int *a = zeros(), *b = zeros();
	cudaStream_t s = stream(), t = stream();
	std::thread([&] {
		late<<<1, count, 0, s>>>(a); // first
		if (!racy)
			OK(cudaStreamSynchronize(s));
	}).join();
	take<<<1, count, 0, t>>>(b, a); // then
	return saw(b);
}
