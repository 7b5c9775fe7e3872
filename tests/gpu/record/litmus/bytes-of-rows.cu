// Only the bytes that are touched count: copies of columns of the same rows do not conflict unless the columns overlap.
// verdicts: racy 1, ordered 0
#include "litmus.h"

int main(int argc, char **argv) {
	bool racy = start(argc, argv);
	int *a = zeros(), *b = zeros();
	cudaStream_t s = stream(), t = stream();
	late<<<1, count>>>(b);
	OK(cudaDeviceSynchronize());
	const size_t row = 16 * sizeof(int), half = row / 2;
	OK(cudaMemcpy2DAsync(a, row, b, row, half + (racy ? sizeof(int) : 0), 16, cudaMemcpyDeviceToDevice, s)); // first
	OK(cudaMemcpy2DAsync((char *)a + half, row, (char *)b + half, row, half, 16, cudaMemcpyDeviceToDevice, t)); // then
	return saw(a);
}
