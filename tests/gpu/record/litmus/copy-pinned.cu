// Rule copy: a synchronous copy from pinned memory is complete when it returns; an asynchronous one is not.
// verdicts: racy 1, ordered 0
#include "litmus.h"

int main(int argc, char **argv) {
	bool racy = start(argc, argv);
	int *a = zeros(), *b = zeros(), *c = zeros(), *pinned;
	OK(cudaMallocHost(&pinned, bytes));
	for (int i = 0; i < count; i++)
		pinned[i] = 1;
	cudaStream_t t = stream();
	late<<<1, count>>>(c);
	if (racy)
		OK(cudaMemcpyAsync(a, pinned, bytes, cudaMemcpyHostToDevice, 0)); // first
	else
		OK(cudaMemcpy(a, pinned, bytes, cudaMemcpyHostToDevice));
	take<<<1, count, 0, t>>>(b, a); // then
	return saw(b);
}
