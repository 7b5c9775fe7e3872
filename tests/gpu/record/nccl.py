"""All-reduces of NCCL between two GPUs, beside other kernels, under torchrun. NCCL's kernels wait for each other across GPUs, so a recorder that waited in a
launch, or ran one kernel at a time, would hang."""
import os

import torch
import torch.distributed as dist

rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(rank)
dist.init_process_group("nccl")
x = torch.full((1 << 20,), float(rank + 1), device="cuda")
y = torch.zeros(1 << 20, device="cuda")
for step in range(10):
    pending = dist.all_reduce(x, async_op=True)
    y.add_(1.0)
    pending.wait()
    x.mul_(0.5)
torch.cuda.synchronize()
good = x.eq(1.5).all().item() and y.eq(10).all().item()
dist.destroy_process_group()
if rank == 0:
    print("observed=ok" if good else "observed=stale")
