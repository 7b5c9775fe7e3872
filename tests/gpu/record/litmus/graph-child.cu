// Rule graph: the nodes of a child graph come before what has an edge from it, and are in no order with others.
// verdicts: racy 1, ordered 0
#include "litmus.h"

int main(int argc, char **argv) {
	bool racy = start(argc, argv);
	int *a = zeros(), *b = zeros();
	cudaStream_t s = stream();
	cudaGraph_t graph, child;
	OK(cudaGraphCreate(&graph, 0));
	OK(cudaGraphCreate(&child, 0));
	node(child, a);
	cudaGraphNode_t writes, takes = node(graph, b, a);
	OK(cudaGraphAddChildGraphNode(&writes, graph, nullptr, 0, child));
	if (!racy)
		edge(graph, writes, takes);
	OK(cudaGraphLaunch(instance(graph), s));
	return saw(b);
}
