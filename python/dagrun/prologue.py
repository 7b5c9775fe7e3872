"""What torch does before it replays a graph that draws random numbers: it writes the generator's seed and offset where the graph's kernels read them, and moves
the offset on. A new graph of the same kernels needs the same; where torch writes is found by trying."""

from .driver import KERNEL
from .trial import bytes_at


class Unknown(Exception):
    """It was not found where torch writes."""


class Prologue:
    """The generator, the two numbers in device memory, and by how much a replay moves the offset."""

    def __init__(self, generator, seed, offset, step):
        self.generator, self.seed, self.offset, self.step = generator, seed, offset, step

    def run(self):
        """Does it, on the current stream."""
        before = self.generator.get_offset()
        self.seed.fill_(_signed(self.generator.initial_seed()))
        self.offset.fill_(before)
        self.generator.set_offset(before + self.step)


def _signed(number):
    return (number + 2**63) % 2**64 - 2**63


def drawn(torch, g):
    """By how much a replay moves the offset of the default generator, which is left as it was."""
    generator = torch.cuda.default_generators[torch.cuda.current_device()]
    before = generator.get_offset()
    g.replay()
    torch.cuda.synchronize()
    step = generator.get_offset() - before
    generator.set_offset(before)
    return step


def find(torch, g, graph, active, step):
    """The prologue of a graph, found by replaying it with two other seeds and offsets: in all that its kernels point to outside its own memory, one number must
    follow the seed and one the offset."""
    generator = torch.cuda.default_generators[torch.cuda.current_device()]
    seed, offset = generator.initial_seed(), generator.get_offset()
    numbers = {at: bytes_at(torch, at, 8).view(torch.int64) for at in _pointed(graph, active)}
    seeds, offsets = set(numbers), set(numbers)
    try:
        for other_seed, other_offset in ((0x5DEECE66D1234567, 4 * 1234567), (0x1B873593CC9E2D51, 4 * 7654321)):
            generator.manual_seed(other_seed)
            generator.set_offset(other_offset)
            g.replay()
            torch.cuda.synchronize()
            found = {at: number.item() for at, number in numbers.items()}
            seeds = {at for at in seeds if found[at] == other_seed}
            offsets = {at for at in offsets if found[at] == other_offset}
    finally:
        generator.manual_seed(seed)
        generator.set_offset(offset)
    if len(seeds) != 1 or len(offsets) != 1:
        raise Unknown("it draws random numbers, and it was not found where torch puts their seed and offset")
    return Prologue(generator, numbers[seeds.pop()], numbers[offsets.pop()], step)


def _pointed(graph, active):
    """The addresses of numbers of 8 bytes in blocks of memory that parameters of kernels point to."""
    addresses = set()
    for node in graph.nodes:
        if node.type != KERNEL:
            continue
        for offset, size in node.function["parameters"]:
            for at in range((offset + 7) & ~7, offset + size - 7, 8):
                word = int.from_bytes(node.row[at : at + 8], "little")
                if word % 8 == 0 and any(base <= word and word + 8 <= base + length for base, length in active):
                    addresses.add(word)
    return sorted(addresses)
