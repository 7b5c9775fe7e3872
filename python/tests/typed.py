"""A program with types that uses all that the package offers: mypy --strict must find nothing in it. It is not run."""

import dagrun


def step(graph: object, x: object) -> float:
    g = dagrun.Graph()
    squares: dagrun.Value = g.task(abs, x, reads=[x], writes=(), name="square")
    g.task(print, squares, end="")
    plan: dagrun.Plan = g.plan(streams=3)
    plan.run()
    plan.measure()
    plan.svg("plan.svg")
    captured: dagrun.Captured = plan.capture()
    captured.replay()
    fast: dagrun.Replanned = dagrun.replan(graph, "infer.rec", stay=True)
    if fast.changed:
        fast.delayed(seed=1).replay()
    print(fast.report.upper(), plan.report.upper(), plan.streams + 1, captured.value(squares), plan.value(squares))
    double: dagrun.Loaded = dagrun.load("first.yaml", n=1000)
    print(double(x=x)["y"], double.buffers["x"].shape)
    double.release()
    try:
        with dagrun.check() as c:
            fast.replay()
        print(c.report.upper())
    except dagrun.Race as race:
        print(race)
    return sum(plan.us or [])
