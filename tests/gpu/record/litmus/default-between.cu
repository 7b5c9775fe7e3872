// Rule default: work of the legacy default stream between work of two blocking streams orders them.
// verdicts: racy 1, ordered 0
#include "litmus.h"

int main(int argc, char **argv) {
	bool racy = start(argc, argv);
	int *a = zeros(), *b = zeros(), *c = zeros();
	cudaStream_t s = stream(cudaStreamDefault), t = stream(cudaStreamDefault);
	late<<<1, count, 0, s>>>(a); // first
	if (!racy)
		take<<<1, count>>>(c, c);
	take<<<1, count, 0, t>>>(b, a); // then
	return saw(b);
}
