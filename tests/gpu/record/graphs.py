"""Captures a network on several streams and replays the graph once: graphs.py googlenet | inception | transformer

Branches run on side streams, forked and joined by events, so the graph has edges between them that nothing else implies. The bits are compared with those
of the same network on one stream. remove-edges (edges/) removes the edges one by one from the recording."""
import sys

import torch
from torch import nn

sides = [torch.cuda.Stream() for _ in range(3)]


def beside(branches, x):
    """Runs each branch on a stream of its own, the first on the current one, and waits for all of them."""
    main = torch.cuda.current_stream()
    outs = [None] * len(branches)
    for k, branch in enumerate(branches[1:]):
        side = sides[k % len(sides)]
        side.wait_stream(main)
        with torch.cuda.stream(side):
            outs[k + 1] = branch(x)
    outs[0] = branches[0](x)
    for k in range(len(branches) - 1):
        main.wait_stream(sides[k % len(sides)])
    return outs


def together(branches, x):
    return [branch(x) for branch in branches]


def googlenet():
    from torchvision.models import googlenet as model
    from torchvision.models.googlenet import Inception

    net = model(weights=None, aux_logits=False, init_weights=False)
    how = [together]
    for m in net.modules():
        if isinstance(m, Inception):
            m._forward = lambda x, m=m: how[0]([m.branch1, m.branch2, m.branch3, m.branch4], x)
    return net, torch.randn(1, 3, 224, 224), how


def inception():
    from torchvision.models import inception_v3 as model

    net = model(weights=None, aux_logits=False, init_weights=False)
    how = [together]
    pool = nn.AvgPool2d(3, 1, 1)

    def chain(m, *names):
        parts = [getattr(m, name) for name in names]
        return lambda x: [x := part(x) for part in parts][-1]

    def split(m, before, left, right):
        """A chain that ends in two halves."""
        first = chain(m, *before)
        return lambda x: (lambda y: torch.cat([getattr(m, left)(y), getattr(m, right)(y)], 1))(first(x))

    for m in net.modules():
        kind = type(m).__name__
        if kind == "InceptionA":
            branches = [chain(m, "branch1x1"), chain(m, "branch5x5_1", "branch5x5_2"), chain(m, "branch3x3dbl_1", "branch3x3dbl_2", "branch3x3dbl_3")]
            branches.append(lambda x, m=m: m.branch_pool(pool(x)))
        elif kind == "InceptionC":
            branches = [chain(m, "branch1x1"), chain(m, "branch7x7_1", "branch7x7_2", "branch7x7_3")]
            branches.append(chain(m, "branch7x7dbl_1", "branch7x7dbl_2", "branch7x7dbl_3", "branch7x7dbl_4", "branch7x7dbl_5"))
            branches.append(lambda x, m=m: m.branch_pool(pool(x)))
        elif kind == "InceptionE":
            branches = [chain(m, "branch1x1"), split(m, ["branch3x3_1"], "branch3x3_2a", "branch3x3_2b")]
            branches.append(split(m, ["branch3x3dbl_1", "branch3x3dbl_2"], "branch3x3dbl_3a", "branch3x3dbl_3b"))
            branches.append(lambda x, m=m: m.branch_pool(pool(x)))
        else:
            continue
        m._forward = lambda x, branches=branches: how[0](branches, x)
    return net, torch.randn(1, 3, 299, 299), how


class Block(nn.Module):
    """A transformer block whose queries, keys and values are computed beside each other, and whose feed-forward part runs beside the attention."""

    def __init__(self, width=512, heads=8):
        super().__init__()
        self.norm, self.heads = nn.LayerNorm(width), heads
        self.q, self.k, self.v, self.out = (nn.Linear(width, width) for _ in range(4))
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.how = [together]

    def attention(self, h):
        n, length, width = h.shape
        q, k, v = (p.view(n, length, self.heads, -1).transpose(1, 2) for p in self.how[0]([self.q, self.k, self.v], h))
        weights = torch.softmax(q @ k.transpose(-1, -2) / (width // self.heads) ** 0.5, -1)
        return self.out((weights @ v).transpose(1, 2).reshape(n, length, width))

    def forward(self, x):
        h = self.norm(x)
        main, side = torch.cuda.current_stream(), sides[2]
        if self.how[0] is together:
            return x + self.attention(h) + self.down(torch.relu(self.up(h)))
        side.wait_stream(main)
        with torch.cuda.stream(side):
            feed = self.down(torch.relu(self.up(h)))
        attended = x + self.attention(h)
        main.wait_stream(side)
        return attended + feed


def transformer():
    net = nn.Sequential(Block(), Block())
    both = [together]
    for block in net:
        block.how = both
    return net, torch.randn(2, 128, 512), both


def main():
    torch.manual_seed(1)
    torch.backends.cudnn.benchmark = False
    net, x, how = {"googlenet": googlenet, "inception": inception, "transformer": transformer}[sys.argv[1]]()
    net, x = net.cuda().eval(), x.cuda()
    main_stream = torch.cuda.Stream()
    torch.cuda.synchronize()
    with torch.no_grad(), torch.cuda.stream(main_stream):
        wanted = net(x)
        how[0] = beside
        torch.cuda.synchronize()
        net(x)  # each side stream gets its libraries' handles and workspaces before the capture
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=main_stream):
            out = net(x)
        graph.replay()
    torch.cuda.synchronize()
    print("observed=ok" if torch.allclose(out, wanted, rtol=1e-2, atol=1e-2) else "observed=stale")


main()
