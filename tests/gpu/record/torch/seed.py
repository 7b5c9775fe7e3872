"""The wrong example of PyTorch's documentation of streams: sum may begin before normal_ has ended. With "racy" as there, without as it is mended."""
# verdicts: racy 1, ordered 0|3
import sys

import torch

s = torch.cuda.Stream()
A = torch.empty((100, 100), device="cuda").normal_(0.0, 1.0)  # first
if "racy" not in sys.argv:
    s.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(s):
    B = torch.sum(A)  # then
torch.cuda.current_stream().wait_stream(s)
torch.cuda.synchronize()
print("observed=ok" if torch.equal(B, A.sum()) else "observed=stale")
