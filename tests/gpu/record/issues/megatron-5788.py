"""NVIDIA/Megatron-LM#5788: the storage that parameters are gathered into is resized to nothing as soon as its users have been submitted. The allocator knows only the
stream that gathers, so the next bucket gets the same memory while the compute stream still reads the last one. Mended by telling the allocator of the
reading stream (record_stream) before the storage is resized."""
# verdicts: racy 1, ordered 0|3
import sys

import torch

gather, compute = torch.cuda.Stream(), torch.cuda.Stream()
shards = [torch.full((1 << 20,), float(k), device="cuda") for k in range(3)]
sums = torch.zeros(3, 1 << 20, device="cuda")
torch.cuda.synchronize()
for k in range(3):
    with torch.cuda.stream(gather):
        bucket = torch.empty(1 << 20, device="cuda")  # then
        bucket.copy_(shards[k])  # then
        ready = torch.cuda.Event()
        ready.record(gather)
    compute.wait_event(ready)
    with torch.cuda.stream(compute):
        torch.cuda._sleep(4_000_000)
        torch.add(bucket, 1.0, out=sums[k])  # first
    if "racy" not in sys.argv:
        bucket.record_stream(compute)
    bucket.untyped_storage().resize_(0)  # then
torch.cuda.synchronize()
good = all(sums[k].eq(k + 1.0).all().item() for k in range(3))
print("observed=ok" if good else "observed=stale")
