# What a node costs the host from PyTorch: small in-place additions on one stream, on several with wait_stream, and as a CUDA
# graph. Prints medians of rounds in microseconds a node. Measures nothing of dagrun.

import statistics
import time

import torch

NODES, ROUNDS, STREAMS = 1000, 30, 4


def microseconds(submit):
    times = []
    for round_number in range(ROUNDS + 3):
        torch.cuda.synchronize()
        began = time.perf_counter()
        submit()
        torch.cuda.synchronize()
        if round_number >= 3:
            times.append((time.perf_counter() - began) * 1e6 / NODES)
    return statistics.median(times)


def main():
    device = torch.device("cuda", 0)
    cells = [torch.zeros(1, device=device) for _ in range(STREAMS)]
    streams = [torch.cuda.Stream() for _ in range(STREAMS)]

    def one_stream():
        for _ in range(NODES):
            cells[0].add_(1)

    def several_streams():
        # A stencil by hand: each stream waits for its neighbour's step before.
        for step in range(NODES // STREAMS):
            for k, stream in enumerate(streams):
                if step > 0:
                    stream.wait_stream(streams[(k + 1) % STREAMS])
                with torch.cuda.stream(stream):
                    cells[k].add_(1)

    def captured(submit):
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            submit()
        return graph.replay

    print(f"PyTorch {torch.__version__} on {torch.cuda.get_device_name(device)}, {NODES} nodes, medians of {ROUNDS} rounds")
    print(f"one stream             {microseconds(one_stream):8.3f} us a node")
    print(f"{STREAMS} streams, wait_stream  {microseconds(several_streams):8.3f} us a node")
    print(f"CUDA graph, one stream {microseconds(captured(one_stream)):8.3f} us a node")


if __name__ == "__main__":
    main()
