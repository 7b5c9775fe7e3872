# The library's kernels and calls beside PyTorch's, and beside memory bandwidth, each with its bar.
#   torch_library.py [FOLDER]     default: this script's folder, which has the command launches, and dagrun one folder above
#   ONLY=scan,histogram,gemm      some of the cases, by the beginning of their names
#   ROUNDS=9                      rounds of each case
# Kernels are launched in this process, as dagrun launches them, and take turns with PyTorch's. cublas.gemm and the Cholesky factorisation run
# as pipelines in processes of their own, between PyTorch's turns, which get as long a warm-up, loop and pause before it.

import ctypes
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time

import torch

FOLDER = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(__file__))
DAGRUN = os.path.join(FOLDER, "..", "dagrun")
ONLY = tuple(w for w in os.environ.get("ONLY", "").split(",") if w)
ROUNDS = int(os.environ.get("ROUNDS", "9"))
DEVICE = torch.device("cuda", 0)
WORK = tempfile.TemporaryDirectory()
driver = ctypes.CDLL("libcuda.so.1")


def driver_call(name, *args):
    status = getattr(driver, name)(*args)
    if status:
        raise RuntimeError(f"{name}: error {status}")


class Kernel:
    """A kernel of the library, with the shape and the arguments that dagrun launches it with."""

    modules = []

    def __init__(self, launch):
        self.launch, module, self.function = launch, ctypes.c_void_p(), ctypes.c_void_p()
        with open(os.path.join(WORK.name, launch["entry"] + ".ptx"), "rb") as file:
            driver_call("cuModuleLoadData", ctypes.byref(module), file.read() + b"\0")
        Kernel.modules.append(module)
        driver_call("cuModuleGetFunction", ctypes.byref(self.function), module, launch["entry"].encode())

    def bind(self, **tensors):
        """A function that launches it on these tensors, on PyTorch's stream."""
        values, kept = [], [tensors]
        for a in self.launch["args"]:
            if a["scratch"]:
                kept.append(torch.randint(0, 256, (a["bytes"],), dtype=torch.uint8, device=DEVICE))
                values.append(ctypes.c_uint64(kept[-1].data_ptr()))
            elif a["buffer"]:
                tensor = tensors[a["name"]]
                if tensor.numel() * tensor.element_size() != a["bytes"]:
                    raise RuntimeError(f"{self.launch['entry']}: {a['name']} has {a['bytes']} bytes")
                values.append(ctypes.c_uint64(tensor.data_ptr()))
            else:
                values.append((ctypes.c_uint64 if a["bytes"] == 8 else ctypes.c_uint32)(a["bits"]))
        pointers = (ctypes.c_void_p * len(values))(*[ctypes.cast(ctypes.byref(v), ctypes.c_void_p) for v in values])
        kept.append(values)
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        shape = (*self.launch["grid"], *self.launch["block"], self.launch["shared"])

        def run():
            driver_call("cuLaunchKernel", self.function, *shape, stream, pointers, None)

        run.kept = kept
        return run


def microseconds(work, times):
    first, last = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    first.record()
    for _ in range(times):
        work()
    last.record()
    last.synchronize()
    return first.elapsed_time(last) * 1e3 / times


def in_turn(sides, times):
    """What each of the sides takes in each round. Another one begins each round."""
    for work in sides:
        microseconds(work, times)
    taken = [[] for _ in sides]
    for r in range(ROUNDS):
        for k in range(len(sides)):
            k = (k + r) % len(sides)
            taken[k].append(microseconds(sides[k], times))
    return taken


def report(name, ours, theirs, ratios, bar, at_least, what):
    """Prints a line: medians, the ratio of each round (median, lowest, highest), and whether the bar was met."""
    ratio = statistics.median(ratios)
    met = ratio >= bar if at_least else ratio <= bar
    verdict = f"{'>=' if at_least else '<='} {bar}: {'met' if met else 'MISSED'}"
    print(f"{name:36} {ours:11.1f} {theirs:11.1f}   {ratio:6.3f} ({min(ratios):.3f} to {max(ratios):.3f}) {what:12} {verdict}", flush=True)


def random(*shape):
    return torch.rand(*shape, device=DEVICE) * 2 - 1


