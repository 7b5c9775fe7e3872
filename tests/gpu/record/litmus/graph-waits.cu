// Rules event and graph: a node that waits for an event orders the nodes that it has edges to, and only those.
// verdicts: racy 1, ordered 0
#include "litmus.h"

int main(int argc, char **argv) {
	bool racy = start(argc, argv);
	int *a = zeros(), *b = zeros();
	cudaStream_t s = stream(), t = stream();
	cudaEvent_t e = event();
	cudaGraph_t graph;
	OK(cudaGraphCreate(&graph, 0));
	cudaGraphNode_t waits, takes = node(graph, b, a);
	OK(cudaGraphAddEventWaitNode(&waits, graph, nullptr, 0, e));
	if (!racy)
		edge(graph, waits, takes);
	cudaGraphExec_t exec = instance(graph);
	late<<<1, count, 0, s>>>(a); // first
	OK(cudaEventRecord(e, s));
	OK(cudaGraphLaunch(exec, t));
	return saw(b);
}
