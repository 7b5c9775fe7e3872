#!/usr/bin/env python3
"""What recording costs: the host's time of a launch under light recording, and a whole process that is measured.

    record/cost.py DAGRUN FOLDER

Recorded and unrecorded processes take turns, each first in half of the pairs. PAIRS=7 pairs of launches, and 3 of whole processes. A row has the medians, and
the exit status is the number of bars that are missed. Nothing else may run beside it."""

import os
import re
import statistics
import subprocess
import sys
import time

dagrun, work = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
here = os.path.dirname(os.path.abspath(__file__))
missed = 0


def run(words, record):
    """Runs a program, recorded or not, and returns its seconds, the figure that it prints, and its output."""
    if record:
        words = [dagrun, "record", "--force", f"--accesses={record}", "-o", os.path.join(work, "cost.rec"), "--", *words]
    began = time.perf_counter()
    done = subprocess.run(["timeout", "-k", "5", "120", *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=work)
    took = time.perf_counter() - began
    if done.returncode:
        sys.exit(f"{' '.join(words)} ended with {done.returncode}: {done.stdout[-500:]}")
    figure = re.search(r"us=([0-9.]+)", done.stdout)
    return took, float(figure.group(1)) if figure else 0.0, done.stdout


def pairs(words, record, count):
    """Medians of unrecorded and recorded runs, as (seconds, microseconds) each."""
    plain, recorded = [], []
    for k in range(count):
        for what in [None, record] if k % 2 == 0 else [record, None]:
            (recorded if what else plain).append(run(words, what)[:2])
    return [[statistics.median(column) for column in zip(*rows)] for rows in (plain, recorded)]


def bar(name, text, met):
    global missed
    missed += not met
    print(f"{name:44} {text}: {'met' if met else 'MISSED'}", flush=True)


def main():
    count = int(os.environ.get("PAIRS", "7"))
    binary = os.path.join(work, "cost")
    launches = []
    try:
        subprocess.run(["nvcc", "-O2", "-arch=native", "-o", binary, os.path.join(here, "cost.cu")], check=True)
        launches.append(("a loop of empty kernels in C++", [binary], 1.5))
    except (OSError, subprocess.CalledProcessError):
        print("LEFT OUT the loop in C++: no nvcc")
    launches.append(("y.add_(1) in Python, places included", [sys.executable, os.path.join(here, "cost_add.py")], 3.0))
    for name, words, most in launches:
        run(words, None)
        plain, recorded = pairs(words, "arguments", count)
        more = recorded[1] - plain[1]
        bar(f"cost/{name}", f"{plain[1]:.2f} us, recorded {recorded[1]:.2f} us, {more:.2f} us more (at most {most}; {count} pairs)", more <= most)
    words = [sys.executable, os.path.join(here, "cost_googlenet.py")]
    run(words, None)
    plain, measured = pairs(words, "measured", 3)
    text = f"{plain[0]:.1f} s, measured {measured[0]:.1f} s (at most 15 s and ten times; 3 pairs)"
    bar("cost/GoogLeNet, eager, whole process", text, measured[0] <= min(15, 10 * plain[0]))
    report = subprocess.run([dagrun, "check", os.path.join(work, "cost.rec")], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).stdout
    print("  " + "\n  ".join(report.strip().split("\n")[-4:]))
    sys.exit(missed)


main()
