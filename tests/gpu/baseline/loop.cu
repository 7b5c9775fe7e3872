// A loop of 1,000 passes as a conditional node, by hand: memset, a kernel that begins, while { one small kernel, one that tests }, and a copy.
// Prints the median microseconds of a launch. tests/gpu/loops compares dagrun with it.
//   nvcc -O2 -std=c++17 -rdc=true -o loop loop.cu -lcudadevrt && ./loop [LAUNCHES]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <cuda_runtime.h>

#define CHECK(call)                                                   \
	do {                                                              \
		cudaError_t status = (call);                                  \
		if (status != cudaSuccess) {                                  \
			printf("%s: %s\n", #call, cudaGetErrorString(status));    \
			return 1;                                                 \
		}                                                             \
	} while (0)

__global__ void step(long n, double *x) {
	for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < n; i += (long)gridDim.x * blockDim.x)
		x[i] = x[i] + 1;
}

__global__ void begin(cudaGraphConditionalHandle handle, long *count) {
	count[0] = 0;
	count[1] = 1;
	cudaGraphSetConditional(handle, 1);
}

__global__ void test(cudaGraphConditionalHandle handle, long *count, const double *x, double passes, long most) {
	long pass = ++count[0];
	if (*x >= passes || pass >= most) {
		count[2] = pass;
		cudaGraphSetConditional(handle, 0);
	}
}

int main(int argc, char **argv) {
	int launches = argc > 1 ? atoi(argv[1]) : 50;
	double *x, *out, passes = 1000;
	long *count, n = 1, most = 100000;
	cudaStream_t stream;
	CHECK(cudaMalloc(&x, 8));
	CHECK(cudaMalloc(&count, 64));
	CHECK(cudaMallocHost(&out, 8));
	CHECK(cudaStreamCreate(&stream));
	cudaGraph_t graph;
	cudaGraphConditionalHandle handle;
	cudaGraphNode_t clear, first, loop, copy, work, decide;
	CHECK(cudaGraphCreate(&graph, 0));
	CHECK(cudaGraphConditionalHandleCreate(&handle, graph, 0, 0));
	cudaMemsetParams set = {};
	set.dst = x, set.elementSize = 1, set.width = 8, set.height = 1;
	CHECK(cudaGraphAddMemsetNode(&clear, graph, nullptr, 0, &set));
	void *beginning[] = {&handle, &count}, *stepping[] = {&n, &x}, *testing[] = {&handle, &count, &x, &passes, &most};
	cudaKernelNodeParams kernel = {};
	kernel.gridDim = kernel.blockDim = dim3(1);
	kernel.func = (void *)begin, kernel.kernelParams = beginning;
	CHECK(cudaGraphAddKernelNode(&first, graph, &clear, 1, &kernel));
	cudaGraphNodeParams conditional = {cudaGraphNodeTypeConditional};
	conditional.conditional.handle = handle;
	conditional.conditional.type = cudaGraphCondTypeWhile;
	conditional.conditional.size = 1;
#if CUDART_VERSION >= 13000
	CHECK(cudaGraphAddNode(&loop, graph, &first, nullptr, 1, &conditional));
#else
	CHECK(cudaGraphAddNode(&loop, graph, &first, 1, &conditional));
#endif
	cudaGraph_t body = conditional.conditional.phGraph_out[0];
	kernel.blockDim = dim3(256), kernel.func = (void *)step, kernel.kernelParams = stepping;
	CHECK(cudaGraphAddKernelNode(&work, body, nullptr, 0, &kernel));
	kernel.blockDim = dim3(1), kernel.func = (void *)test, kernel.kernelParams = testing;
	CHECK(cudaGraphAddKernelNode(&decide, body, &work, 1, &kernel));
	CHECK(cudaGraphAddMemcpyNode1D(&copy, graph, &loop, 1, out, x, 8, cudaMemcpyDeviceToHost));
	cudaGraphExec_t executable;
	CHECK(cudaGraphInstantiate(&executable, graph, 0));
	for (int i = 0; i < 5; i++)
		CHECK(cudaGraphLaunch(executable, stream));
	CHECK(cudaStreamSynchronize(stream));
	cudaEvent_t from, to;
	CHECK(cudaEventCreate(&from));
	CHECK(cudaEventCreate(&to));
	std::vector<float> us;
	for (int i = 0; i < launches; i++) {
		float ms;
		CHECK(cudaEventRecord(from, stream));
		CHECK(cudaGraphLaunch(executable, stream));
		CHECK(cudaEventRecord(to, stream));
		CHECK(cudaEventSynchronize(to));
		CHECK(cudaEventElapsedTime(&ms, from, to));
		us.push_back(ms * 1000);
	}
	std::sort(us.begin(), us.end());
	if (*out != passes) {
		printf("the loop made %f passes\n", *out);
		return 1;
	}
	printf("%.1f\n", us[us.size() / 2]);
}