def same(a, b, tolerance=1e-4):
    """Fails unless the results agree, relative to the size of the whole."""
    a, b = a.double(), b.double()
    if not (a - b).norm() <= tolerance * b.norm():
        raise RuntimeError(f"the results differ: {a.flatten()[:4].tolist()} and {b.flatten()[:4].tolist()}")


# A case of a kernel: its name, the launch, the bar, and a function that makes the tensors, PyTorch's work and a comparison of results. The
# bar is a ratio to PyTorch, or, with bytes, the part of memory bandwidth that is reached at least.
class Case:
    def __init__(self, name, launch, bar, make, times=5, moved=0):
        self.name, self.launch, self.bar, self.make, self.times, self.moved = name, launch, bar, make, times, moved


def scan(n):
    def make():
        x, y, theirs = random(n), torch.empty(n, device=DEVICE), torch.empty(n, device=DEVICE)
        return {"x": x, "y": y}, lambda: torch.cumsum(x, 0, out=theirs), lambda: same(y[1:], theirs[:-1], 1e-3)

    return Case(f"scan, {n >> 20} Mi f32", f"exclusive_scan_f32 n={n}", 1.1, make)


def softmax(rows, cols):
    def make():
        x, y, theirs = random(rows, cols), torch.empty(rows, cols, device=DEVICE), torch.empty(rows, cols, device=DEVICE)
        return {"x": x, "y": y}, lambda: torch.softmax(x, 1, out=theirs), lambda: same(y, theirs)

    return Case(f"softmax, {rows} x {cols} f32", f"softmax_f32 rows={rows} cols={cols}", 1.1, make)


def row_sum(rows, cols):
    def make():
        x, y, theirs = random(rows, cols), torch.empty(rows, device=DEVICE), torch.empty(rows, device=DEVICE)
        return {"x": x, "y": y}, lambda: torch.sum(x, 1, out=theirs), lambda: same(y, theirs, 1e-3)

    return Case(f"row_sum, {rows} x {cols} f32", f"row_sum_f32 rows={rows} cols={cols}", 1.1, make)


def histogram(bins):
    n = 1 << 26

    def make():
        x, out = torch.rand(n, device=DEVICE), torch.empty(bins, dtype=torch.int64, device=DEVICE)
        # The kernel and PyTorch may put a number that lies on the edge of a bin to either side.
        return {"x": x, "out": out}, lambda: torch.histc(x, bins, 0, 1), lambda: same(out, torch.histc(x, bins, 0, 1), 1e-3)

    return Case(f"histogram, 64 Mi f32, {bins} bins", f"histogram_f32 n={n} bins={bins} low=0 high=1", 0.8, make, 3)


def sort(n):
    def make():
        x, y = random(n), torch.empty(n, device=DEVICE)
        return {"x": x, "y": y}, lambda: torch.sort(x), lambda: same(y, torch.sort(x).values, 0)

    return Case(f"sort, {n >> 20} Mi f32", f"sort_f32 n={n}", 1.5, make, 3)


def product(name, m, n, k, bar, moved=0):
    def make():
        a, b, c, theirs = random(m, k), random(k, n), torch.empty(m, n, device=DEVICE), torch.empty(m, n, device=DEVICE)
        return {"a": a, "b": b, "c": c}, lambda: torch.mm(a, b, out=theirs), lambda: same(c, theirs)

    return Case(f"{name}, {m} x {n} x {k} f32", f"matmul_f32_f32 m={m} n={n} k={k}", bar, make, 3, moved)


def tall(m, n, k):
    return product("tall product", m, n, k, 0.7, 4 * (m * k + k * n + m * n))


def standardise(rows, cols):
    def make():
        x, z = random(rows, cols), torch.empty(rows, cols, device=DEVICE)

        def theirs():
            return (x - x.mean(0)) / x.std(0, unbiased=False)

        return {"x": x, "z": z}, theirs, lambda: same(z, theirs(), 1e-3)

    # The columns' moments are known when all has been read, and then it is read again. A small matrix takes as long as its steps that wait
    # for each other, so the bar is PyTorch.
    small = rows * cols < 1 << 20
    bar, times, moved = (1.0, 20, 0) if small else (0.7, 3, 3 * 4 * rows * cols)
    return Case(f"column_standardise, {rows} x {cols}", f"column_standardise_f32_f32 rows={rows} cols={cols}", bar, make, times, moved)


