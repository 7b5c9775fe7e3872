// Measures what small copies and sets take in graphs, and changes from one engine to another.

package measure

import (
	"context"
	"fmt"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/runtime/internal/engine"
)

const (
	measuredTurns = 36      // nodes of a chain of copies
	measuredSmall = 256     // elements: the bytes of a small copy or kernel hardly count
	measuredLarge = 1 << 18 // elements: small uploads do not use the copy engine
)

// engines measures the figures of small copies and sets, and of changes of engines. All are measured in graphs, which the host does not slow
// down. Devices whose copies and kernels share cores have none of them. What branches lose where they wait for each other depends on what their
// nodes do: small pipelines made for it gave a quarter of what real ones lose, so the usual values stay until learning corrects them.
func (m *measurer) engines(ctx context.Context) error {
	if m.machine.Cores > 0 {
		return nil
	}
	each := func(nodes int, declare func(b *dag.Builder)) (float64, error) {
		t, err := m.time(ctx, engine.Captured, declare)
		if err != nil {
			return 0, err
		}
		return t.Device.Min / float64(nodes), nil
	}
	figures := m.machine
	copied, err := each(measuredTurns, m.inTurn(1, m.upload))
	if err != nil {
		return err
	}
	figures.CopyUS = max(0, copied-figures.GraphNodeUS)
	filled, err := each(measuredTurns, m.inTurn(1, func(b *dag.Builder, chain, i int) dag.NodeID {
		from, to := m.small(b, "a", chain, onDevice), m.small(b, "b", chain, onDevice)
		return b.Copy(fmt.Sprintf("move%d", i), b.Whole(to), b.Whole(from))
	}))
	if err != nil {
		return err
	}
	figures.FillUS = max(0, filled-figures.GraphNodeUS)
	return m.changes(ctx, each)
}

// changes compares an upload, a kernel and a download in turn with chains of each.
func (m *measurer) changes(ctx context.Context, each func(nodes int, declare func(b *dag.Builder)) (float64, error)) error {
	buffers := func(b *dag.Builder) (in, out, x, y dag.Range) {
		part := func(name string, declare func(b *dag.Builder, name string, elements int64) dag.BufferID) dag.Range {
			return b.Whole(m.sized(b, name, measuredLarge, declare))
		}
		return part("in", onHost), part("out", onHost), part("x", onDevice), part("y", onDevice)
	}
	kinds := []func(b *dag.Builder, chain, i int) dag.NodeID{
		func(b *dag.Builder, _, i int) dag.NodeID {
			in, _, x, _ := buffers(b)
			return b.Copy(fmt.Sprintf("up%d", i), x, in)
		},
		func(b *dag.Builder, _, i int) dag.NodeID {
			_, _, x, y := buffers(b)
			return b.Kernel(fmt.Sprintf("square%d", i), "square", dag.Args{measuredLarge, x, y})
		},
		func(b *dag.Builder, _, i int) dag.NodeID {
			_, out, _, y := buffers(b)
			return b.Copy(fmt.Sprintf("down%d", i), out, y)
		},
	}
	apart := 0.0
	for _, kind := range kinds {
		us, err := each(measuredTurns, m.inTurn(1, kind))
		if err != nil {
			return err
		}
		apart += us - m.machine.GraphNodeUS
	}
	inTurn, err := each(measuredTurns/len(kinds), m.inTurn(1, kinds...))
	if err != nil {
		return err
	}
	m.machine.EngineUS = max(0, (inTurn-apart)/float64(len(kinds)))
	return nil
}

// inTurn declares chains of so many nodes, each on a stream of its own, whose nodes are made by the given functions in turn.
func (m *measurer) inTurn(width int, nodes ...func(b *dag.Builder, chain, i int) dag.NodeID) func(b *dag.Builder) {
	return func(b *dag.Builder) {
		m.made = map[string]dag.BufferID{}
		for chain := range width {
			last := dag.NodeID(-1)
			for i := range measuredTurns {
				id := nodes[i%len(nodes)](b, chain, i)
				b.Stream(id, int32(chain))
				if last >= 0 {
					b.After(id, last)
				}
				last = id
			}
		}
	}
}

// small returns a small buffer of a chain, the same one each time.
func (m *measurer) small(b *dag.Builder, name string, chain int, declare func(b *dag.Builder, name string, elements int64) dag.BufferID) dag.BufferID {
	return m.sized(b, fmt.Sprintf("%s%d", name, chain), measuredSmall, declare)
}

// sized returns a buffer, the same one for the same name.
func (m *measurer) sized(b *dag.Builder, name string, elements int64, declare func(b *dag.Builder, name string, elements int64) dag.BufferID) dag.BufferID {
	if _, ok := m.made[name]; !ok {
		m.made[name] = declare(b, name, elements)
	}
	return m.made[name]
}

// upload declares an upload of a few bytes.
func (m *measurer) upload(b *dag.Builder, chain, i int) dag.NodeID {
	host, device := m.small(b, "h", chain, onHost), m.small(b, "d", chain, onDevice)
	return b.Copy(fmt.Sprintf("up%d.%d", chain, i), b.Whole(device), b.Whole(host))
}
