// Rule graph: a graph launch is work of its stream, so launches of two graphs on two streams need a wait.
// verdicts: racy 1, ordered 0
#include "litmus.h"

int main(int argc, char **argv) {
	bool racy = start(argc, argv);
	int *a = zeros(), *b = zeros();
	cudaStream_t s = stream(), t = stream();
	cudaGraphExec_t writes = captured(s, [&] {
		late<<<1, count, 0, s>>>(a); // first
	});
	cudaGraphExec_t reads = captured(t, [&] {
		take<<<1, count, 0, t>>>(b, a); // then
	});
	OK(cudaGraphLaunch(writes, s));
	if (!racy)
		order(s, t);
	OK(cudaGraphLaunch(reads, t));
	return saw(b);
}
