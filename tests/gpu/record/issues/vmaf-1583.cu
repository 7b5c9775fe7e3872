// Netflix/vmaf#1583, the second fault of two: the sum of absolute differences is set to zero on one stream and added to by a kernel on another. No event
// led from the one to the other, so at times the reset came after the first additions and motion scores were too small. Accepted: record an event
// behind the reset, and let the picture's stream wait for it.
// verdicts: racy 1, ordered 0
#include "../litmus/litmus.h"

__global__ void motion(unsigned long long *sad, const int *previous, const int *current) {
	atomicAdd(sad, (unsigned long long)abs(previous[threadIdx.x] - current[threadIdx.x]));
}

int main(int argc, char **argv) {
	bool racy = start(argc, argv);
	int *previous = zeros(), *current = zeros(), *other = zeros();
	unsigned long long *sad = (unsigned long long *)zeros(), score;
	late<<<1, count>>>(current);
	OK(cudaDeviceSynchronize());
	cudaStream_t extractor = stream(), picture = stream();
	cudaEvent_t reset = event();
	late<<<1, count, 0, extractor>>>(other); // whatever else the extractor's stream has to do, so that the reset comes late
	OK(cudaMemsetAsync(sad, 0, sizeof *sad, extractor)); // first
	OK(cudaEventRecord(reset, extractor));
	if (!racy)
		OK(cudaStreamWaitEvent(picture, reset, 0));
	motion<<<1, count, 0, picture>>>(sad, previous, current); // then
	OK(cudaDeviceSynchronize());
	OK(cudaMemcpy(&score, sad, sizeof score, cudaMemcpyDeviceToHost));
	puts(score == count ? "observed=ok" : "observed=stale");
}
