// Package spread proves graphs over several devices: every read of a node sees the bytes that it would see in the graph that was declared.
package spread

import (
	"reflect"
	"slices"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/plan"
	"github.com/dagrun/dagrun/planner/proof"
)

// Verify proves that a graph over several devices gives the results of the graph it was made from, bit by bit, in every replay. The error is
// a *proof.Violation that matches ErrWrong; its ids are those of the graph over several devices.
//
// It uses nothing but the two graphs and the list of which nodes and buffers stand for which. Every node of the original must be there once,
// with the same work on the same bytes; all others must be copies between pieces of one buffer. Then each graph is followed in the order in
// which its nodes were declared, which every correct plan keeps. The two orders may differ, but not those of a body. For each byte of each
// piece the proof knows which node wrote the version that it holds; a read must find the version that it finds in the original. The same is
// followed over replays: a piece begins a replay with what the last one left in it. In the end everything that is saved, compared or kept
// must hold the last version.
//
// The bodies of loops and branches are graphs with nodes like these. A pass of a loop is followed with what any pass may begin with: bytes that
// are right both before the loop and at the end of a pass. After a branch, bytes are right that are so whichever body ran, or none. Seen from
// outside, a loop or branch writes all bytes that a body of it may write; a piece that no body writes holds what it held before. Conditions must
// read what they read in the original.
func Verify(original *dag.Graph, s *plan.Spread) error {
	if err := original.Check(); err != nil {
		return err
	}
	if s == nil || s.Graph.Check() != nil {
		return wrong("there is no graph over several devices")
	}
	c := &spreadCheck{original: original, s: s, g: s.Graph, bodies: s.Bodies}
	for _, check := range []func() *proof.Violation{c.pieces, c.nodes, c.results, c.findBands, c.replays} {
		if v := check(); v != nil {
			return v
		}
	}
	return nil
}

// pieces checks that every buffer stands for bytes of a buffer of the original that it can stand for.
func (c *spreadCheck) pieces() *proof.Violation {
	if len(c.s.Buffers) != len(c.g.Buffers) || len(c.s.Nodes) != c.g.Len() {
		return wrong("it stands for %d buffers and %d nodes, but has %d and %d", len(c.s.Buffers), len(c.s.Nodes), len(c.g.Buffers), c.g.Len())
	}
	if c.g.Sync != c.original.Sync || !sameModules(c.g, c.original) {
		return wrong("its modules or its sync are not those of the pipeline")
	}
	count := make([]int, len(c.original.Buffers))
	for k := range c.g.Buffers {
		at, b := c.s.Buffers[k], &c.g.Buffers[k]
		if at.Buffer < 0 || int(at.Buffer) >= len(c.original.Buffers) {
			return wrong("buffer %q stands for buffer %d, but there are %d", b.Name, at.Buffer, len(c.original.Buffers))
		}
		o := &c.original.Buffers[at.Buffer]
		count[at.Buffer]++
		inside := at.Lo >= 0 && b.Bytes >= 0 && at.Lo <= o.Bytes && b.Bytes <= o.Bytes-at.Lo
		whole := at.Lo == 0 && b.Bytes == o.Bytes
		switch {
		case !inside:
			return wrong("buffer %q stands for bytes %d to %d of %q, which has %d", b.Name, at.Lo, at.Lo+b.Bytes, o.Name, o.Bytes)
		case b.DType != o.DType, b.Symbol != o.Symbol, b.Scratch != o.Scratch:
			return wrong("buffer %q is of another kind than %q, for which it stands", b.Name, o.Name)
		case o.Place == dag.Host && (b.Place != dag.Host || b.Pageable != o.Pageable || !whole || count[at.Buffer] > 1):
			return wrong("host buffer %q must stay as it is", o.Name)
		case o.Symbol != "" && (b.Place != o.Place || b.Device != o.Device || !whole || count[at.Buffer] > 1):
			return wrong("buffer %q must stay as it is on device %d", o.Name, o.Device)
		case o.Fixed && b.Place == dag.Device && b.Device != o.Device:
			return wrong("buffer %q must stay on device %d", o.Name, o.Device)
		case b.Place == dag.Device && (b.Device < 0 || int(b.Device) >= c.s.Devices):
			return wrong("buffer %q is on device %d of %d", b.Name, b.Device, c.s.Devices)
		case b.Init != nil && (!whole || !reflect.DeepEqual(b.Init, o.Init)):
			return wrong("buffer %q does not begin as %q does", b.Name, o.Name)
		case (b.Save != "" || b.Expect != nil) && (!whole || b.Name != o.Name || b.Save != o.Save || b.Expect != o.Expect || !slices.Equal(b.Shape, o.Shape)):
			return wrong("buffer %q is saved or compared in place of %q, but is not the same", b.Name, o.Name)
		}
	}
	return nil
}

