// Rule reuse: memory that was freed and allocated again comes after all that used it before.
// verdicts: racy 1, ordered 0
#include "litmus.h"

int main(int argc, char **argv) {
	bool racy = start(argc, argv);
	cudaStream_t s = stream(), t = stream();
	int *a = zeros(), *b = zeros(), *c = zeros(), *again;
	late<<<1, count, 0, s>>>(a); // first
	again = a;
	if (!racy) {
		OK(cudaFree(a));
		OK(cudaMalloc(&again, bytes)); // the same memory, as a rule
	}
	take<<<1, count, 0, t>>>(again, c); // then
	take<<<1, count, 0, t>>>(b, again);
	return saw(b, 0);
}
