"""A tensor that is freed while a side stream reads it: the allocator gives its memory to the next tensor. Mended by waiting for the side stream before the tensor is freed."""
# verdicts: racy 1, ordered 0|3
import sys

import torch

s = torch.cuda.Stream()
A = torch.ones(1 << 20, device="cuda")
torch.cuda.synchronize()
with torch.cuda.stream(s):
    torch.cuda._sleep(4_000_000)
    B = A * 2  # first
if "racy" not in sys.argv:
    torch.cuda.current_stream().wait_stream(s)
del A  # then
C = torch.zeros(1 << 20, device="cuda")  # then
torch.cuda.synchronize()
print("observed=ok" if B.eq(2).all().item() and C.eq(0).all().item() else "observed=stale")
