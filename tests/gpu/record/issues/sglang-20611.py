"""sgl-project/sglang#20611: a write-through cache copies pages of keys and values to the host on a stream of its own, while the forward pass on another stream
still writes them, and goes on to write them again while the copy reads. Accepted: the copying stream waits for the forward stream before it copies, and
the forward stream waits for the end of the copy before it writes those pages again."""
# verdicts: racy 1, ordered 0|3
import sys

import torch

forward, write = torch.cuda.Stream(), torch.cuda.Stream()
pages = torch.zeros(16, 4096, device="cuda")
host = torch.zeros(16, 4096).pin_memory()
torch.cuda.synchronize()
done = None
for step in range(1, 4):
    with torch.cuda.stream(forward):
        if done is not None and "racy" not in sys.argv:
            forward.wait_event(done)
        torch.cuda._sleep(4_000_000)
        pages.add_(1.0)  # first then
    if "racy" not in sys.argv:
        write.wait_stream(forward)
    with torch.cuda.stream(write):
        host.copy_(pages, non_blocking=True)  # then first
        done = torch.cuda.Event()
        done.record(write)
torch.cuda.synchronize()
print("observed=ok" if host.eq(3).all().item() else "observed=stale")