func sameModules(a, b *dag.Graph) bool {
	return slices.EqualFunc(a.Modules, b.Modules, func(x, y dag.Module) bool { return x.Name == y.Name && x.Path == y.Path })
}

// results finds the piece of each buffer that is read after the last replay.
func (c *spreadCheck) results() *proof.Violation {
	c.final = make([]dag.BufferID, len(c.original.Buffers))
	for k := range c.original.Buffers {
		o := &c.original.Buffers[k]
		c.final[k] = -1
		kept := slices.Contains(c.s.Kept, dag.BufferID(k))
		if o.Save == "" && o.Expect == nil && !kept {
			continue
		}
		for j, at := range c.s.Buffers {
			b := &c.g.Buffers[j]
			if at.Buffer != dag.BufferID(k) || b.Save != o.Save || b.Expect != o.Expect || b.Name != o.Name || at.Lo != 0 || b.Bytes != o.Bytes {
				continue
			}
			c.final[k] = dag.BufferID(j)
			break
		}
		if c.final[k] < 0 {
			return wrong("no buffer holds the result %q", o.Name)
		}
		for j, at := range c.s.Buffers {
			if b := &c.g.Buffers[j]; at.Buffer == dag.BufferID(k) && dag.BufferID(j) != c.final[k] && (b.Save != "" || b.Expect != nil) {
				return wrong("buffers %q and %q are both saved or compared in place of %q", c.g.Buffers[c.final[k]].Name, b.Name, o.Name)
			}
		}
	}
	return nil
}

// replays follows both graphs, replay after replay, until nothing new can happen.
func (c *spreadCheck) replays() *proof.Violation {
	// Two or three replays are enough unless contents wander from device to device.
	const most = 16
	c.good = make([][]extent, len(c.g.Buffers))
	for k := range c.g.Buffers {
		b, o := &c.g.Buffers[k], &c.original.Buffers[c.s.Buffers[k].Buffer]
		if b.Bytes > 0 && (b.Init != nil) == (o.Init != nil) {
			c.good[k] = []extent{c.placeOf(dag.BufferID(k))}
		}
	}
	for range most {
		next, v := c.replay()
		if v != nil {
			return v
		}
		settled := true
		for k := range next {
			settled = settled && covers(next[k], c.good[k])
		}
		if settled {
			return nil
		}
		c.good = next
	}
	return wrong("after %d replays, contents still wander from device to device", most)
}

// replay follows one replay and returns which bytes begin the next with what the original begins it with.
func (c *spreadCheck) replay() ([][]extent, *proof.Violation) {
	c.held = make([]byteVersions, len(c.g.Buffers))
	if !c.moved {
		c.wanted = c.startVersions()
	} else if c.views == nil {
		c.followDeclared()
	}
	for k := range c.g.Buffers {
		place := c.placeOf(dag.BufferID(k))
		c.held[k].set(place.lo, place.hi, noVersion)
		for _, e := range c.good[k] {
			c.held[k].set(e.lo, e.hi, atStart)
		}
	}
	if v := c.followLevel(c.top); v != nil {
		return nil, v
	}
	for k, id := range c.final {
		if id < 0 {
			continue
		}
		all := extent{0, c.bands[k].size(c.original.Buffers[k].Bytes)}
		if at, want, has := c.differs(dag.BufferID(k), all, id); at.lo < at.hi {
			r := c.bands[k].rangeOf(dag.BufferID(k), at)
			v := wrong("%s ends with %s on %s, but in the pipeline with %s", c.original.RangeText(r), c.versionText(has), c.placeText(id), c.versionText(want))
			v.Buffer, v.BufferName, v.Lo, v.Hi = id, c.g.Buffers[id].Name, r.Lo, r.Hi
			return nil, v
		}
	}
	next := make([][]extent, len(c.g.Buffers))
	for k := range c.g.Buffers {
		next[k] = sameVersions(&c.wanted[c.s.Buffers[k].Buffer], &c.held[k], c.placeOf(dag.BufferID(k)))
	}
	return next, nil
}
