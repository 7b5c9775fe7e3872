// What measures a machine: it replays small pipelines with the figures known so far.

// Package measure finds the figures of a machine for planning: from what its devices report, and by replaying small pipelines on them.
package measure

import (
	"context"
	"fmt"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/kernels/library"
	"github.com/dagrun/dagrun/kernels/maps"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/runtime/internal/engine"
)

const (
	measuredChain  = 256 // nodes of a chain
	measuredShort  = 16  // nodes of a chain that takes little longer than launching it as a graph
	measuredWidth  = 8   // chains side by side
	leastLaunchUS  = 0.1 // of a copy, which is found as a difference
	measuredSpinUS = 20  // long enough for a kernel to hide the submission of the next
)

// measurer runs the pipelines of one measurement.
type measurer struct {
	platform cudart.Platform
	machine  *planner.Machine
	bytes    int64 // size of a large copy
	runs     int
	made     map[string]dag.BufferID // small buffers of the pipeline that is being declared
	call     int                     // how many pipelines were replayed in this round
	fastest  []*engine.Timing        // by call: the fastest of all rounds until now
}

// time replays a pipeline, with streams as declared, and returns how long a replay takes, in the fastest round until now.
func (m *measurer) time(ctx context.Context, mode engine.Mode, declare func(b *dag.Builder)) (*engine.Timing, error) {
	t, err := m.timeOnce(ctx, mode, declare)
	if err != nil {
		return nil, err
	}
	if m.call == len(m.fastest) {
		m.fastest = append(m.fastest, t)
	}
	best := m.fastest[m.call]
	m.call++
	for _, of := range []struct{ best, now *engine.Series }{{&best.Submit, &t.Submit}, {&best.Device, &t.Device}} {
		of.best.Min, of.best.Median = min(of.best.Min, of.now.Min), min(of.best.Median, of.now.Median)
	}
	best.Wall = min(best.Wall, t.Wall)
	return best, nil
}

// launched is what can be launched while a machine is measured.
type launched struct {
	library.Catalog
	*maps.Maker
}

// timeOnce replays a pipeline and returns how long a replay takes.
func (m *measurer) timeOnce(ctx context.Context, mode engine.Mode, declare func(b *dag.Builder)) (t *engine.Timing, err error) {
	b := dag.New("measure")
	b.Use(launched{Maker: &maps.Maker{}})
	declare(b)
	g, err := b.Graph()
	if err != nil {
		return nil, err
	}
	plan, err := planner.New(ctx, g, planner.Options{Strategy: "list", Machine: m.machine})
	if err != nil {
		return nil, err
	}
	program, err := engine.New(ctx, g, plan, m.platform, planner.GraphEdges, engine.Options{Mode: mode})
	if err != nil {
		return nil, err
	}
	defer func() {
		if closeErr := program.Close(); err == nil {
			err = closeErr
		}
	}()
	return program.Measure(ctx, 3, m.runs)
}

// chains declares independent chains of kernels, each on a stream of its own.
func chains(width, length int, spinUS float64) func(b *dag.Builder) {
	return func(b *dag.Builder) {
		for s := range width {
			last := dag.NodeID(-1)
			for i := range length {
				name := fmt.Sprintf("k%d.%d", s, i)
				var id dag.NodeID
				if spinUS > 0 {
					id = b.Kernel(name, "spin", dag.Args{spinUS})
				} else {
					id = b.Kernel(name, "noop", nil)
				}
				b.Stream(id, int32(s))
				if last >= 0 {
					b.After(id, last)
				}
				last = id
			}
		}
	}
}

// pingPong declares a chain that changes to the other of two streams at every step.
func pingPong(length int, spinUS float64) func(b *dag.Builder) {
	return func(b *dag.Builder) {
		last := dag.NodeID(-1)
		for i := range length {
			name := fmt.Sprintf("k%d", i)
			var id dag.NodeID
			if spinUS > 0 {
				id = b.Kernel(name, "spin", dag.Args{spinUS})
			} else {
				id = b.Kernel(name, "noop", nil)
			}
			b.Stream(id, int32(i%2))
			if last >= 0 {
				b.After(id, last)
			}
			last = id
		}
	}
}

func onHost(b *dag.Builder, name string, elements int64) dag.BufferID {
	return b.Host(name, dag.F32, elements)
}
func onDevice(b *dag.Builder, name string, elements int64) dag.BufferID {
	return b.Device(name, dag.F32, elements)
}
