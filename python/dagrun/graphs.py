"""CUDA graphs as data: what the nodes of a captured graph launch with which bytes, and a copy of a graph with other edges and other addresses."""

import ctypes
import functools

from . import driver
from .driver import COPY, KERNEL, SET, call, handle


@functools.lru_cache(maxsize=None)
def _function(function, kernel):
    if not function:
        function = driver.made("cuKernelGetFunction", handle(kernel)).value
    return {"name": driver.name_of(function, kernel), "parameters": driver.parameters_of(function, kernel), "is": driver.attributes_of(function)}


def nodes_of(graph):
    count = ctypes.c_size_t()
    call("cuGraphGetNodes", graph, None, ctypes.byref(count))
    nodes = (handle * count.value)()
    call("cuGraphGetNodes", graph, nodes, ctypes.byref(count))
    return list(nodes)


class _EdgeData(ctypes.Structure):
    _fields_ = [("from_port", ctypes.c_ubyte), ("to_port", ctypes.c_ubyte), ("type", ctypes.c_ubyte), ("reserved", ctypes.c_ubyte * 5)]


def _edges(graph):
    count = ctypes.c_size_t()
    call("cuGraphGetEdges_v2", graph, None, None, None, ctypes.byref(count))
    n = count.value
    origins, targets, data = (handle * n)(), (handle * n)(), (_EdgeData * n)()
    if n:
        call("cuGraphGetEdges_v2", graph, origins, targets, data, ctypes.byref(count))
    return n, origins, targets, data


def type_of(node):
    kind = ctypes.c_int()
    call("cuGraphNodeGetType", handle(node), ctypes.byref(kind))
    return kind.value


def kernel_of(node):
    p = driver.KernelParams()
    call("cuGraphKernelNodeGetParams_v2", handle(node), ctypes.byref(p))
    return p


def attribute_of(node, number):
    value = (ctypes.c_ubyte * 64)()
    if driver._function("cuGraphKernelNodeGetAttribute")(handle(node), number, value):
        return None
    return value


def parameter_bytes(p, layout):
    """The parameters of a launch in one row of bytes, each at its offset."""
    size = max((offset + size for offset, size in layout), default=0)
    row = bytearray(size)
    if p.parameters:
        for k, (offset, size) in enumerate(layout):
            row[offset : offset + size] = ctypes.string_at(p.parameters[k], size)
    elif p.extra:
        # CU_LAUNCH_PARAM_BUFFER_POINTER is 1, _BUFFER_SIZE 2, _END 0
        k, given, at = 0, 0, None
        while p.extra[k]:
            if p.extra[k] == 1:
                at = p.extra[k + 1]
            elif p.extra[k] == 2:
                given = ctypes.cast(p.extra[k + 1], ctypes.POINTER(ctypes.c_size_t))[0]
            k += 2
        if at:
            row[: min(size, given)] = ctypes.string_at(at, min(len(row), given))
    return row


class Node:
    """A node of a graph, with what it does as far as it can be asked."""

    def __init__(self, node):
        self.handle, self.type = node, type_of(node)
        if self.type == KERNEL:
            p = kernel_of(node)
            f = _function(p.function or 0, p.kernel or 0)
            self.params, self.function = p, f
            self.row = parameter_bytes(p, f["parameters"])
            cluster = attribute_of(node, driver.CLUSTER)
            self.cluster = list((ctypes.c_uint * 3).from_buffer_copy(cluster)) if cluster else [0, 0, 0]
            cooperative = attribute_of(node, driver.COOPERATIVE)
            self.cooperative = bool(cooperative and cooperative[0])
        elif self.type == COPY:
            self.params = driver.CopyParams()
            call("cuGraphMemcpyNodeGetParams", handle(node), ctypes.byref(self.params))
        elif self.type == SET:
            self.params = driver.SetParams()
            call("cuGraphMemsetNodeGetParams", handle(node), ctypes.byref(self.params))

    def described(self):
        """The node as plain data, for the planner."""
        d = {"type": self.type, "node": self.handle}
        if self.type == KERNEL:
            p = self.params
            d.update(function=self.function["name"], attributes=self.function["is"], parameters=self.function["parameters"])
            d.update(grid=list(p.grid), block=list(p.block), shared=p.shared, cluster=self.cluster, cooperative=self.cooperative, bytes=self.row.hex())
        elif self.type == COPY:
            c = self.params
            d["copy"] = {"width": c.width, "height": c.height or 1, "depth": c.depth or 1}
            for name, side in (("source", c.source), ("destination", c.destination)):
                base = side.host or 0 if side.kind == 1 else side.device
                d["copy"][name] = {
                    "kind": side.kind,
                    "address": (base or 0) + side.x + side.y * side.pitch + side.z * side.pitch * side.height,
                    "pitch": side.pitch,
                    "slice": side.pitch * side.height,
                }
        elif self.type == SET:
            s = self.params
            d["set"] = {"address": s.address, "pitch": s.pitch, "value": s.value, "element": s.element, "width": s.width * s.element, "height": s.height or 1}
        return d