CASES = [
    scan(1 << 26), softmax(4096, 4096), histogram(256), histogram(8192), product("matmul", 4096, 4096, 4096, 1.25), sort(1 << 24),
    row_sum(64, 1 << 20), tall(1 << 20, 10, 200), tall(1 << 20, 10, 199), tall(1 << 20, 16, 128), tall(1 << 20, 64, 64),
    standardise(1_600_000, 200), standardise(16_000_000, 10), standardise(20_000, 8),
]


def bandwidth():
    """Bytes a microsecond, read and written, of PyTorch's copy of 512 MiB."""
    x, y = torch.empty(1 << 27, device=DEVICE), torch.empty(1 << 27, device=DEVICE)
    return 2 * 4 * x.numel() / statistics.median(in_turn([lambda: y.copy_(x)], 3)[0])


def measure(case, launch, rate):
    tensors, theirs, compare = case.make()
    ours = Kernel(launch).bind(**tensors)
    ours()
    theirs()
    torch.cuda.synchronize()
    compare()
    a, b = in_turn([ours, theirs], case.times)
    if not case.moved:
        return report(case.name, statistics.median(a), statistics.median(b), [x / y for x, y in zip(a, b)], case.bar, False, "of PyTorch")
    report(case.name, statistics.median(a), statistics.median(b), [case.moved / x / rate for x in a], case.bar, True, "of bandwidth")


# A replay is a number of products, as many as PyTorch computes between two looks at the clock.
GEMM = """version: 1
name: gemm
params: {n: 4096, times: 100, tf32: 0}
buffers:
  a: {place: device, dtype: f32, shape: [n, n], init: {uniform: [-1, 1], seed: 1}}
  b: {place: device, dtype: f32, shape: [n, n], init: {uniform: [-1, 1], seed: 2}}
  c: {place: device, dtype: f32, shape: [n, n], init: zeros}
  r: {place: host, dtype: f32, shape: [1, 4], save: r.bin}
nodes:
  - foreach: {k: times}
    nodes:
      - {name: plain.$k, call: cublas.gemm, args: {a: a, b: b, c: c}, when: tf32 == 0}
      - {name: tf32.$k, call: cublas.gemm, args: {a: a, b: b, c: c, math: tf32}, when: tf32 == 1}
  - {name: down, memcpy: {from: "c(0..1)(0..4)", to: r}}
"""

FILL = """extern "C" __global__ void lower(int n, double *a) {
  for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < (long long)n * n; i += (long long)gridDim.x * blockDim.x) {
    long long row = i / n, col = i % n;
    a[i] = row == col ? n : 0.5 + 1e-4 * ((row * 7919 + col * 104729) % 1000) / 1000;
  }
}
"""

