// Rule programmatic: a programmatic launch that is captured is an edge that orders only what follows the wait in the kernel.
// verdicts: racy 3, ordered 0|3
// racy says: only a programmatic launch or event is between them
#include "litmus.h"

__global__ void early(int *to) {
	asm volatile("griddepcontrol.launch_dependents;");
	busy(2000000);
	to[threadIdx.x] = 1;
}

__global__ void takeAfter(int *to, const int *from) {
	asm volatile("griddepcontrol.wait;" ::: "memory");
	to[threadIdx.x] = from[threadIdx.x];
}

int main(int argc, char **argv) {
	bool racy = start(argc, argv);
	int *a = zeros(), *b = zeros();
	cudaStream_t s = stream();
	cudaLaunchAttribute programmatic = {};
	programmatic.id = cudaLaunchAttributeProgrammaticStreamSerialization;
	programmatic.val.programmaticStreamSerializationAllowed = 1;
	cudaLaunchConfig_t how = {};
	how.gridDim = dim3(1);
	how.blockDim = dim3(count);
	how.stream = s;
	how.attrs = &programmatic;
	how.numAttrs = 1;
	cudaGraphExec_t exec = captured(s, [&] {
		early<<<1, count, 0, s>>>(a); // first
		OK(cudaLaunchKernelEx(&how, racy ? take : takeAfter, b, (const int *)a)); // then
	});
	OK(cudaGraphLaunch(exec, s));
	return saw(b);
}
