// Rule graph: a memset that is a node comes before another node only if edges say so.
// verdicts: racy 1, ordered 0
#include "litmus.h"

int main(int argc, char **argv) {
	bool racy = start(argc, argv);
	int *a = zeros(), *b = zeros(), *c = zeros();
	cudaStream_t s = stream();
	cudaGraph_t graph;
	OK(cudaGraphCreate(&graph, 0));
	cudaMemsetParams set = {};
	set.dst = a;
	set.elementSize = 4;
	set.value = 1;
	set.width = count;
	set.height = 1;
	cudaGraphNode_t first = node(graph, c), sets, takes = node(graph, b, a);
	OK(cudaGraphAddMemsetNode(&sets, graph, &first, 1, &set));
	if (!racy)
		edge(graph, sets, takes);
	OK(cudaGraphLaunch(instance(graph), s));
	return saw(b);
}
