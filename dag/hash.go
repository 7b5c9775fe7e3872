// Hashes of a graph: one of what makes a plan correct, one of what makes it fast. Also the first difference between two graphs.

package dag

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"math"
	"slices"
)

// Hash returns "sha256:" and a hash of the structure: nodes, the ranges they use, buffers and dependencies. A plan is correct for
// every graph of this hash. It is "" where Check finds a fault. For how long its nodes take see WorkHash.
func (g *Graph) Hash() string {
	if g.Check() != nil {
		return ""
	}
	h := newHasher("dagrun graph 1")
	h.numbers(int64(g.Sync), int64(len(g.Buffers)), int64(len(g.Nodes)))
	for k := range g.Buffers {
		b := &g.Buffers[k]
		h.text(b.Name)
		h.numbers(bufferFacts(b)...)
		h.numbers(int64(len(b.Shape)))
		h.numbers(b.Shape...)
		if b.Symbol != "" {
			h.text(b.Symbol)
		}
	}
	for i := range g.Nodes {
		n := &g.Nodes[i]
		h.text(n.Name)
		accesses := g.Accesses(NodeID(i))
		h.numbers(int64(n.Kind), int64(n.Device), int64(n.Stream.Number()), int64(n.Priority), flag(n.Peer), int64(len(accesses)), int64(len(n.After)))
		for _, a := range accesses {
			h.numbers(int64(a.Buffer), a.Lo, a.Hi, int64(a.Mode))
			if a.Pitch != 0 {
				h.numbers(int64(a.Pitch))
			}
		}
		for _, from := range n.After {
			h.numbers(int64(from))
		}
		n.Control.hashStructure(h)
	}
	return h.sum()
}

// WorkHash returns "sha256:" and a hash of what the nodes do: kernels, their scalar arguments, launch shapes, declared costs, and
// bytes and operations as estimated. A plan made for a graph of the same Hash and another WorkHash is still correct, but it was
// chosen for nodes that take other times. The value that a memset writes makes no difference. WorkParts says
// all of it in words. It is "" where Check finds a fault.
func (g *Graph) WorkHash() string {
	if g.Check() != nil {
		return ""
	}
	h := newHasher("dagrun work 2")
	h.numbers(int64(len(g.Modules)), int64(len(g.Nodes)))
	for _, m := range g.Modules {
		h.text(m.Name)
		h.text(m.Path)
	}
	for i := range g.Nodes {
		n := &g.Nodes[i]
		w := &n.Work
		h.numbers(flag(n.HasCost)+2*flag(w.US > 0), int64(math.Float64bits(n.CostUS)), w.Bytes, w.Flops, w.Blocks, int64(w.Threads), int64(w.Shared), flag(n.Launch != nil))
		if w.US > 0 {
			h.numbers(int64(math.Float64bits(w.US)))
		}
		if c := n.Communication; c != nil {
			h.numbers(c.facts()...)
		}
		n.Control.hashWork(h)
		if l := n.Launch; l != nil {
			h.text(l.Name)
			h.text(mapText(l))
			h.numbers(int64(l.Shared), int64(l.scalars())+flag(l.Cooperative)<<32)
			for k := range 3 {
				h.numbers(int64(l.Grid[k]), int64(l.Block[k]))
			}
			for k := range l.Args {
				if a := &l.Args[k]; !a.IsBuffer {
					h.numbers(int64(a.Bits))
				}
			}
		}
	}
	return h.sum()
}

// scalars is how many arguments are not buffers.
func (l *Launch) scalars() int {
	count := 0
	for k := range l.Args {
		if !l.Args[k].IsBuffer {
			count++
		}
	}
	return count
}

func mapText(l *Launch) string {
	if l.Map == nil {
		return ""
	}
	return l.Map.Text
}

// bufferFacts is what a plan relies on beside a buffer's name and shape.
func bufferFacts(b *Buffer) []int64 {
	return []int64{int64(b.Place), int64(b.DType), int64(b.Device), b.Bytes, flag(b.Pageable), flag(b.Scratch), flag(b.Init != nil), flag(b.Save != ""), flag(b.Expect != nil) + 2*flag(b.Symbol != "")}
}