class Graph:
    """A graph that a program made, read once. It is never changed."""

    def __init__(self, graph):
        self.graph = handle(graph)
        self.nodes = [Node(n) for n in nodes_of(self.graph)]
        index = {n.handle: k for k, n in enumerate(self.nodes)}
        n, origins, targets, data = _edges(self.graph)
        self.edges = [(index[origins[k]], index[targets[k]], data[k].type) for k in range(n)]

    def order(self):
        """The nodes in an order that the edges allow: that in which they were made, where they do."""
        import heapq

        before, after = [0] * len(self.nodes), [[] for _ in self.nodes]
        for a, b, _ in self.edges:
            before[b] += 1
            after[a].append(b)
        ready = [k for k, n in enumerate(before) if n == 0]
        heapq.heapify(ready)
        order = []
        while ready:
            k = heapq.heappop(ready)
            order.append(k)
            for b in after[k]:
                before[b] -= 1
                if before[b] == 0:
                    heapq.heappush(ready, b)
        return order

    def copy(self):
        return Copy(self)


class Copy:
    """A clone of a graph, without edges, whose nodes can be given other edges and other parameters, and be launched."""

    def __init__(self, original):
        self.original = original
        self.graph = driver.made("cuGraphClone", original.graph)
        self.exec = None
        self.kept, self.params = [], {}
        try:
            self.nodes = [driver.made("cuGraphNodeFindInClone", handle(n.handle), self.graph).value for n in original.nodes]
            n, origins, targets, data = _edges(self.graph)
            if n:
                call("cuGraphRemoveDependencies_v2", self.graph, origins, targets, data, ctypes.c_size_t(n))
        except driver.DriverError:
            self.free()
            raise

    def connect(self, edges):
        n = len(edges)
        origins, targets = (handle * n)(*[a for a, _ in edges]), (handle * n)(*[b for _, b in edges])
        if n:
            call("cuGraphAddDependencies_v2", self.graph, origins, targets, None, ctypes.c_size_t(n))

    def delay(self, edges, kernels, choose):
        """Connects nodes as connect does, with kernels that only take time on some of the edges and before some of the nodes: choose returns one of them or None."""
        direct, node = [], handle()
        for a, b in [*edges, *((None, n) for n in self.nodes)]:
            kernel = choose(kernels)
            if kernel is None:
                if a is not None:
                    direct.append((a, b))
                continue
            before = (handle * 1)(a) if a is not None else None
            call("cuGraphAddKernelNode_v2", ctypes.byref(node), self.graph, before, ctypes.c_size_t(1 if a is not None else 0), ctypes.byref(kernel))
            direct.append((node.value, b))
        self.connect(direct)

    def time(self, edges, events):
        """Connects nodes as connect does, with an event before and an event after each: pairs, by node."""
        node, marks = handle(), []
        for pair in events:
            for event in pair:
                call("cuGraphAddEventRecordNode", ctypes.byref(node), self.graph, None, ctypes.c_size_t(0), event)
                marks.append(node.value)
        number = {n: k for k, n in enumerate(self.nodes)}
        around = [(marks[2 * k], n) for k, n in enumerate(self.nodes)] + [(n, marks[2 * k + 1]) for k, n in enumerate(self.nodes)]
        self.connect(around + [(marks[2 * number[a] + 1], marks[2 * number[b]]) for a, b in edges])

    def change(self, k, words):
        """Gives node k other numbers of 8 bytes in its parameters: pairs of offset and number."""
        node = self.original.nodes[k]
        row = bytearray(node.row)
        for offset, word in words:
            row[offset : offset + 8] = word.to_bytes(8, "little")
        p, self_kept = _launch(node, row)
        self.kept.append(self_kept)
        call("cuGraphKernelNodeSetParams_v2", handle(self.nodes[k]), ctypes.byref(p))

    def move_set(self, k, to):
        p = driver.SetParams.from_buffer_copy(self.original.nodes[k].params)
        p.address = to
        call("cuGraphMemsetNodeSetParams", handle(self.nodes[k]), ctypes.byref(p))

    def move_copy(self, k, side, to):
        """Lets a copy node read (side 0) or write (side 1) elsewhere."""
        p = driver.CopyParams.from_buffer_copy(self.params.get(k, self.original.nodes[k].params))
        at = (p.source, p.destination)[side]
        at.device = to - (at.x + at.y * at.pitch + at.z * at.pitch * at.height)
        self.params[k] = p
        call("cuGraphMemcpyNodeSetParams", handle(self.nodes[k]), ctypes.byref(p))

    def instantiate(self):
        self.exec = driver.made("cuGraphInstantiateWithFlags", self.graph, ctypes.c_uint64(0))
        return self

    def launch(self, stream):
        call("cuGraphLaunch", self.exec, handle(stream))

    def free(self):
        if self.exec:
            driver._function("cuGraphExecDestroy")(self.exec)
        if self.graph:
            driver._function("cuGraphDestroy")(self.graph)
        self.exec = self.graph = None

    def __del__(self):
        self.free()


