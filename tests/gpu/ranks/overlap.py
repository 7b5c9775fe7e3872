# The step of overlap.yaml with PyTorch's DistributedDataParallel: prints the microseconds of a step, for several ways to set it up.
#   torchrun --nproc-per-node 2 overlap.py [PASSES] [STEPS]
import os
import sys
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

PASSES = int(sys.argv[1]) if len(sys.argv) > 1 else 6
STEPS = int(sys.argv[2]) if len(sys.argv) > 2 else 100
N, LAYERS = 16777216, 8


class Layer(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weights):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, d):
        for _ in range(PASSES):
            d.mul_(0.999)
        return d, d.clone()


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weights = torch.nn.ParameterList([torch.nn.Parameter(torch.full((N,), 0.5, device="cuda")) for _ in range(LAYERS)])

    def forward(self, x):
        for w in self.weights:
            x = Layer.apply(x, w)
        return x


rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(rank)
dist.init_process_group("nccl", device_id=torch.device("cuda", rank))
ones = torch.ones(N, device="cuda")
for bucket_mb, view in ((25, False), (25, True), (65, True)):
    net = DistributedDataParallel(Net(), device_ids=[rank], bucket_cap_mb=bucket_mb, gradient_as_bucket_view=view)
    x = torch.zeros(N, device="cuda", requires_grad=True)

    def step():
        net(x).backward(ones.clone())

    for _ in range(10):
        step()
    torch.cuda.synchronize()
    dist.barrier()
    start = time.perf_counter()
    for _ in range(STEPS):
        step()
    torch.cuda.synchronize()
    if rank == 0:
        print(f"ddp bucket_mb={bucket_mb} view={view} each_us {(time.perf_counter() - start) / STEPS * 1e6:.1f}", flush=True)
    del net
dist.destroy_process_group()
