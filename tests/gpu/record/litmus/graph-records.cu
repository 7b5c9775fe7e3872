// Rules event and graph: a node that records an event does so after the nodes that it has edges from, and only after those.
// verdicts: racy 1, ordered 0
#include "litmus.h"

int main(int argc, char **argv) {
	bool racy = start(argc, argv);
	int *a = zeros(), *b = zeros();
	cudaStream_t s = stream(), t = stream();
	cudaEvent_t e = event();
	cudaGraph_t graph;
	OK(cudaGraphCreate(&graph, 0));
	cudaGraphNode_t writes = node(graph, a), records;
	OK(cudaGraphAddEventRecordNode(&records, graph, nullptr, 0, e));
	if (!racy)
		edge(graph, writes, records);
	OK(cudaGraphLaunch(instance(graph), s));
	OK(cudaStreamWaitEvent(t, e, 0));
	take<<<1, count, 0, t>>>(b, a); // then
	return saw(b);
}
