"""python -m dagrun ARGUMENTS: the dagrun command. `python -m dagrun check PROGRAM.py` (or `-m MODULE`) records the program and checks the recording."""

import os
import subprocess
import sys
import tempfile

from . import command


def main() -> int:
    words = sys.argv[1:]
    if words[:1] == ["check"]:
        at = next((k for k, w in enumerate(words[1:], 1) if w == "-m" or w.endswith(".py") and os.path.exists(w)), None)
        if at is not None:
            return check(words[1:at], words[at:])
    os.execv(command.path(), ["dagrun", *words])


def check(flags: list[str], program: list[str]) -> int:
    """Records a Python program and checks what it did. The program's own failure is told, and what it did until then is checked."""
    with tempfile.TemporaryDirectory() as folder:
        name = " ".join(program[:2]) if program[0] == "-m" else program[0]
        file = os.path.join(folder, "program.rec")
        ran = subprocess.run([command.path(), "record", "--quiet", "-o", file, "--", sys.executable, *program]).returncode
        if not os.path.exists(file):
            return ran or 1
        if ran:
            print(f"dagrun: {name} ended with status {ran}; what it did until then is checked", file=sys.stderr)
        return subprocess.run([command.path(), "check", *flags, file]).returncode or ran


if __name__ == "__main__":
    sys.exit(main())
