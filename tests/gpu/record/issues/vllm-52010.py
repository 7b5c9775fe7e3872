"""vllm#52010: part of a step's input is made on a side stream, and the Python code of the forward pass waits for it. A replayed graph bypasses that code: the wait
is not part of the graph, and the graph reads what the side stream has not written yet. Mended by waiting before each replay. (The thread itself was not at
hand: this is the fault as others tell it, a replay that bypasses the path on which the wait is.)"""
# verdicts: racy 1, ordered 0|3
import sys

import torch

side, main = torch.cuda.Stream(), torch.cuda.Stream()
hidden, out = torch.zeros(4096, device="cuda"), torch.zeros(4096, device="cuda")


def forward():
    if not torch.cuda.is_current_stream_capturing():
        torch.cuda.current_stream().wait_stream(side)
    torch.mul(hidden, 2.0, out=out)  # then


def prepare(step):
    with torch.cuda.stream(side):
        side.wait_stream(main)
        torch.cuda._sleep(4_000_000)
        hidden.fill_(float(step))  # first


torch.cuda.synchronize()
with torch.cuda.stream(main):
    forward()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=main):
        forward()
    for step in range(1, 4):
        prepare(step)
        if "racy" not in sys.argv:
            main.wait_stream(side)
        graph.replay()  # then
torch.cuda.synchronize()
print("observed=ok" if out.eq(6).all().item() else "observed=stale")