func flag(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// hasher hands the hash few large pieces: a call for each number would cost more than the hashing.
type hasher struct {
	hash   hash.Hash
	buffer []byte
}

// newHasher starts a hash; the kind keeps hashes of different things apart.
func newHasher(kind string) *hasher {
	h := &hasher{hash: sha256.New(), buffer: make([]byte, 0, 1<<15)}
	h.text(kind)
	return h
}

func (h *hasher) sum() string {
	h.flush()
	return "sha256:" + hex.EncodeToString(h.hash.Sum(nil))
}

func (h *hasher) numbers(values ...int64) {
	for _, v := range values {
		h.buffer = binary.AppendVarint(h.buffer, v)
	}
	if len(h.buffer) > 1<<14 {
		h.flush()
	}
}

func (h *hasher) text(s string) {
	h.buffer = binary.AppendUvarint(h.buffer, uint64(len(s)))
	h.buffer = append(h.buffer, s...)
}

func (h *hasher) flush() {
	h.hash.Write(h.buffer)
	h.buffer = h.buffer[:0]
}

// FirstDifference names the first thing in which the graph differs from another one, as a sentence about this one such as
// `node "up_x" is new`, or "" if both their hashes are equal. Differences of structure come before those of work. A program that keeps
// plans for its graphs can tell with it why a plan no longer fits. For a plan from a file, see DifferenceFrom.
func (g *Graph) FirstDifference(old *Graph) string {
	if g.Check() != nil || old.Check() != nil {
		return ""
	}
	if g.Sync != old.Sync {
		return fmt.Sprintf("sync is %s, it was %s", g.Sync, old.Sync)
	}
	if d := firstDifferentName("buffer", len(g.Buffers), len(old.Buffers), func(k int32) string { return g.Buffers[k].Name }, func(k int32) string { return old.Buffers[k].Name }); d != "" {
		return d
	}
	if d := firstDifferentName("node", len(g.Nodes), len(old.Nodes), func(k int32) string { return g.Nodes[k].Name }, func(k int32) string { return old.Nodes[k].Name }); d != "" {
		return d
	}
	for k := range g.Buffers {
		if d := bufferDifference(&g.Buffers[k], &old.Buffers[k]); d != "" {
			return fmt.Sprintf("buffer %q %s", g.Buffers[k].Name, d)
		}
	}
	for i := range g.Nodes {
		if d := g.nodeDifference(old, NodeID(i)); d != "" {
			return fmt.Sprintf("node %q %s", g.Nodes[i].Name, d)
		}
	}
	return g.WorkDifferenceFrom(old.WorkOutline())
}

// firstDifferentName names the first id at which the names differ: something new, something gone, or another order.
func firstDifferentName(what string, n, oldN int, name, oldName func(k int32) string) string {
	for k := range int32(max(n, oldN)) {
		if int(k) < min(n, oldN) && name(k) == oldName(k) {
			continue
		}
		is, was := newNameIndex(n), newNameIndex(oldN)
		for k := range int32(n) {
			is.add(k, name)
		}
		for k := range int32(oldN) {
			was.add(k, oldName)
		}
		switch {
		case int(k) < n && was.find(name(k), oldName) < 0:
			return fmt.Sprintf("%s %q is new", what, name(k))
		case int(k) < oldN && is.find(oldName(k), name) < 0:
			return fmt.Sprintf("%s %q is gone", what, oldName(k))
		case int(k) < min(n, oldN):
			return fmt.Sprintf("%s %q stands where %q stood", what, name(k), oldName(k))
		}
	}
	return ""
}

func bufferDifference(b, old *Buffer) string {
	was := func(what string, is, was any) string { return fmt.Sprintf("has %s %v, it had %v", what, is, was) }
	switch {
	case b.Place != old.Place:
		return fmt.Sprintf("is in %s memory, it was in %s memory", b.Place, old.Place)
	case b.DType != old.DType:
		return fmt.Sprintf("is of type %s, it was of %s", b.DType, old.DType)
	case !slices.Equal(b.Shape, old.Shape):
		return was("shape", b.Shape, old.Shape)
	case b.Device != old.Device:
		return fmt.Sprintf("is on device %d, it was on %d", b.Device, old.Device)
	case b.Pageable != old.Pageable:
		return changed(b.Pageable, "pageable")
	case b.Scratch != old.Scratch:
		return changed(b.Scratch, "scratch")
	case b.Symbol != old.Symbol:
		return fmt.Sprintf("stands for the variable %q, it stood for %q", b.Symbol, old.Symbol)
	}
	for _, part := range []struct {
		name    string
		is, was bool
	}{{"init", b.Init != nil, old.Init != nil}, {"save", b.Save != "", old.Save != ""}, {"expect", b.Expect != nil, old.Expect != nil}} {
		switch {
		case part.is && !part.was:
			return "has " + part.name + ", it had none"
		case part.was && !part.is:
			return "has no " + part.name + ", it had one"
		}
	}
	return ""
}

func changed(is bool, what string) string {
	if is {
		return "is " + what + ", it was not"
	}
	return "is not " + what + ", it was"
}

func (g *Graph) nodeDifference(old *Graph, i NodeID) string {
	n, o := &g.Nodes[i], &old.Nodes[i]
	switch {
	case n.Kind != o.Kind:
		return fmt.Sprintf("is a %s, it was a %s", n.Kind, o.Kind)
	case n.Device != o.Device:
		return fmt.Sprintf("runs on device %d, it ran on %d", n.Device, o.Device)
	case n.Stream != o.Stream:
		return fmt.Sprintf("is bound to %s, it was bound to %s", streamText(n.Stream.Number()), streamText(o.Stream.Number()))
	case n.Priority != o.Priority:
		return fmt.Sprintf("has priority %s, it had %s", n.Priority, o.Priority)
	case n.Peer != o.Peer:
		return changed(n.Peer, "allowed to use peers")
	}
	for k, a := range g.Accesses(i) {
		if before := old.Accesses(i); k >= len(before) {
			return fmt.Sprintf("uses %s (%s), it did not", g.rangeText(a.Range), a.Mode)
		} else if a != before[k] {
			return fmt.Sprintf("uses %s (%s) where it used %s (%s)", g.rangeText(a.Range), a.Mode, old.rangeText(before[k].Range), before[k].Mode)
		}
	}
	if before := old.Accesses(i); len(before) > len(g.Accesses(i)) {
		gone := before[len(g.Accesses(i))]
		return fmt.Sprintf("does not use %s (%s), it did", old.rangeText(gone.Range), gone.Mode)
	}
	if !slices.Equal(n.After, o.After) {
		for _, from := range n.After {
			if !slices.Contains(o.After, from) {
				return fmt.Sprintf("comes after %q, it did not", g.Nodes[from].Name)
			}
		}
		for _, from := range o.After {
			if !slices.Contains(n.After, from) {
				return fmt.Sprintf("does not come after %q, it did", old.Nodes[from].Name)
			}
		}
		return "lists what it comes after in another order"
	}
	return n.Control.difference(o.Control)
}

func streamText(stream int32) string {
	if stream < 0 {
		return "no stream"
	}
	return fmt.Sprintf("stream %d", stream)
}
