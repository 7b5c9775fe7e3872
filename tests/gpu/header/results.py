"""Compares what .dagrun files compute on a GPU, by dagrun.h and by the command, with the pipelines that they were made of, several pipelines at a time:

    results.py DAGRUN COMPARE PIPELINES ARCHITECTURE FOLDER

Prints how long each pipeline took. The exit status is 1 if one computes something else, or fails."""

import concurrent.futures
import glob
import hashlib
import json
import os
import subprocess
import sys
import time

dagrun, compare, pipelines, architecture, folder = sys.argv[1:]


def run(*words):
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(words[1:3])}: status {done.returncode}: {done.stderr.strip()[-1000:]}")
    return done.stdout


def sums(text):
    return {c["buffer"]: c["sha256"] for c in json.loads(text)["checksums"]}


def compared(pipeline):
    """Whether all went well, and what to say of it."""
    began, name = time.perf_counter(), os.path.basename(pipeline).removesuffix(".yaml")
    files = [os.path.join(folder, f"{name}{kind}.dagrun") for kind in ("", "-machine")]
    first = subprocess.run([dagrun, "export", pipeline, "-o", files[0], "-q"], capture_output=True, text=True)
    if first.returncode:
        return True, f"{name}: left out: {first.stderr.splitlines()[0]}"
    try:
        run(dagrun, "export", pipeline, "-o", files[1], "--arch", architecture, "-q")
        outs = [file.removesuffix(".dagrun") for file in files]
        for out in outs:
            os.mkdir(out)
        run(compare, "results", *(word for pair in zip(files, outs) for word in pair))
        wanted, counts = sums(run(dagrun, pipeline, "--output", "json", "--learn=off")), []
        for file, out in zip(files, outs):
            run(dagrun, "check", file, "-q")
            got = sums(run(dagrun, file, "--output", "json"))
            wrong = [buffer for buffer in got if wanted.get(buffer, got[buffer]) != got[buffer]]
            for buffer in got:
                with open(os.path.join(out, buffer + ".bin"), "rb") as f:
                    if hashlib.sha256(f.read()).hexdigest() != got[buffer]:
                        wrong.append(f"{buffer} by dagrun.h")
            counts.append(len(wanted.keys() & got.keys()))
            if wrong or not counts[-1]:
                raise RuntimeError(f"{os.path.basename(file)}: other bits in {wrong}; {counts[-1]} compared")
    except (RuntimeError, OSError) as wrong:
        return False, f"FAILED: {name}: {wrong}"
    return True, f"{name}: {counts} results, {time.perf_counter() - began:.1f} s"


with concurrent.futures.ThreadPoolExecutor(max(1, (os.cpu_count() or 2) // 2)) as several:
    answers = list(several.map(compared, sorted(glob.glob(os.path.join(pipelines, "*.yaml")))))
for _, text in answers:
    print(text)
ran = [text for ok, text in answers if ok and ": left out: " not in text]
print(f"{len(ran)} pipelines compared, each with PTX and with machine code")
sys.exit(min(1, (not ran) + sum(not ok for ok, _ in answers)))
