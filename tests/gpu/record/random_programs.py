"""Random programs of eager PyTorch on four streams with events, all in one process: each whole, and each with one wait left out that it needs.
    random_programs.py EXPECTED [PROGRAMS]
EXPECTED gets, for each program, the pairs of lines that conflict and that nothing orders, found by going through all pairs. Each program has buffers of its
own and a file name of its own ("prog17.py" whole, "prog17cut.py" with the wait left out), so that the places of a report tell which program it is about."""
import json
import random
import sys

import torch

STREAMS, BUFFERS, WORK = 4, 5, 10
FORMS = [  # text, buffers read, buffers written; a, b and c are different
    ("torch.add(b[{a}], b[{b}], out=b[{c}])", "ab", "c"),
    ("torch.mul(b[{a}], 2.0, out=b[{b}])", "a", "b"),
    ("b[{a}].add_(b[{b}])", "ab", "a"),
    ("b[{a}].copy_(b[{b}], non_blocking=True)", "b", "a"),
    ("b[{a}].fill_(3.0)", "", "a"),
    ("b[{a}].zero_()", "", "a"),
]


class Program:
    """A list of steps: ("work", stream, text, reads, writes), ("record", stream, event), ("wait", stream, event)."""

    def __init__(self, steps):
        self.steps = steps

    def unordered(self):
        """All pairs of work that conflict and that neither streams nor events order, as indices of steps."""
        n, last, recorded = len(self.steps), {}, {}
        before = [set() for _ in range(n)]
        for i, step in enumerate(self.steps):
            stream = step[1]
            sources = [last[stream]] if stream in last else []
            if step[0] == "wait" and step[2] in recorded:
                sources.append(recorded[step[2]])
            for j in sources:
                before[i] |= before[j] | {j}
            if step[0] == "record":
                recorded[step[2]] = i
            last[stream] = i
        work = [i for i, step in enumerate(self.steps) if step[0] == "work"]
        return [
            (i, j)
            for j in work
            for i in work
            if i < j and i not in before[j] and (self.steps[i][4] & (self.steps[j][3] | self.steps[j][4]) or self.steps[i][3] & self.steps[j][4])
        ]

    def source(self):
        text = {"work": "with torch.cuda.stream(s[{0[1]}]): {0[2]}", "record": "e[{0[2]}].record(s[{0[1]}])", "wait": "s[{0[1]}].wait_event(e[{0[2]}])"}
        return "\n".join(text[step[0]].format(step) for step in self.steps) + "\n"


def whole(r):
    """A program in which everything that conflicts is ordered, by waits that are put in where they are needed."""
    steps, events = [], 0
    for _ in range(WORK):
        text, reads, writes = r.choice(FORMS)
        names = dict(zip("abc", r.sample(range(BUFFERS), 3)))
        stream = r.randrange(STREAMS)
        work = ("work", stream, text.format(**names), {names[x] for x in reads}, {names[x] for x in writes})
        while True:
            missing = [i for i, j in Program([*steps, work]).unordered() if j == len(steps)]
            if not missing:
                break
            last = missing[-1]  # an event that is recorded again each time, so that records replace others
            event = steps[last][1] if r.random() < 0.3 else STREAMS + events
            events += event >= STREAMS
            steps += [("record", steps[last][1], event), ("wait", stream, event)]
        steps.append(work)
    return Program(steps)


def cut(r, program):
    """The same without one of the waits that it needs, or None if it needs none."""
    waits = [i for i, step in enumerate(program.steps) if step[0] == "wait"]
    r.shuffle(waits)
    for i in waits:
        less = Program([step for j, step in enumerate(program.steps) if j != i])
        if less.unordered():
            return less
    return None


def main():
    expected, programs = [], int(sys.argv[2]) if len(sys.argv) > 2 else 200
    seed, made = 0, []
    while len(made) < 2 * programs:
        r = random.Random(seed)
        program = whole(r)
        less = cut(r, program)
        if less is not None:
            made += [(f"prog{seed}.py", program), (f"prog{seed}cut.py", less)]
        seed += 1
    s = [torch.cuda.Stream() for _ in range(STREAMS)]
    buffers = [[torch.zeros(1024, device="cuda") for _ in range(BUFFERS)] for _ in made]
    events = [torch.cuda.Event() for _ in range(STREAMS + 4 * WORK * WORK)]
    for name, program in made:
        expected.append({"name": name, "pairs": [[i + 1, j + 1] for i, j in program.unordered()]})
    with open(sys.argv[1], "w") as file:
        json.dump(expected, file)
    torch.cuda.synchronize()
    for (name, program), b in zip(made, buffers):
        exec(compile(program.source(), name, "exec"), {"torch": torch, "s": s, "e": events, "b": b})
        torch.cuda.synchronize()
    print("observed=ok")


if __name__ == "__main__":
    main()
