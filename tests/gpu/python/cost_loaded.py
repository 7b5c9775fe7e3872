"""What a replay of a loaded pipeline takes beside the command's replay of the same plan, each in microseconds, by rounds; and the host's part of a call. cost.py
starts it, with the number of hardware queues that the command asks for: a process has them from its first call of CUDA, so a library cannot."""

import json
import os
import statistics
import subprocess
import tempfile
import time

import torch

import dagrun
from dagrun import command

N, REPLAYS = 1_000_000, 1000


def device(call):
    a, b = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    a.record()
    call()
    b.record()
    b.synchronize()
    return 1000 * a.elapsed_time(b)


with tempfile.TemporaryDirectory() as folder:
    subprocess.run([command.path(), "init", "--quiet", "first"], cwd=folder, check=True)
    words = [command.path(), "first.yaml", f"--param=n={N}", "--graph=on", "--learn=off", "--machine=h200", f"--iterations={REPLAYS}", "--warmup=100", "--output=json"]
    first = os.path.join(folder, "first.yaml")
    double, small = dagrun.load(first, n=N), dagrun.load(first, n=1000)
    x, y = torch.rand(N).pin_memory(), torch.empty(N).pin_memory()

    def replays():
        for _ in range(REPLAYS):
            double(x=x, y=y)

    replays()
    rounds = []
    for _ in range(7):
        by_command = json.loads(subprocess.run(words, cwd=folder, capture_output=True, text=True, check=True).stdout)["each_us"]
        rounds.append((device(replays) / REPLAYS, by_command))
given = {"x": torch.rand(1000, device="cuda"), "y": torch.empty(1000, device="cuda")}
small(**given)
alone = []
for _ in range(41):
    torch.cuda.synchronize()
    began = time.perf_counter()
    for _ in range(50):
        small(**given)
    alone.append(1e6 * (time.perf_counter() - began) / 50)
print(json.dumps({"rounds": rounds, "host": statistics.median(alone)}))
