// What the litmus programs share. Each shows one rule of CUDA's order on a GPU: without arguments it is ordered, with "racy" the order is left out.
// A kernel (late) is busy for 2 ms before it writes, so that what is not ordered after it sees old values. The program says what was seen.
//
// Comments that run reads: "verdicts: racy 1, ordered 0" are the exit statuses of dagrun check that are right (alternatives with |), "says:" is a text that
// its report has, "racy says:" one of the racy report only, "nvcc:" are flags. "first" and "then" at the end of a line mark the two sides of the race.
#pragma once
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda.h>
#include <cuda_runtime.h>

#define OK(call)                                                                                         \
	do {                                                                                                 \
		cudaError_t failed_ = (cudaError_t)(call);                                                       \
		if (failed_ != cudaSuccess) {                                                                    \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(failed_));             \
			exit(9);                                                                                     \
		}                                                                                                \
	} while (0)

const int count = 256;
const size_t bytes = count * sizeof(int);

__device__ inline long long now() {
	long long t;
	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
	return t;
}

__device__ inline void busy(long long nanoseconds) {
	for (long long end = now() + nanoseconds; now() < end;) {
	}
}

// late writes ones when 2 ms have passed.
__global__ void late(int *to) {
	busy(2000000);
	to[threadIdx.x] = 1;
}

// take copies at once.
__global__ void take(int *to, const int *from) { to[threadIdx.x] = from[threadIdx.x]; }

// start says whether the order is to be left out. All kernels are loaded at once, because loading one later would wait for those that run.
inline bool start(int argc, char **argv) {
	setenv("CUDA_MODULE_LOADING", "EAGER", 1);
	return argc > 1 && !strcmp(argv[1], "racy");
}

// zeros returns new memory of the device.
inline int *zeros() {
	int *p;
	OK(cudaMalloc(&p, bytes));
	OK(cudaMemset(p, 0, bytes));
	OK(cudaDeviceSynchronize());
	return p;
}

inline cudaStream_t stream(unsigned flags = cudaStreamNonBlocking) {
	cudaStream_t s;
	OK(cudaStreamCreateWithFlags(&s, flags));
	return s;
}

inline cudaEvent_t event() {
	cudaEvent_t e;
	OK(cudaEventCreateWithFlags(&e, cudaEventDisableTiming));
	return e;
}

// order makes t wait for s.
inline void order(cudaStream_t s, cudaStream_t t) {
	cudaEvent_t e = event();
	OK(cudaEventRecord(e, s));
	OK(cudaStreamWaitEvent(t, e, 0));
}

// saw waits for everything and says whether all that was taken has the wanted value.
inline int saw(const int *taken, int want = 1) {
	OK(cudaDeviceSynchronize());
	int host[count], same = 0;
	OK(cudaMemcpy(host, taken, bytes, cudaMemcpyDefault));
	for (int i = 0; i < count; i++)
		same += host[i] == want;
	puts(same == count ? "observed=ok" : "observed=stale");
	return 0;
}

// captured returns an executable graph of what a function submits to a stream.
template <typename F> cudaGraphExec_t captured(cudaStream_t s, F submit) {
	cudaGraph_t graph;
	cudaGraphExec_t exec;
	OK(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
	submit();
	OK(cudaStreamEndCapture(s, &graph));
	OK(cudaGraphInstantiate(&exec, graph, 0));
	return exec;
}

inline cudaGraphExec_t instance(cudaGraph_t graph) {
	cudaGraphExec_t exec;
	OK(cudaGraphInstantiate(&exec, graph, 0));
	return exec;
}

// node adds a kernel that copies, or is late if there is nothing to copy.
inline cudaGraphNode_t node(cudaGraph_t graph, int *to, const int *from = nullptr) {
	void *parameters[] = {&to, &from};
	cudaKernelNodeParams p = {};
	p.func = from ? (void *)take : (void *)late;
	p.gridDim = dim3(1);
	p.blockDim = dim3(count);
	p.kernelParams = parameters;
	cudaGraphNode_t n;
	OK(cudaGraphAddKernelNode(&n, graph, nullptr, 0, &p));
	return n;
}

inline void edge(cudaGraph_t graph, cudaGraphNode_t from, cudaGraphNode_t to) {
#if CUDART_VERSION >= 13000
	OK(cudaGraphAddDependencies(graph, &from, &to, nullptr, 1));
#else
	OK(cudaGraphAddDependencies(graph, &from, &to, 1));
#endif
}
