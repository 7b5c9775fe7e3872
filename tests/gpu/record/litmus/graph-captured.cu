// Rules capture and graph: two streams of one capture are branches of the graph, and only waits within the capture are edges between them.
// verdicts: racy 1, ordered 0
#include "litmus.h"

int main(int argc, char **argv) {
	bool racy = start(argc, argv);
	int *a = zeros(), *b = zeros();
	cudaStream_t s = stream(), t = stream();
	OK(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
	order(s, t);
	late<<<1, count, 0, s>>>(a); // first
	if (!racy)
		order(s, t);
	take<<<1, count, 0, t>>>(b, a); // then
	order(t, s);
	cudaGraph_t graph;
	cudaGraphExec_t exec;
	OK(cudaStreamEndCapture(s, &graph));
	OK(cudaGraphInstantiate(&exec, graph, 0));
	OK(cudaGraphLaunch(exec, s));
	return saw(b);
}
