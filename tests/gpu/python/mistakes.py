"""Makes ten mistakes on a GPU, and compares what is said of each."""

import os
import re
import subprocess
import sys
import tempfile

tasks = "import torch, dagrun\nx, y = torch.zeros(8, device='cuda'), torch.zeros(8, device='cuda')\ng = dagrun.Graph()\n"
captured = """
import sys, torch, dagrun
def step(x, n):
    return sum(torch.relu(x) * k for k in range(1, n))
def captured(n, **more):
    x = torch.randn(1 << 24, device="cuda")
    step(x, n)
    graph = torch.cuda.CUDAGraph(**more)
    with torch.cuda.graph(graph):
        graph.y = step(x, n)
    graph.x = x
    return graph
"""
full = """graph = captured(5, keep_graph=True)
torch.cuda.synchronize()
torch.cuda.empty_cache()
full = torch.empty(torch.cuda.mem_get_info()[0] - (4 << 20), dtype=torch.uint8, device="cuda")
fast = dagrun.replan(graph, "step.rec")
del full
torch.cuda.empty_cache()
fast.replay()
assert torch.equal(graph.y, step(graph.x, 5)), "the graph does not replay as it was"
print(fast.report)
"""
recorded = captured + "print(dagrun.replan(captured(5, keep_graph=True), 'step.rec').report)\n"
mistakes = [
    ("a tensor on the CPU", tasks + "g.task(y.copy_, x, reads=[torch.zeros(8)])", "move it to the GPU"),
    ("a wrong stream", tasks + "g.task(torch.cuda.set_stream, torch.cuda.Stream(), writes=[x])\ng.plan().run()", "left another stream as the current"),
    ("a task that writes what it declared to read", tasks + "g.task(x.add_, 1, reads=[x])\ng.plan().run()", "wrote a tensor that it declares to read"),
    ("a freed graph", captured + "graph = captured(5, keep_graph=True)\ngraph.reset()\ndagrun.replan(graph, __file__)", "it was freed"),
    ("no GPU", "import os\nos.environ['CUDA_VISIBLE_DEVICES'] = ''\nimport dagrun\ndagrun.Graph()", "torch finds no GPU"),
    ("no torch", "import sys\nsys.modules['torch'] = None\nimport dagrun\ndagrun.Graph()", "there is no torch here: python -m pip install torch"),
    ("a graph without keep_graph", captured + "dagrun.replan(captured(5), __file__)", "keep_graph=True"),
    ("a stale recording", captured + "print(dagrun.replan(captured(9, keep_graph=True), 'step.rec').report)", "not as it was recorded: .*; record .* again"),
    ("another torch", recorded.replace("def step", "torch.__version__ = '0.1'\ndef step", 1), "torch 0.1 instead of .*; record the program again"),
    ("a full GPU", captured + full, "the GPU is full"),
]
wrong = 0
with tempfile.TemporaryDirectory() as folder:

    def ran(text, *before):
        with open(os.path.join(folder, "mistake.py"), "w") as f:
            f.write(text)
        done = subprocess.run([sys.executable, *before, "mistake.py"], cwd=folder, capture_output=True, text=True)
        return done.stdout + done.stderr

    out = ran(recorded, "-m", "dagrun", "record", "-o", "step.rec", "--", sys.executable)
    assert "recorded; run the program without dagrun record now" in out, out
    out = ran(recorded)
    assert "replays as it was: node" not in out and ("now (" in out or "replays as it was" in out), out
    print("with the recording:", out.strip())
    for name, text, pattern in mistakes:
        out = ran(text)
        ok = re.search(pattern, out) is not None
        wrong += not ok
        lines = out.strip().splitlines() or ["nothing was said"]
        print(f"{name}: ok: {lines[-1]}" if ok else "\n  ".join([f"{name}: WRONG:", *lines]))
print(f"{wrong} wrong")
sys.exit(min(wrong, 1))