# As pipelines/cholesky-tiles.yaml, without the system of equations: the matrix is filled on the device.
CHOLESKY = """version: 1
name: cholesky
params: {n: 32768, tiles: 32, wide: 2, factor: 1}
modules:
  f: {source: fill.cu}
buffers:
  a: {place: device, dtype: f64, shape: [n, n]}
  one: {place: device, dtype: f64, shape: [n/tiles, n/tiles], init: {expr: "max(0, 1 - abs(floor(i*tiles/n) - i % (n/tiles)))"}}
  inverse: {place: device, dtype: f64, shape: [n/tiles, n/tiles]}
  below: {place: device, dtype: f64, shape: [n, n/tiles]}
  r: {place: host, dtype: f64, shape: [1, 4], save: r.bin}
nodes:
  - {name: fill, kernel: f.lower, args: [n, {out: a}], grid: 1056, block: 256}
  - foreach: {o: factor*tiles/wide}
    nodes:
      - foreach: {k: {from: o*wide, to: (o + 1)*wide}}
        nodes:
          - name: inside.$k
            call: cublas.gemm
            args: {tb: true, alpha: -1, a: a(k*n/tiles..)(o*wide*n/tiles..k*n/tiles), b: a(k of tiles)(o*wide*n/tiles..k*n/tiles), beta: 1, c: a(k*n/tiles..)(k of tiles)}
            priority: high
            when: k > o*wide
          - {name: factor.$k, call: cusolver.potrf, args: {a: a(k of tiles)(k of tiles)}, priority: high}
          - {name: one.$k, memcpy: {from: one, to: inverse}, when: k + 1 < tiles}
          - {name: invert.$k, call: cublas.trsm, args: {a: a(k of tiles)(k of tiles), b: inverse}, priority: high, when: k + 1 < tiles}
          - {name: below.$k, memcpy: {from: a((k + 1)*n/tiles..)(k of tiles), to: below((k + 1)*n/tiles..)}, priority: high, when: k + 1 < tiles}
          - {name: panel.$k, call: cublas.gemm, args: {tb: true, a: below((k + 1)*n/tiles..), b: inverse, c: a((k + 1)*n/tiles..)(k of tiles)}, priority: high, when: k + 1 < tiles}
      - foreach: {j: {from: (o + 1)*wide, to: "min(tiles, (o + 2)*wide)"}}
        nodes:
          - name: next.$o.$j
            call: cublas.gemm
            args: {tb: true, alpha: -1, a: a(j*n/tiles..)(o of tiles/wide), b: a(j of tiles)(o of tiles/wide), beta: 1, c: a(j*n/tiles..)(j of tiles)}
            priority: high
      - foreach: {j: {from: (o + 2)*wide, to: tiles}}
        nodes:
          - {name: diagonal.$o.$j, call: cublas.syrk, args: {alpha: -1, a: a(j of tiles)(o of tiles/wide), beta: 1, c: a(j of tiles)(j of tiles)}}
          - name: update.$o.$j
            call: cublas.gemm
            args: {tb: true, alpha: -1, a: a((j + 1)*n/tiles..)(o of tiles/wide), b: a(j of tiles)(o of tiles/wide), beta: 1, c: a((j + 1)*n/tiles..)(j of tiles)}
            when: j + 1 < tiles
  - {name: down, memcpy: {from: "a(0..1)(0..4)", to: r}}
"""


class Clock(threading.Thread):
    """Reads the clock rate of the multiprocessors and the power every 20 ms, where NVIDIA's management library can be imported."""

    def __init__(self):
        super().__init__(daemon=True)
        self.seen = []

    def run(self):
        try:
            import pynvml

            pynvml.nvmlInit()
            device = pynvml.nvmlDeviceGetHandleByIndex(0)
            while True:
                self.seen.append((time.time(), pynvml.nvmlDeviceGetClockInfo(device, pynvml.NVML_CLOCK_SM), pynvml.nvmlDeviceGetPowerUsage(device) / 1000))
                time.sleep(0.02)
        except Exception as problem:
            print(f"clocks are not read: {problem}", flush=True)

    def between(self, first, last):
        """The median clock rate and power while there was work: whenever power was above four fifths of the highest."""
        seen = [s for s in self.seen if first <= s[0] <= last]
        busy = [s for s in seen if s[2] > 0.8 * max(t[2] for t in seen)]
        return f"{statistics.median(s[1] for s in busy):.0f} MHz {statistics.median(s[2] for s in busy):.0f} W" if busy else "clock unknown"


def replays(file, iterations, warmup, *flags):
    """The microseconds of a replay of a pipeline, and when the process began and ended."""
    began = time.time()
    done = subprocess.run([DAGRUN, "run", "--backend", "cuda", "--learn", "off", "--cache-dir", "off", "--output", "json", "--graph=on", "--iterations", str(iterations),
                           "--warmup", str(warmup), *flags, os.path.join(WORK.name, file)], capture_output=True, text=True, cwd=WORK.name)
    found = re.search(r'"each_us": ([0-9.e+]+)', done.stdout)
    if not found:
        raise RuntimeError(f"dagrun {file}: {(done.stdout + done.stderr)[-300:]}")
    return float(found.group(1)), began, time.time()


