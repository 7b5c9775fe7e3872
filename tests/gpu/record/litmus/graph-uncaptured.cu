// Rule capture: a captured call is not work, and a wait of the capture orders nothing outside of the graph.
// verdicts: racy 1, ordered 0
#include "litmus.h"

int main(int argc, char **argv) {
	bool racy = start(argc, argv);
	int *a = zeros(), *b = zeros(), *c = zeros();
	cudaStream_t s = stream(), t = stream();
	late<<<1, count, 0, t>>>(a); // first
	cudaGraphExec_t reads = captured(s, [&] {
		order(s, t); // of the capture: t joins it, and the kernel above is not part of it
		take<<<1, count, 0, t>>>(c, c);
		order(t, s);
		take<<<1, count, 0, s>>>(b, a); // then
	});
	if (!racy)
		order(t, s);
	OK(cudaGraphLaunch(reads, s));
	return saw(b);
}
