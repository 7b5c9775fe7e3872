"""Runs graphs of tasks on a GPU and compares bits with the same calls one after the other: random tasks on slices, with kernels that take time among them,
on one to four streams, again and again, captured, and from several streams of the caller."""

import random
import sys

import torch

import dagrun

wrong = 0


def check(what, ok):
    global wrong
    wrong += not ok
    if not ok:
        print(f"WRONG: {what}")


def random_tasks(seed):
    """Tasks on the rows and columns of a matrix; each adds some to others and takes a while."""
    draw = random.Random(seed)
    x = torch.zeros(8, 8, dtype=torch.int64, device="cuda")
    tasks = []
    for k in range(draw.randint(2, 24)):
        a, b = draw.sample(range(8), 2)
        source, target = draw.choice([(x[a], x[b]), (x[:, a], x[:, b]), (x[a], x[:, b]), (x[a, :4], x[b, 4:])])

        def task(source=source, target=target, k=k, cycles=draw.choice([0, 1000, 20_000, 100_000])):
            torch.cuda._sleep(cycles)
            torch.add(target, source.clone(), alpha=3, out=target).remainder_(1_000_003).add_(k)

        tasks.append((task, [source], [target]))
    return x, tasks


for seed in range(40):
    x, tasks = random_tasks(seed)
    x.copy_(torch.arange(64, device="cuda").view(8, 8))
    start = x.clone()
    wanted = []
    for _ in range(6):
        for task, _, _ in tasks:
            task()
        wanted.append(x.clone())
    torch.cuda.synchronize()
    for streams in (1, 2, 4):
        g = dagrun.Graph()
        for task, reads, writes in tasks:
            g.task(task, reads=[*reads, *writes], writes=writes, name="task")
        plan = g.plan(streams=streams)
        x.copy_(start)
        for k in range(3):
            plan.run()
            check(f"seed {seed}, {streams} streams, run {k}", torch.equal(x, wanted[k]))
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            plan.run()
        torch.cuda.current_stream().wait_stream(side)
        check(f"seed {seed}, {streams} streams, on another stream", torch.equal(x, wanted[3]))
        h = plan.capture()
        for k in (4, 5):
            h.replay()
            check(f"seed {seed}, {streams} streams, captured, replay {k - 3}", torch.equal(x, wanted[k]))

# What tasks return is memory of their streams: it must not be given out while others use it.
x = torch.arange(4.0, device="cuda")


def make(k):
    torch.cuda._sleep(20_000 * (k % 3))
    return torch.full((1 << 20,), float(k), device="cuda") + x[k % 4]


g = dagrun.Graph()
parts = [g.task(make, k, reads=[x]) for k in range(12)]
sums = [g.task(lambda a, b: (torch.cuda._sleep(50_000), a.sum() + b.sum())[1], parts[k], parts[-1 - k]) for k in range(6)]
plan = g.plan(streams=4)
for run in range(30):
    plan.run()
    with torch.cuda.stream(torch.cuda.Stream()):
        torch.full((1 << 20,), -1.0, device="cuda")  # of another stream
    got = [plan.value(s).item() for s in sums]
    check(f"values, run {run}", got == [float((1 << 20) * (11 + (k % 4) + ((11 - k) % 4))) for k in range(6)])
h = plan.capture()
del plan
for run in range(10):
    h.replay()
    check(f"values, replay {run}", [h.value(s).item() for s in sums] == got)

# A whole forward and backward in a task.
net = torch.nn.Linear(16, 16).cuda()
batch = torch.randn(4, 8, 16, device="cuda")
grads = torch.zeros(4, 16, 16, device="cuda")


def step(k):
    (grad,) = torch.autograd.grad(net(batch[k]).square().sum(), [net.weight])
    grads[k].copy_(grad)


for k in range(4):
    step(k)
alone = grads.clone()
g = dagrun.Graph()
for k in range(4):
    g.task(step, k, reads=[batch[k]], writes=[grads[k]])
plan = g.plan(streams=4)
for run in range(3):
    grads.zero_()
    plan.run()
    check(f"gradients, run {run}", torch.equal(grads, alone))
print(f"{wrong} wrong")
sys.exit(min(wrong, 1))
