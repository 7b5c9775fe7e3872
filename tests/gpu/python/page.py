"""Runs every snippet and command of docs/python.md in order, in one folder, and compares what commands print with the page."""

import importlib.util
import os
import shlex
import subprocess
import sys
import tempfile

here = os.path.dirname(os.path.abspath(__file__))
spec = importlib.util.spec_from_file_location("page_of_docs", os.path.join(here, "..", "..", "..", "python", "tests", "page.py"))
page = importlib.util.module_from_spec(spec)
spec.loader.exec_module(page)
wrong = 0


def say(name, ran, ok):
    global wrong
    wrong += not ok
    print(f"{name}: {'ok' if ok else 'WRONG'}")
    if not ok:
        print(f"status {ran.returncode}\n{ran.stdout}{ran.stderr}")


with tempfile.TemporaryDirectory() as folder:
    python = os.path.join(folder, "python")
    with open(python, "w") as f:  # a link to the interpreter of a virtual environment would not find its packages
        f.write(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} "$@"\n')
    os.chmod(python, 0o755)
    environment = {**os.environ, "PATH": folder + os.pathsep + os.environ["PATH"]}
    for kind, name, text in page.blocks():
        if kind == "console":
            ran = subprocess.run(["bash", "-c", name], cwd=folder, env=environment, capture_output=True, text=True)
            say(name, ran, page.printed(text, ran.stdout) and ran.returncode == (1 if text.rstrip().endswith("race") else 0))
            continue
        with open(os.path.join(folder, name), "w") as f:
            f.write(text)
        ran = subprocess.run([sys.executable, name], cwd=folder, env=environment, capture_output=True, text=True)
        say(name, ran, ran.returncode == 0)
    ran = subprocess.run([sys.executable, "-m", "dagrun", "check", "part.py"], cwd=folder, env=environment, capture_output=True, text=True)
    say("part.py under the recorder", ran, ran.returncode == 1 and ran.stdout.count("race on 4000 bytes") == 2)  # told at once, and at the end
    for name in ("loop.py", "values.py"):
        ran = subprocess.run([sys.executable, "-m", "dagrun", "check", name], cwd=folder, env=environment, capture_output=True, text=True)
        say(f"{name} under the recorder", ran, ran.returncode in (0, 3) and "race on" not in ran.stdout)
sys.exit(min(wrong, 1))
