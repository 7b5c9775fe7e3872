// Rule graph: what a launch does is what the executable graph was last updated to.
// verdicts: racy 1, ordered 0
#include "litmus.h"

int main(int argc, char **argv) {
	bool racy = start(argc, argv);
	int *a = zeros(), *b = zeros(), *c = zeros();
	cudaStream_t s = stream(), t = stream();
	cudaGraph_t graph;
	OK(cudaGraphCreate(&graph, 0));
	cudaGraphNode_t takes = node(graph, b, c);
	cudaGraphExec_t exec = instance(graph);
	cudaKernelNodeParams other;
	OK(cudaGraphKernelNodeGetParams(takes, &other));
	void *parameters[] = {&b, &a};
	other.kernelParams = parameters;
	OK(cudaGraphExecKernelNodeSetParams(exec, takes, &other));
	late<<<1, count, 0, s>>>(a); // first
	if (!racy)
		order(s, t);
	OK(cudaGraphLaunch(exec, t));
	return saw(b);
}
