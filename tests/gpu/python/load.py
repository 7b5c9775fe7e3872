"""Calls pipelines with tensors on a GPU and compares bits with torch: tensors of all kinds of memory, dropped at once, on several streams and threads, captured,
and as tasks of a graph."""

import os
import subprocess
import sys
import tempfile
import threading

import torch

import dagrun
from dagrun import command

N = 1_000_000
wrong = 0


def check(what, ok):
    global wrong
    wrong += not ok
    if not ok:
        print(f"WRONG: {what}")


with tempfile.TemporaryDirectory() as folder:
    subprocess.run([command.path(), "init", "--quiet", "first"], cwd=folder, check=True)
    file = os.path.join(folder, "first.yaml")
    exported = os.path.join(folder, "first.dagrun")
    subprocess.run([command.path(), "export", "--quiet", file, f"--param=n={N}", f"--out={exported}"], check=True)
    double, planned = dagrun.load(file, n=N), dagrun.load(exported)

x = torch.rand(N, device="cuda")
ramp = torch.arange(N, dtype=torch.float32, device="cuda")
for p in (double, planned):
    check("the pipeline's own contents", torch.equal(p()["y"], 2 * ramp))
    check("a tensor on the GPU", torch.equal(p(x=x)["y"], 2 * x))
    for kind, host in (("pinned", x.cpu().pin_memory()), ("plain", x.cpu())):
        check(f"{kind} memory", torch.equal(p(x=host)["y"], 2 * x))
        out = torch.empty_like(host, pin_memory=kind == "pinned")
        check(f"{kind} memory for results", p(x=x, y=out) == {})
        torch.cuda.synchronize()
        check(f"{kind} memory for results", torch.equal(out, 2 * host))
    check("contents after all", torch.equal(p()["y"], 2 * ramp))
    inner = torch.zeros(N, device="cuda")
    check("a buffer of the device", torch.equal(p(x=x, d_x=inner)["y"], 2 * x) and torch.equal(inner, 2 * x))

# Inputs and results that are dropped at once, with work before and after on the same stream; memory of one stream that is used on another.
streams = [torch.cuda.current_stream(), torch.cuda.Stream(), torch.cuda.Stream()]
for k in range(60):
    with torch.cuda.stream(streams[k % 3]):
        torch.cuda._sleep(30_000 * (k % 4))
        given = torch.full((N,), float(k), device="cuda")
        if k % 5 == 0:
            given = given.cpu().pin_memory()
    with torch.cuda.stream(streams[(k + k // 3) % 3]) as _:
        torch.cuda.current_stream().wait_stream(streams[k % 3])
        got = double(x=given)["y"]
        del given
        other = torch.full((N,), -1.0, device="cuda")
        total = (got.min() + got.max()).clone()
        del got, other
        check(f"call {k}", total.item() == 4.0 * k)  # waits for the stream that it was computed on

# Two threads, each with its own stream.
sums = {}


def work(which):
    with torch.cuda.stream(torch.cuda.Stream()):
        left = [double(x=torch.full((N,), float(k + which), device="cuda"))["y"].sum(dtype=torch.float64) for k in range(40)]
        sums[which] = [s.item() for s in left]


threads = [threading.Thread(target=work, args=(which,)) for which in (0, 1000)]
for t in threads:
    t.start()
for t in threads:
    t.join()
check("threads", all(sums[which] == [2.0 * N * (k + which) for k in range(40)] for which in (0, 1000)))

# A capture keeps its tensors, whatever later calls are given.
static, graph = torch.rand(N, device="cuda"), torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    y = double(x=static)["y"]
    z = double(x=y)["y"]
for k in range(5):
    check("a call between replays", torch.equal(double(x=x)["y"], 2 * x))
    static.fill_(float(k))
    graph.replay()
    check(f"captured, replay {k}", bool((y == 2.0 * k).all()) and bool((z == 4.0 * k).all()))

# As tasks, which are planned, measured, run and captured.
rows, out = torch.rand(3, N, device="cuda"), torch.empty(3, N, device="cuda")
g, loads = dagrun.Graph(), [planned, double]
for k in range(3):
    g.task(loads[k % 2], x=rows[k], y=out[k], reads=[rows[k]], writes=[out[k]], name="double")
plan = g.plan(streams=3)
for _ in range(3):
    out.zero_()
    plan.run()
    check("tasks", torch.equal(out, 2 * rows))
h = plan.capture()
out.zero_()
h.replay()
check("tasks, captured", torch.equal(out, 2 * rows))
del h, graph

try:
    double(x=x, d_x=torch.zeros(N))
    check("memory that kernels cannot reach is refused", False)
except RuntimeError as refused:
    check("memory that kernels cannot reach is refused", "kernels use buffer d_x" in str(refused))
check("a call after one that was refused", torch.equal(double(x=x)["y"], 2 * x))
before = torch.cuda.mem_get_info()[0]
double.release()
check("memory that is given back", torch.cuda.mem_get_info()[0] >= before)
try:
    double(x=x)
    check("what was released is refused", False)
except RuntimeError as refused:
    check("what was released is refused", "was released" in str(refused))
print(f"{wrong} wrong")
sys.exit(min(wrong, 1))
