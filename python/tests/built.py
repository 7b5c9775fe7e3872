"""The built command that tests use: the one that DAGRUN_COMMAND names, or one that is built once."""

import atexit
import os
import shutil
import subprocess
import sys
import tempfile

root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(root, "python"))


def command():
    found = os.environ.get("DAGRUN_COMMAND")
    if not found:
        folder = tempfile.mkdtemp()
        atexit.register(shutil.rmtree, folder)
        found = os.environ["DAGRUN_COMMAND"] = os.path.join(folder, "dagrun")
        subprocess.run(["go", "build", "-trimpath", "-o", found, "./cmd/dagrun"], cwd=root, check=True, env={**os.environ, "CGO_ENABLED": "0"})
    return found
