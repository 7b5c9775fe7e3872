// The problem: which nodes may run where, and which buffers stay where they are.

// Package placement turns a graph into one over several devices. Given a device for every node, it gives every device the pieces of buffers that
// its nodes use, and inserts the copies between them. It also chooses the devices.
package placement

import (
	"errors"
	"fmt"
	"math"

	"github.com/dagrun/dagrun/dag"
)

// ErrCannot is returned (wrapped) for graphs that cannot be spread.
var ErrCannot = errors.New("the pipeline cannot be spread over devices")

// NewProblem checks that a graph can be spread over that many devices. keep marks buffers that are read after the last replay, besides those
// with save or expect; nil marks none.
func NewProblem(g *dag.Graph, devices int, keep []bool) (*Problem, error) {
	switch {
	case devices < 1 || devices > dag.MostDevices:
		return nil, fmt.Errorf("%w: there can be 1 to %d devices, not %d", ErrCannot, dag.MostDevices, devices)
	case g.Sync == dag.SyncExplicit:
		return nil, fmt.Errorf("%w: with sync: explicit its order is its own, on the devices that it names", ErrCannot)
	case g.Ranks > 1:
		return nil, fmt.Errorf("%w: each of its ranks has one device", ErrCannot)
	}
	n := len(g.Buffers)
	p := &Problem{Graph: g, Devices: devices, inner: map[int32][]int32{}, stays: make([]bool, n), keep: make([]bool, n), written: make([]bool, n),
		early: make([]bool, n)}
	p.findLevels(g, -1)
	p.Fixed = make([]int32, p.nodes)
	for k := range g.Buffers {
		b := &g.Buffers[k]
		p.stays[k] = b.Place == dag.Host || b.Fixed || b.Symbol != ""
		p.keep[k] = b.Save != "" || b.Expect != nil || keep != nil && keep[k]
	}
	for _, r := range g.ReadFirst() {
		p.early[r.Buffer] = true
	}
	err := p.eachNode(func(l *level, i dag.NodeID, _ int32) error {
		node := &l.graph.Nodes[i]
		if node.Communication != nil {
			return fmt.Errorf("%w: %q communicates with other ranks, each of which has one device", ErrCannot, node.Name)
		}
		for _, a := range l.graph.Accesses(i) {
			p.written[a.Buffer] = p.written[a.Buffer] || a.Mode&dag.Write != 0 && a.Lo < a.Hi
			if node.Peer { // its kernel finds buffers where the file says that they are
				p.stays[a.Buffer] = true
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for k := range g.Buffers {
		if b := &g.Buffers[k]; p.stays[k] && b.Place == dag.Device && int(b.Device) >= devices {
			return nil, fmt.Errorf("%w: buffer %q is on device %d, and there are %d devices", ErrCannot, b.Name, b.Device, devices)
		}
	}
	p.spaces = findSpaces(p)
	if err := p.eachNode(p.fix); err != nil {
		return nil, err
	}
	for k := range p.levels {
		if err := p.fixStreams(&p.levels[k]); err != nil {
			return nil, err
		}
	}
	p.findUnits()
	return p, nil
}

// fix finds where a node has to run.
func (p *Problem) fix(l *level, i dag.NodeID, number int32) error {
	g, node := p.Graph, &l.graph.Nodes[i]
	at := int32(Free)
	if node.Fixed || node.Peer || node.Kind == dag.HostFunction {
		at = node.Device
	}
	uses := func(id dag.BufferID) error {
		b := &g.Buffers[id]
		if !p.stays[id] || b.Place == dag.Host {
			return nil
		}
		if at != Free && at != b.Device {
			return fmt.Errorf("%w: node %q is on device %d, but uses %q, which is on device %d", ErrCannot, node.Name, at, b.Name, b.Device)
		}
		at = b.Device
		return nil
	}
	switch {
	case node.Control != nil: // its own work is to read the condition
		if c := node.Control.Condition; c != nil {
			for _, r := range c.Operands {
				if err := uses(r.Buffer); err != nil {
					return err
				}
			}
		}
	case node.Copy != nil:
		if p.stays[node.Copy.Src.Buffer] && p.stays[node.Copy.Dst.Buffer] {
			at = node.Device
		}
	case !node.Peer:
		for _, a := range l.graph.Accesses(i) {
			if err := uses(a.Buffer); err != nil {
				return err
			}
		}
		if at == Free && usesVariables(node) {
			at = node.Device
		}
	}
	if at != Free && int(at) >= p.Devices {
		return fmt.Errorf("%w: node %q is on device %d, and there are %d devices", ErrCannot, node.Name, at, p.Devices)
	}
	p.Fixed[number] = at
	return nil
}

// usesVariables reports whether a kernel writes variables of its module, of which every device has its own.
func usesVariables(node *dag.Node) bool {
	if node.Launch == nil {
		return false
	}
	user, ok := node.Launch.Kernel.(dag.SymbolUser)
	if !ok {
		return false
	}
	for _, use := range user.SymbolUses() {
		if !use.Symbol.Constant {
			return true
		}
	}
	return false
}

// fixStreams keeps the nodes of a numbered stream on one device: where one of them has to be, else where the first is declared.
func (p *Problem) fixStreams(l *level) error {
	nodes, fixed := l.graph.Nodes, p.Fixed[l.first:]
	type home struct {
		device int32
		by     int
	}
	homes := map[int32]home{}
	for pass := range 2 {
		for i := range nodes {
			stream := nodes[i].Stream.Number()
			if stream < 0 {
				continue
			}
			h, known := homes[stream]
			switch at := fixed[i]; {
			case !known && at != Free:
				homes[stream] = home{at, i}
			case known && at != Free && at != h.device:
				return fmt.Errorf("%w: stream %d has %q on device %d and %q on device %d", ErrCannot, stream, nodes[h.by].Name, h.device, nodes[i].Name, at)
			case pass == 1 && at == Free && known:
				fixed[i] = h.device
			case pass == 1 && at == Free:
				h = home{min(nodes[i].Device, int32(p.Devices-1)), i}
				homes[stream], fixed[i] = h, h.device
			}
		}
	}
	return nil
}

// where is the device of the piece of a buffer that a node on device at uses.
func (p *Problem) where(b dag.BufferID, at int32) int32 {
	if p.stays[b] {
		return p.Graph.Buffers[b].Device
	}
	return at
}

// constant reports whether a buffer that is not tied to a device always has its first contents, which every device can have of its own.
func (p *Problem) constant(b dag.BufferID) bool { return !p.stays[b] && !p.written[b] }

// whole reports whether a buffer needs a place that holds all of it, because that is how contents are given and taken.
func (p *Problem) whole(b dag.BufferID) bool {
	return p.stays[b] || p.early[b] || p.keep[b] || p.Graph.Buffers[b].Init != nil
}

// check returns an error for placements that are none.
func (p *Problem) check(at []int32) error {
	if len(at) != int(p.nodes) {
		return fmt.Errorf("%w: %d devices for %d nodes", ErrCannot, len(at), p.nodes)
	}
	if len(at) > math.MaxInt32/4 {
		return fmt.Errorf("%w: it has %d nodes", ErrCannot, len(at))
	}
	for i, d := range at {
		switch {
		case d < 0 || int(d) >= p.Devices:
			return fmt.Errorf("%w: node %q is placed on device %d of %d", ErrCannot, p.name(int32(i)), d, p.Devices)
		case p.Fixed[i] != Free && p.Fixed[i] != d:
			return fmt.Errorf("%w: node %q is placed on device %d, but belongs on device %d", ErrCannot, p.name(int32(i)), d, p.Fixed[i])
		}
	}
	return nil
}
