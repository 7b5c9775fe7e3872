// Rule graph: work of a stream before and after a graph launch is in order with it, on that stream only.
// verdicts: racy 1, ordered 0
#include "litmus.h"

int main(int argc, char **argv) {
	bool racy = start(argc, argv);
	int *a = zeros(), *b = zeros();
	cudaStream_t s = stream(), t = stream();
	cudaGraphExec_t writes = captured(s, [&] {
		late<<<1, count, 0, s>>>(a); // first
	});
	OK(cudaGraphLaunch(writes, s));
	take<<<1, count, 0, racy ? t : s>>>(b, a); // then
	return saw(b);
}