def _launch(node, row):
    """The parameters of a kernel node that launches the same with other bytes, and what they point to."""
    p = driver.KernelParams.from_buffer_copy(node.params)
    layout = node.function["parameters"]
    buffer = (ctypes.c_ubyte * max(len(row), 1)).from_buffer_copy(bytes(row) or b"\0")
    base = ctypes.addressof(buffer)
    pointers = (ctypes.c_void_p * max(len(layout), 1))(*[base + offset for offset, _ in layout])
    p.parameters, p.extra = ctypes.cast(pointers, ctypes.POINTER(ctypes.c_void_p)), None
    return p, (buffer, pointers)


def launch(node, stream, row=None):
    """Does what a node does, on a stream, a kernel with other bytes for its parameters if they are given."""
    if node.type == KERNEL:
        p, kept = _launch(node, row if row is not None else node.row)
        attributes, count = (driver.LaunchAttribute * 2)(), 0
        if any(node.cluster):
            attributes[count].id = driver.CLUSTER
            attributes[count].value[:12] = bytes((ctypes.c_uint * 3)(*node.cluster))
            count += 1
        if node.cooperative:
            attributes[count].id = driver.COOPERATIVE
            attributes[count].value[0] = 1
            count += 1
        c = driver.LaunchConfig(p.grid, p.block, p.shared, handle(stream), attributes, count)
        call("cuLaunchKernelEx", ctypes.byref(c), handle(p.function or p.kernel), p.parameters, None)
        del kept
    elif node.type == COPY:
        call("cuMemcpy3DAsync_v2", ctypes.byref(node.params), handle(stream))
    elif node.type == SET:
        s = node.params
        name = {1: "cuMemsetD2D8Async", 2: "cuMemsetD2D16Async", 4: "cuMemsetD2D32Async"}[s.element]
        pitch = s.pitch if (s.height or 1) > 1 else s.width * s.element
        call(name, driver.address(s.address), ctypes.c_size_t(pitch), s.value, ctypes.c_size_t(s.width), ctypes.c_size_t(s.height or 1), handle(stream))
    elif node.type != driver.EMPTY:
        raise RuntimeError(f"a node of type {node.type} cannot be tried by itself")
