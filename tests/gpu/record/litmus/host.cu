// Rule host: a host function is work of its stream.
// verdicts: racy 1, ordered 0
#include "litmus.h"

static void nothing(void *) {}

int main(int argc, char **argv) {
	bool racy = start(argc, argv);
	int *a = zeros(), *b = zeros();
	cudaStream_t s = stream(), t = stream(), u = stream();
	late<<<1, count, 0, s>>>(a); // first
	if (!racy)
		order(s, t);
	OK(cudaLaunchHostFunc(t, nothing, nullptr));
	order(t, u);
	take<<<1, count, 0, u>>>(b, a); // then
	return saw(b);
}
