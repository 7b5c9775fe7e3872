// Rules threads and event: one thread records, the other waits for the event after the first has told it so.
// verdicts: racy 1, ordered 0|3
#include "litmus.h"
#include <condition_variable>
#include <mutex>
#include <thread>

int main(int argc, char **argv) {
	bool racy = start(argc, argv);
	int *a = zeros(), *b = zeros();
	cudaStream_t s = stream(), t = stream();
	cudaEvent_t e = event();
	std::mutex mutex;
	std::condition_variable changed;
	bool recorded = false;
	std::thread writer([&] {
		std::lock_guard<std::mutex> hold(mutex);
		late<<<1, count, 0, s>>>(a); // first
		OK(cudaEventRecord(e, s));
		recorded = true;
		changed.notify_one();
	});
	std::thread reader([&] {
		std::unique_lock<std::mutex> hold(mutex);
		changed.wait(hold, [&] { return recorded; });
		if (!racy)
			OK(cudaStreamWaitEvent(t, e, 0));
		take<<<1, count, 0, t>>>(b, a); // then
	});
	writer.join();
	reader.join();
	return saw(b);
}
