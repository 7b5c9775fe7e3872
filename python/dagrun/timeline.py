"""When the nodes of a graph ran, by an event before and after each, and a file of it for Perfetto."""

import json
import statistics

from . import driver, observe
from .driver import COPY, KERNEL, SET, call, handle


def measured(build, nodes, stream, rounds=9):
    """When each node began and ended, in microseconds from the launch: medians of several launches. build makes the graph, given a pair of events for each node."""
    events = [(driver.made("cuEventCreate", 0), driver.made("cuEventCreate", 0)) for _ in range(nodes)]
    origin = driver.made("cuEventCreate", 0)
    try:
        copy = build(events)
        rows = []
        for _ in range(rounds + 1):
            call("cuEventRecord", origin, handle(stream))
            copy.launch(stream)
            call("cuStreamSynchronize", handle(stream))
            rows.append([(observe._between(origin, a), observe._between(origin, b)) for a, b in events])
        return [tuple(statistics.median(row[k][side] for row in rows[1:]) for side in (0, 1)) for k in range(nodes)]
    finally:
        for event in [origin, *(e for pair in events for e in pair)]:
            call("cuEventDestroy_v2", event)


def lanes(spans):
    """A row for each span, so that spans of one row do not overlap: the first that is free."""
    rows, chosen = [], [0] * len(spans)
    for k in sorted(range(len(spans)), key=lambda k: spans[k]):
        begin, end = spans[k]
        free = next((row for row, until in enumerate(rows) if until <= begin), len(rows))
        rows[free:free + 1] = [end]
        chosen[k] = free
    return chosen


def write(file, graph, timelines):
    """Writes timelines, by name, in the Trace Event Format."""
    events = []
    for process, (name, spans) in enumerate(timelines.items()):
        events.append({"name": "process_name", "ph": "M", "pid": process, "args": {"name": name}})
        for k, (row, (begin, end)) in enumerate(zip(lanes(spans), spans)):
            node = graph.nodes[k]
            what = node.function["name"] if node.type == KERNEL else {COPY: "copy", SET: "set"}.get(node.type, "empty")
            events.append({"name": f"{k} {what}", "ph": "X", "pid": process, "tid": row, "ts": round(begin, 3), "dur": round(end - begin, 3)})
    with open(file, "w") as f:
        json.dump({"traceEvents": events, "displayTimeUnit": "ns"}, f)
