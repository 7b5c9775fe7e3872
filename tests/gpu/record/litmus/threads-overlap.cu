// Rule overlap: nothing orders what two threads submit to one stream at the same time.
// verdicts: racy 1, ordered 0|3
#include "litmus.h"
#include <mutex>
#include <thread>

int main(int argc, char **argv) {
	bool racy = start(argc, argv);
	int *a = zeros(), *b = zeros(), *c = zeros();
	cudaStream_t s = stream();
	std::mutex mutex;
	auto submit = [&](int *to, const int *from) {
		for (int i = 0; i < 500; i++) {
			if (!racy)
				mutex.lock();
			take<<<1, count, 0, s>>>(to, from); // first then
			if (!racy)
				mutex.unlock();
		}
	};
	std::thread one([&] { submit(a, c); }), two([&] { submit(b, a); });
	one.join();
	two.join();
	return saw(b, 0);
}
