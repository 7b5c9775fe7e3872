// Rule graph: a copy that is a node comes after another node only if edges say so.
// verdicts: racy 1, ordered 0
#include "litmus.h"

int main(int argc, char **argv) {
	bool racy = start(argc, argv);
	int *a = zeros(), *b = zeros();
	cudaStream_t s = stream();
	cudaGraph_t graph;
	OK(cudaGraphCreate(&graph, 0));
	cudaGraphNode_t writes = node(graph, a), copies;
	OK(cudaGraphAddMemcpyNode1D(&copies, graph, nullptr, 0, b, a, bytes, cudaMemcpyDeviceToDevice));
	if (!racy)
		edge(graph, writes, copies);
	OK(cudaGraphLaunch(instance(graph), s));
	return saw(b);
}
