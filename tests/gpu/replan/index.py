"""Kernels that follow an index: recorded with one index, replayed with others, beside torch's own replay. The new graph has to give the same bits, because a kernel
counts as touching every tensor whole that it was seen to touch.

    dagrun record -o index.rec -- python index.py index.rec && python index.py index.rec
"""

import torch

from captured import captured, compared, planned

torch.manual_seed(1)
x = torch.randn(512, 256, device="cuda")
rows = torch.zeros(1, dtype=torch.int64, device="cuda")  # while it is recorded, only row 0 is read and written


def step(x):
    sides = [torch.relu(x) * k for k in range(1, 5)]  # four branches, so that there is something to gain
    read = [s[rows].cumsum(0) for s in sides]
    written = [torch.zeros_like(s).index_add_(0, rows, s[:1]) for s in sides]
    return sum(read) + sum(w.softmax(1) for w in written)


def change():
    rows.random_(512)
    x.normal_()


graph, y = captured(step, x)
compared(planned(graph), graph, y, change, "indices")
