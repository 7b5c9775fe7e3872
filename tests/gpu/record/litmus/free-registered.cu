// Rule free: taking back the registration of host memory is not relied upon to wait for anything.
// verdicts: racy 1, ordered 0
#include "litmus.h"

int main(int argc, char **argv) {
	bool racy = start(argc, argv);
	int *a = zeros(), *b = zeros();
	void *other = aligned_alloc(4096, 4096);
	OK(cudaHostRegister(other, 4096, cudaHostRegisterDefault));
	cudaStream_t s = stream(), t = stream();
	late<<<1, count, 0, s>>>(a); // first
	OK(cudaHostUnregister(other));
	if (!racy)
		OK(cudaDeviceSynchronize());
	take<<<1, count, 0, t>>>(b, a); // then
	return saw(b);
}
