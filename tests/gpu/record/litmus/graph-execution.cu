// Rule execution: launches of one executable graph come one after the other, those of two made of the same graph do not.
// verdicts: racy 1, ordered 0
#include "litmus.h"

__global__ void add(int *to) {
	int was = to[threadIdx.x];
	busy(2000000);
	to[threadIdx.x] = was + 1;
}

int main(int argc, char **argv) {
	bool racy = start(argc, argv);
	int *a = zeros();
	cudaStream_t s = stream(), t = stream();
	cudaGraph_t graph;
	OK(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
	add<<<1, count, 0, s>>>(a); // first then
	OK(cudaStreamEndCapture(s, &graph));
	cudaGraphExec_t one = instance(graph), two = racy ? instance(graph) : one;
	OK(cudaGraphLaunch(one, s));
	OK(cudaGraphLaunch(two, t));
	return saw(a, 2);
}
