# The GrCUDA workloads that PyTorch can express with its own operators, at real sizes: on one stream, and on several with pinned
# copies and wait_stream. Kernels are PyTorch's, so this compares programs and not schedules. Prints medians in milliseconds.
#   torch_suite.py [ROUNDS]

import statistics
import sys
import time

import torch

ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 15
DEVICE = torch.device("cuda", 0)


def pinned(*shape, dtype=torch.float32):
    return torch.empty(*shape, dtype=dtype, pin_memory=True)


def up(t):
    return t.to(DEVICE, non_blocking=True)


class Streams:
    """Runs pieces of work on streams of their own, or all on the current one."""

    def __init__(self, several):
        self.made = [torch.cuda.Stream() for _ in range(10)] if several else []

    def on(self, k, work):
        if not self.made:
            return work()
        stream = self.made[k % len(self.made)]
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            result = work()
        return result

    def join(self):
        for stream in self.made:
            torch.cuda.current_stream().wait_stream(stream)


def vec():
    n = 160_000_000
    x, y, res = pinned(n), pinned(n), pinned(1)
    torch.reciprocal(torch.arange(1, n + 1, dtype=torch.float32), out=x)
    torch.mul(x, 2, out=y)

    def replay(streams):
        a = streams.on(0, lambda: torch.square(up(x)))
        b = streams.on(1, lambda: torch.square(up(y)))
        streams.join()
        res.copy_((a - b).sum().reshape(1), non_blocking=True)

    return replay


def bs():
    n = 10_000_000
    xs = [pinned(n, dtype=torch.float64) for _ in range(10)]
    ys = [pinned(n, dtype=torch.float64) for _ in range(10)]
    for x in xs:
        x.copy_(59.5 + torch.arange(n, dtype=torch.float64) / n)

    def normal(d):
        return 0.5 * torch.erfc(-d * 0.7071067811865476)

    def price(x, y):
        d = up(x)
        d1 = (torch.log(d / 60) + 0.125) / 0.3
        y.copy_(d * normal(d1) - 60 * 0.9231163463866358 * normal(d1 - 0.3), non_blocking=True)

    def replay(streams):
        for k in range(10):
            streams.on(k, lambda k=k: price(xs[k], ys[k]))
        streams.join()

    return replay


def ml():
    n, features, classes = 1_600_000, 200, 10
    x, r = pinned(n, features, dtype=torch.int32), pinned(n, dtype=torch.int64)
    x.random_(0, 10)
    ridge, bayes = torch.randn(classes, features).pin_memory(), torch.rand(classes, features).pin_memory()

    def replay(streams):
        d, w1, w2 = up(x), up(ridge), up(bayes)

        def first():
            f = d.float()
            z = (f - f.mean(0)) / f.std(0, unbiased=False)
            return torch.softmax(z @ w1.T + 0.5, 1)

        def second():
            scores = d.float() @ w2.T
            return torch.softmax(torch.exp(scores - torch.logsumexp(scores, 1, keepdim=True)), 1)

        a, b = streams.on(0, first), streams.on(1, second)
        streams.join()
        r.copy_((a + b).argmax(1), non_blocking=True)

    return replay


def dl():
    side = 12_000
    pictures = [torch.rand(1, 1, side, side).pin_memory() for _ in range(2)]
    first = [up(torch.rand(8, 1, 3, 3) * 2 - 1) for _ in range(2)]
    last = [up(torch.rand(16, 8, 3, 3) * 2 - 1) for _ in range(2)]
    weights = {}
    result = pinned(1)
    functional = torch.nn.functional

    def branch(b):
        p = functional.relu(functional.conv2d(up(pictures[b]), first[b], stride=2, padding=1))
        return functional.relu(functional.conv2d(functional.avg_pool2d(p, 5), last[b], stride=2, padding=1)).flatten()

    def replay(streams):
        parts = [streams.on(b, lambda b=b: branch(b)) for b in range(2)]
        streams.join()
        joined = torch.cat(parts)
        if "w" not in weights:
            weights["w"] = (torch.rand(joined.numel()) * 2 - 1).pin_memory()
        result.copy_(torch.dot(joined, up(weights["w"])).reshape(1), non_blocking=True)

    return replay


def measure(replay, streams):
    times = []
    for round_number in range(ROUNDS + 3):
        torch.cuda.synchronize()
        began = time.perf_counter()
        replay(streams)
        torch.cuda.synchronize()
        if round_number >= 3:
            times.append((time.perf_counter() - began) * 1e3)
    return statistics.median(times)


def main():
    print(f"PyTorch {torch.__version__} on {torch.cuda.get_device_name(DEVICE)}, milliseconds, medians of {ROUNDS} rounds")
    print("| workload | one stream | streams |\n| -------- | ---------- | ------- |")
    for build in (vec, bs, ml, dl):
        replay = build()
        one, several = measure(replay, Streams(False)), measure(replay, Streams(True))
        print(f"| {build.__name__:8} | {one:10.2f} | {several:7.2f} |", flush=True)
        del replay
        torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
