// Prints how long the host takes to launch an empty kernel, in microseconds: the median of rounds of 500, so that the queue is never full.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cuda_runtime.h>
#include <vector>

__global__ void empty() {}

int main() {
	std::vector<double> each;
	for (int round = 0; round < 120; round++) {
		auto began = std::chrono::steady_clock::now();
		for (int i = 0; i < 500; i++)
			empty<<<1, 1>>>();
		std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - began;
		if (cudaDeviceSynchronize() != cudaSuccess)
			return 1;
		if (round >= 20)
			each.push_back(took.count() / 500);
	}
	std::sort(each.begin(), each.end());
	printf("us=%.3f\n", each[each.size() / 2]);
}
