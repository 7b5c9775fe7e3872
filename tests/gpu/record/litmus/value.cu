// Rule value: a stream that waits for a value in memory comes after the write of it, which is assumed to be the one that was submitted before.
// nvcc: -lcuda
// verdicts: racy 1, ordered 3
// ordered says: assumed order
#include "litmus.h"

int main(int argc, char **argv) {
	bool racy = start(argc, argv);
	int *a = zeros(), *b = zeros(), *flag = zeros();
	cudaStream_t s = stream(), t = stream();
	late<<<1, count, 0, s>>>(a); // first
	OK(cuStreamWriteValue32(s, (CUdeviceptr)flag, 1, 0));
	if (!racy)
		OK(cuStreamWaitValue32(t, (CUdeviceptr)flag, 1, CU_STREAM_WAIT_VALUE_GEQ));
	take<<<1, count, 0, t>>>(b, a); // then
	return saw(b);
}
