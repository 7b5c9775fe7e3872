"""Kernels whose tensors are described by tensor maps: products of matrices in bfloat16, which cuBLAS computes so on GPUs since Hopper. Prints how many kernels
cannot be measured and why tensors stay; where any moves, the new graph must give the same bits.

    dagrun record -o descriptors.rec -- python descriptors.py descriptors.rec && python descriptors.py descriptors.rec
"""

import torch

from captured import captured, compared, planned

torch.manual_seed(1)
x = torch.randn(256, 1024, device="cuda", dtype=torch.bfloat16)
weights = [[torch.randn(1024, 1024, device="cuda", dtype=torch.bfloat16) / 32 for _ in range(3)] for _ in range(4)]


def step(x):
    branches = []
    for branch in weights:
        h = x
        for w in branch:
            h = torch.relu(h @ w)
        branches.append(h)
    return sum(branches)


graph, y = captured(step, x)
fast = planned(graph)
if "plans" in fast.about:
    print({key: fast.about["plans"][key] for key in ("opaque", "moved", "values", "pinned")})
compared(fast, graph, y, x.normal_, "inputs")
