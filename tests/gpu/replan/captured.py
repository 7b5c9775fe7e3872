"""What the programs here share: capturing a step as a graph, and comparing the graph that dagrun makes of it with torch's own replay."""

import sys

import torch

import dagrun


def captured(step, x):
    """The step as a graph that torch keeps, and what it returns."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            step(x)
        graph = torch.cuda.CUDAGraph(keep_graph=True)
        with torch.cuda.graph(graph, stream=side):
            y = step(x)
    torch.cuda.synchronize()
    return graph, y


def planned(graph):
    """The graph planned again, with the recording that the command line names."""
    fast = dagrun.replan(graph, sys.argv[1])
    print(fast.report)
    return fast


def compared(fast, graph, y, change, what, rounds=50):
    """Ends the program with 1 if the new graph ever gives other bits than torch's replay; change gives both other inputs."""
    if not fast.changed:
        return
    equal = 0
    for _ in range(rounds):
        change()
        graph.replay()
        torch.cuda.synchronize()
        wanted = y.clone()
        y.fill_(float("nan"))
        fast.replay()
        torch.cuda.synchronize()
        equal += torch.equal(wanted, y)
    print(f"bits equal for {equal} of {rounds} {what}")
    sys.exit(equal < rounds)
