"""The snippets and commands of docs/python.md, in order."""

import os
import re

page = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs", "python.md")


def blocks():
    """The blocks of the page: ("python", name of its file, text), or ("console", command, what it prints), one for each command."""
    with open(page) as f:
        text = f.read()
    found = []
    for language, body in re.findall(r"^```(\w*)\n(.*?)^```$", text, re.M | re.S):
        if language == "python":
            found.append(("python", re.match(r"# (\w+\.py)\n", body).group(1), body))
        else:
            for command, out in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", body, re.M):
                found.append(("console", command, out))
    return found


def printed(wanted, got):
    """Whether an output is as the page shows it; a line of three dots stands for any lines."""
    pattern = "".join(r"(?:.*\n)*?" if line == "...\n" else re.escape(line) for line in wanted.splitlines(True))
    return re.fullmatch(pattern, got) is not None
