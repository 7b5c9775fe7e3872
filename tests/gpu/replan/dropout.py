"""A graph that draws random numbers: dropout in four branches. The new graph must draw what torch's own replay would, for any seed and after any number of
replays, and leave the generator where that would.

    dagrun record -o dropout.rec -- python dropout.py dropout.rec && python dropout.py dropout.rec
"""

import sys

import torch

from captured import captured, planned

torch.manual_seed(1)
x = torch.randn(512, 256, device="cuda")


def step(x):
    return sum(torch.nn.functional.dropout(torch.relu(x) * k, 0.5).cumsum(0).softmax(1) for k in range(1, 5)) + torch.rand_like(x)


graph, y = captured(step, x)
fast = planned(graph)
if fast.changed:
    equal, rounds = 0, 50
    for seed in range(rounds):
        left = []
        for one in (graph, fast):
            torch.manual_seed(seed)
            for _ in range(1 + seed % 3):
                one.replay()
            torch.cuda.synchronize()
            left.append((y.clone(), torch.cuda.get_rng_state()))
        equal += all(torch.equal(a, b) for a, b in zip(*left))
    print(f"bits equal for {equal} of {rounds} seeds")
    fast.trace(sys.argv[1] + ".trace.json")
    sys.exit(equal < rounds)
