// A kernel that runs until the host tells it to end, while others run and are recorded: nothing may wait for it. If something does, it ends by itself
// after 5 s, and the program says "observed=stale".
// verdicts: racy 1|3, ordered 0|3
#include "litmus.h"

__global__ void untilTold(volatile int *told, int *to) {
	long long end = now() + 5000000000;
	while (!*told)
		if (now() > end)
			return;
	to[threadIdx.x] = 1;
}

int main(int argc, char **argv) {
	bool racy = start(argc, argv);
	int *a = zeros(), *b = zeros(), *c = zeros(), *told;
	OK(cudaHostAlloc(&told, sizeof *told, cudaHostAllocMapped));
	*told = 0;
	cudaStream_t s = stream(), t = stream();
	untilTold<<<1, count, 0, s>>>(told, a); // first
	for (int i = 0; i < 100; i++)
		take<<<1, count, 0, t>>>(c, b);
	OK(cudaStreamSynchronize(t));
	if (racy)
		take<<<1, count, 0, t>>>(b, a); // then
	*(volatile int *)told = 1;
	OK(cudaStreamSynchronize(s));
	if (!racy)
		take<<<1, count, 0, t>>>(b, a);
	return saw(a);
}