def alternate(name, file, flags, theirs, calls, iterations, bar, pairs=4):
    """Runs the pipeline and PyTorch in turn. Each is idle for as long, warms up with two chunks, and is timed in chunks of as many calls."""
    clock = Clock()
    clock.start()
    ours_us, theirs_us, notes = [], [], []
    for _ in range(pairs):
        each, began, ended = replays(file, iterations, 2, *flags)
        ours_us.append(each / calls)
        idle = max(0.1, ended - began - each * (iterations + 2) / 1e6)
        notes.append(f"{ours_us[-1]:.1f} us at {clock.between(began, ended)}")
        time.sleep(idle)
        began = time.time()
        for _ in range(2):
            microseconds(theirs, calls)
        theirs_us.append(statistics.median(microseconds(theirs, calls) for _ in range(iterations)))
        notes[-1] += f", {theirs_us[-1]:.1f} us at {clock.between(began, time.time())}"
    ratios = [a / b for a, b in zip(ours_us, theirs_us)]
    report(name, statistics.median(ours_us), statistics.median(theirs_us), ratios, bar, False, "of PyTorch")
    for note in notes:
        print("    " + note, flush=True)


def gemm(tf32):
    n = 4096
    # Numbers with all bits of f32, as dagrun's are: at the limit of power, clocks depend on how many bits change.
    a, b = [(torch.rand(n, n, dtype=torch.float64, device=DEVICE) * 2 - 1).float() for _ in range(2)]
    c = torch.empty(n, n, device=DEVICE)
    torch.backends.cuda.matmul.allow_tf32 = tf32
    with open(os.path.join(WORK.name, "gemm.yaml"), "w") as file:
        file.write(GEMM)
    calls = 100 if tf32 else 10
    flags = ["-p", f"tf32={int(tf32)}", "-p", f"times={calls}"]
    alternate(f"cublas.gemm, 4096, {'TF32' if tf32 else 'f32'}", "gemm.yaml", flags, lambda: torch.mm(a, b, out=c), calls, 30, 1.02)
    torch.backends.cuda.matmul.allow_tf32 = False


def cholesky():
    n = 32768
    for name, text in (("cholesky.yaml", CHOLESKY), ("fill.cu", FILL)):
        with open(os.path.join(WORK.name, name), "w") as file:
            file.write(text)
    a = torch.full((n, n), 0.5, dtype=torch.float64, device=DEVICE)
    a.diagonal().fill_(n)
    ours, theirs = [], []
    filling, _, _ = replays("cholesky.yaml", 3, 1, "-p", "factor=0")
    torch.linalg.cholesky_ex(a)
    for _ in range(3):
        ours.append(replays("cholesky.yaml", 3, 1)[0] - filling)
        theirs.append(statistics.median(microseconds(lambda: torch.linalg.cholesky_ex(a), 1) for _ in range(3)))
    report(f"Cholesky on tiles, {n} f64", statistics.median(ours), statistics.median(theirs), [y / x for x, y in zip(ours, theirs)], 0.95, True, "of its rate")
    print(f"    {n**3 / 3 / statistics.median(ours) / 1e6:.1f} and {n**3 / 3 / statistics.median(theirs) / 1e6:.1f} TFLOPS", flush=True)


def attempt(name, work):
    """Goes on with the next case if one fails, and says so."""
    try:
        work()
    except Exception as problem:
        print(f"{name:36} FAILED: {problem}", flush=True)
        return 1
    finally:
        torch.cuda.empty_cache()
    return 0


def main():
    wanted = [c for c in CASES if not ONLY or c.name.startswith(ONLY)]
    torch.zeros(1, device=DEVICE)
    torch.backends.cuda.matmul.allow_tf32 = False
    print(f"PyTorch {torch.__version__} on {torch.cuda.get_device_name(DEVICE)}, {ROUNDS} rounds")
    rate = bandwidth()
    print(f"a copy moves {rate / 1e6:.2f} TB/s, read and written")
    print(f"{'':36} {'dagrun, us':>11} {'PyTorch, us':>11}   ratio of each round: median (lowest to highest)")
    failed = 0
    if wanted:
        subprocess.run([os.path.join(FOLDER, "launches"), "-out", WORK.name, *[c.launch for c in wanted]], check=True)
        with open(os.path.join(WORK.name, "launches.json")) as file:
            launches = json.load(file)
        for case, launch in zip(wanted, launches):
            failed += attempt(case.name, lambda: measure(case, launch, rate))
    for name, work in (("gemm f32", lambda: gemm(False)), ("gemm TF32", lambda: gemm(True)), ("Cholesky", cholesky)):
        if not ONLY or name.startswith(ONLY):
            failed += attempt(name, work)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
