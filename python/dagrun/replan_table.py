"""The table of docs/replan.md: networks as they are, captured by torch, beside the same graphs planned again.

    python -m dagrun.replan_table [--only NAME,NAME] [--jobs N] [--keep FOLDER] [--inputs N] [--memory PART]

Each network is recorded once (needs NVIDIA's Sanitizer API, of the CUDA toolkit) and measured in a process of its own: both graphs in turn, nine rounds,
medians with the smallest and the largest. Bits are compared for inputs drawn at random, and with delays between nodes. The exit status is the number of networks whose bits differed."""

import argparse
import concurrent.futures
import fcntl
import json
import os
import statistics
import subprocess
import sys
import tempfile

from . import command


def _vision(name, size=224, **more):
    def make(torch):
        import torchvision

        return getattr(torchvision.models, name)(weights=None, **more), torch.randn(1, 3, size, size)

    return make


def _googlenet(name, size, aux):
    return _vision(name, size, aux_logits=aux, init_weights=False)


def _stage(name, pick, shape):
    def make(torch):
        import torchvision

        return pick(getattr(torchvision.models, name)(weights=None)), torch.randn(*shape)

    return make


def _decoder(torch):
    """One token through two layers of a transformer decoder with keys and values of 512 tokens before it."""
    from torch import nn

    class Layer(nn.Module):
        def __init__(self, width=2048, heads=16, inner=5632, past=512):
            super().__init__()
            self.heads = heads
            self.q, self.k, self.v, self.o = (nn.Linear(width, width, bias=False) for _ in range(4))
            self.gate, self.up, self.down = nn.Linear(width, inner, bias=False), nn.Linear(width, inner, bias=False), nn.Linear(inner, width, bias=False)
            self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
            self.register_buffer("keys", torch.randn(1, heads, past, width // heads))
            self.register_buffer("values", torch.randn(1, heads, past, width // heads))

        def forward(self, x):
            h = self.first(x)
            q, k, v = (p(h).view(1, 1, self.heads, -1).transpose(1, 2) for p in (self.q, self.k, self.v))
            k, v = torch.cat([self.keys, k], 2), torch.cat([self.values, v], 2)
            a = torch.softmax(q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5, -1) @ v
            x = x + self.o(a.transpose(1, 2).reshape(1, 1, -1))
            h = self.second(x)
            return x + self.down(nn.functional.silu(self.gate(h)) * self.up(h))

    return nn.Sequential(Layer(), Layer()).half(), torch.randn(1, 1, 2048).half()


def _nasnet(torch):
    """Two normal cells of NASNet-A: five pairs of separable convolutions, poolings and identities, joined."""
    from torch import nn

    def separable(channels, kernel):
        def half():
            return [
                nn.ReLU(),
                nn.Conv2d(channels, channels, kernel, padding=kernel // 2, groups=channels, bias=False),
                nn.Conv2d(channels, channels, 1, bias=False),
                nn.BatchNorm2d(channels),
            ]

        return nn.Sequential(*half(), *half())

    class Cell(nn.Module):
        def __init__(self, left, right, channels):
            super().__init__()
            self.fit = nn.ModuleList(nn.Sequential(nn.ReLU(), nn.Conv2d(n, channels, 1, bias=False), nn.BatchNorm2d(channels)) for n in (left, right))
            self.wide = nn.ModuleList(separable(channels, k) for k in (5, 3, 5, 3, 3))
            self.pool = nn.AvgPool2d(3, 1, 1, count_include_pad=False)

        def forward(self, both):
            p, h = self.fit[0](both[0]), self.fit[1](both[1])
            five, three, again, narrow, last = self.wide
            parts = [five(h) + three(p), again(p) + narrow(p), self.pool(h) + p, self.pool(p) + self.pool(p), last(h) + h]
            return both[1], torch.cat([p, *parts], 1)

    class Cells(nn.Module):
        def __init__(self, channels=44):
            super().__init__()
            self.first, self.second = Cell(channels, channels, channels), Cell(channels, 6 * channels, channels)

        def forward(self, x):
            return self.second(self.first((x, x)))[1]

    return Cells(), torch.randn(1, 44, 28, 28)


def _deepfm(torch):
    """A factorisation machine beside a small network: 32 fields with vectors of their own, and 16 numbers."""
    from torch import nn

    class DeepFM(nn.Module):
        def __init__(self, fields=32, numbers=16, width=8):
            super().__init__()
            self.one = nn.ModuleList(nn.Embedding(100 * (k + 1), 1) for k in range(fields))
            self.vectors = nn.ModuleList(nn.Embedding(100 * (k + 1), width) for k in range(fields))
            self.linear, self.dense = nn.Linear(numbers, 1), nn.Linear(numbers, fields * width)
            sizes, layers = [fields * width, 256, 128], []
            for a, b in zip(sizes, sizes[1:]):
                layers += [nn.Linear(a, b), nn.BatchNorm1d(b), nn.ReLU(), nn.Dropout(0.2)]
            self.deep = nn.Sequential(*layers, nn.Linear(sizes[-1], 1))

        def forward(self, fields, numbers):
            first = torch.cat([e(fields[:, k]) for k, e in enumerate(self.one)], 1).sum(1, keepdim=True) + self.linear(numbers)
            vectors = torch.stack([e(fields[:, k]) for k, e in enumerate(self.vectors)], 1)
            second = 0.5 * (vectors.sum(1).square() - vectors.square().sum(1)).sum(1, keepdim=True)
            return torch.sigmoid(first + second + self.deep(vectors.flatten(1) + torch.relu(self.dense(numbers))))

    return DeepFM(), torch.zeros(1, 32, dtype=torch.int64), torch.randn(1, 16)


def _language(name, inputs):
    """A language model of the package transformers, with random weights, for 128 tokens on each side. It is given its masks ready, since it would copy numbers to
    the GPU to make them, which cannot be captured."""

    def make(torch):
        import transformers

        class Model(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.model = getattr(transformers, name + "Model")(getattr(transformers, name + "Config")(attn_implementation="eager", use_cache=False))
                for k in inputs:
                    mask = torch.zeros(1, 1, 128, 128)
                    if k.startswith("decoder"):
                        mask = mask.masked_fill(torch.ones(128, 128, dtype=torch.bool).triu(1), torch.finfo(mask.dtype).min)
                    self.register_buffer(k.replace("input_ids", "attention_mask"), mask)

            def forward(self, *tokens):
                return self.model(**dict(zip(inputs, tokens)), **dict(self.named_buffers(recurse=False))).last_hidden_state

        return Model(), *(torch.zeros(1, 128, dtype=torch.int64) for _ in inputs)

    return make


networks = {
    "googlenet": _googlenet("googlenet", 224, False),
    "inception": _googlenet("inception_v3", 299, True),
    "shufflenet": _vision("shufflenet_v2_x1_0"),
    "squeezenet": _vision("squeezenet1_1"),
    "densenet": _vision("densenet121"),
    "mobilenet": _vision("mobilenet_v3_large"),
    "efficientnet": _vision("efficientnet_b0"),
    "resnext": _vision("resnext50_32x4d"),
    "swin": _stage("swin_t", lambda net: net.features[1], (1, 56, 56, 96)),
    "vit": _stage("vit_b_16", lambda net: net.encoder.layers[0], (1, 197, 768)),
    "decoder": _decoder,
    "nasnet": _nasnet,
    "deepfm": _deepfm,
    "bert": _language("Bert", ["input_ids"]),
    "t5": _language("T5", ["input_ids", "decoder_input_ids"]),
}
others = ["deepfm", "bert", "t5"]  # of Opara's networks, those that are none of the twelve


def one(name, recording, rounds, delays, share):
    """Captures one network, plans it again, and returns what was measured. Run in a process of its own."""
    import torch

    import dagrun

    torch.manual_seed(1)
    torch.backends.cudnn.benchmark = False
    net, *inputs = networks[name](torch)
    if not os.environ.get("DAGRUN_RECORD"):
        turn = os.open(os.path.join(os.path.dirname(recording), "turn"), os.O_CREAT | os.O_RDWR)
        fcntl.flock(turn, fcntl.LOCK_EX)  # until the process ends: one measures at a time, while others start
    net, x = net.cuda().eval(), [tensor.cuda() for tensor in inputs]
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.no_grad(), torch.cuda.stream(side):
        for _ in range(3):
            net(*x)
        graph = torch.cuda.CUDAGraph(keep_graph=True)
        with torch.cuda.graph(graph, stream=side):
            y = net(*x)
    torch.cuda.synchronize()
    graph.replay()
    pool = sum(size for size in (s["total_size"] for s in torch.cuda.memory_snapshot() if tuple(s.get("segment_pool_id", (0, 0))) == tuple(graph.pool())))
    fast = dagrun.replan(graph, recording, memory=int(share * pool) if share else None)
    result = {"name": name, "report": fast.report, "changed": fast.changed, "facts": fast.about, "pool": pool}
    if fast.changed:
        result["equal"] = sum(_equal(torch, graph, fast, x, y) for _ in range(rounds))
        result["inputs"] = rounds
        result["delayed"] = sum(_equal(torch, graph, fast.delayed(seed), x, y) for seed in range(delays))
        result["delays"] = delays
        result["us"] = _in_turn(torch, graph, fast)
    if fast.changed and share:
        _draw(x)
        graph.replay()
        torch.cuda.synchronize()
        wanted = y.clone()
        fast.release()
        noise = torch.full((pool,), 255, dtype=torch.uint8, device="cuda")  # what may lie in the old graph's memory now
        y.fill_(float("nan"))
        fast.replay()
        torch.cuda.synchronize()
        result["released"] = torch.equal(wanted, y)
        del noise
    return result


def _draw(inputs):
    for x in inputs:
        x.normal_() if x.is_floating_point() else x.random_(100)


def _equal(torch, graph, fast, x, y):
    _draw(x)
    graph.replay()
    torch.cuda.synchronize()
    wanted = y.clone()
    y.fill_(float("nan"))
    torch.cuda.synchronize()
    fast.replay()
    torch.cuda.synchronize()
    return torch.equal(wanted, y)


def _in_turn(torch, *graphs, rounds=9, replays=50):
    times = [[] for _ in graphs]
    for _ in range(rounds):
        for k, g in enumerate(graphs):
            for _ in range(3):
                g.replay()
            torch.cuda.synchronize()
            a, b = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            a.record()
            for _ in range(replays):
                g.replay()
            b.record()
            b.synchronize()
            times[k].append(1000 * a.elapsed_time(b) / replays)
    return [[statistics.median(t), min(t), max(t)] for t in times]


def _itself(*words):
    return [sys.executable, "-m", "dagrun.replan_table", *words]


def _record(name, folder):
    file = os.path.join(folder, name + ".rec")
    if os.path.exists(file):
        return name, file, subprocess.CompletedProcess([], 0, "", "")
    done = subprocess.run([command.path(), "record", "--force", "-o", file, "--", *_itself("--network", name, "--recording", file)], capture_output=True, text=True)
    return name, file, done


def _measured(name, file, *flags):
    """Runs one network in a process of its own."""
    done = subprocess.run(_itself("--network", name, "--recording", file, *flags), capture_output=True, text=True)
    try:
        return json.loads(done.stdout.splitlines()[-1])
    except (IndexError, ValueError):
        raise RuntimeError(" ".join(done.stderr.split())[-300:]) from None


def _wrong(result):
    """Whether bits differed."""
    return "equal" in result and (result["equal"] < result["inputs"] or result["delayed"] < result["delays"] or not result.get("released", True))


def _line(result):
    facts = result["facts"]
    if "us" in result:
        old, new = result["us"]
        ratio, spread = old[0] / new[0], f"{old[1]:.0f}-{old[2]:.0f} {new[1]:.0f}-{new[2]:.0f}"
        bits = f"{result['equal'] + result['delayed'] + result.get('released', 0)} of {result['inputs'] + result['delays'] + ('released' in result)}"
        return ratio, f"{result['name']:14}{old[0]:8.1f}{new[0]:8.1f}  {ratio:6.3f}  {spread:20}  {bits:12}{result['report']}"
    us = facts.get("us")
    best = f"{us[0]:8.1f}{min(us[1:]):8.1f}  " if us else " " * 18
    return 1.0, f"{result['name']:14}{best} 1.000  {'':20}  {'':12}{result['report']}"


def main():
    p = argparse.ArgumentParser(prog="python -m dagrun.replan_table", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--only", default=",".join(n for n in networks if n not in others), help=f"networks; besides those of the default there are {', '.join(others)}")
    p.add_argument("--jobs", type=int, default=4, help="networks that are recorded, or prepared to be measured, side by side")
    p.add_argument("--inputs", type=int, default=100)
    p.add_argument("--delays", type=int, default=5, help="graphs with delays drawn at random between their nodes, whose bits are compared too")
    p.add_argument("--memory", type=float, help="tensors lie in new memory of at most this part of torch's pool, and the old graph goes at the end")
    p.add_argument("--keep", help="folder for the recordings and what was measured; recordings that are there are used")
    p.add_argument("--network", choices=networks, help=argparse.SUPPRESS)
    p.add_argument("--recording", help=argparse.SUPPRESS)
    o = p.parse_args()
    if o.network:
        print(json.dumps(one(o.network, o.recording, o.inputs, o.delays, o.memory)))
        return 0
    wanted = o.only.split(",")
    for name in wanted:
        if name not in networks:
            p.error(f"--only {name}: no such network; there are {', '.join(networks)}")
    folder = o.keep or tempfile.mkdtemp()
    os.makedirs(folder, exist_ok=True)
    os.environ["DAGRUN_CACHE"] = tempfile.mkdtemp()  # what earlier runs of the table found is measured again
    wrong, ratios = 0, []
    memory = [f"--memory={o.memory}"] if o.memory else []

    def twice(recorded):
        """What two processes measured, the second of which finds the plan that the first kept, or what went wrong."""
        name, file, done = recorded
        if done.returncode or not os.path.exists(file):
            return f"not recorded: {' '.join((done.stdout + done.stderr).split())[-300:]}"
        try:
            first = _measured(name, file, "--inputs", str(o.inputs), "--delays", str(o.delays), *memory)
            return first, _measured(name, file, "--inputs", "3", "--delays", "0", *memory)
        except RuntimeError as failed:
            return f"failed: {failed}"

    head = f"{'network':14}{'torch':>8}{'dagrun':>8}  {'ratio':>6}  {'spread, us':20}  {'bits equal':12}"
    print(head + "report; seconds to the plan, and again with the plan kept")
    with concurrent.futures.ThreadPoolExecutor(o.jobs) as pool:
        recorded = list(pool.map(lambda name: _record(name, folder), wanted))
        for name, results in zip(wanted, pool.map(twice, recorded)):
            if isinstance(results, str):
                print(f"{name:14}{results}", flush=True)
                wrong += 1
                continue
            with open(os.path.join(folder, name + ".json"), "w") as f:
                json.dump(results[0], f)
            ratio, line = _line(results[0])
            ratios.append(ratio)
            wrong += any(map(_wrong, results))
            seconds = "".join(f"{sum(r['facts'].get('seconds', [])):7.2f}" for r in results)
            print(line + seconds + ("" if results[1]["facts"].get("kept") else f" (planned: {results[1]['report'][-120:]})"), flush=True)
    if ratios:
        print(f"geometric mean of {len(ratios)}: {statistics.geometric_mean(ratios):.3f}; {sum(r > 1.02 for r in ratios)} gain more than 2%")
    return wrong


if __name__ == "__main__":
    sys.exit(main())
