// Changing a program's plan between two replays: other streams, events and commands on the same kernels and host memory. What buffers
// hold from one replay to the next stays.

package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/plan"
	"github.com/dagrun/dagrun/planner/proof"
)

// Adopt makes the program replay another way from now on. The plan is proved first. After an error the program replays as before, unless
// the error is the device's.
func (t *Trials) Adopt(ctx context.Context, w Way) error {
	p := t.program
	if p.closed {
		return ErrClosed
	}
	if err := proof.Verify(p.graph, w.Plan); err != nil {
		return err
	}
	if w.Threads > 1 {
		if err := proof.VerifySingleUse(p.graph, w.Plan); err != nil {
			return err
		}
	}
	ops := w.Plan.Replay(p.options.Inflight)
	if err := proof.Replay(p.graph, w.Plan, ops); err != nil {
		return err
	}
	if err := p.Synchronize(ctx); err != nil {
		return err
	}
	if t.Has(w) {
		return t.takeKept(w)
	}
	if err := p.loadForm(ctx, w.Overlap); err != nil {
		return err
	}
	wasWay, wasEarly := p.Way(), p.early
	wasPlan, wasOps, wasMode, wasThreads, wasOverlap, was := p.plan, p.ops, p.mode, p.options.Threads, p.overlap, p.instances
	p.useCode(w.Overlap)
	p.plan, p.ops, p.mode, p.options.Threads = w.Plan, ops, w.Mode, w.Threads
	p.planBodies()
	p.instances = make([]*instance, 0, len(was))
	err := p.prepareInstances(ctx, was, wasPlan)
	if err == nil && w.Mode != Streams {
		err = p.makeGraphs(w.Mode)
	}
	if err != nil {
		errs := []error{err}
		for k, in := range p.instances {
			errs = append(errs, in.strip())
			if in.memory != was[k].memory {
				errs = append(errs, in.memory.freeDevice())
			}
			was[k].memory.lay(wasPlan)
		}
		p.plan, p.ops, p.mode, p.options.Threads, p.instances = wasPlan, wasOps, wasMode, wasThreads, was
		p.planBodies()
		p.useCode(wasOverlap)
		return errors.Join(errs...)
	}
	var errs []error
	moved := false
	for k, from := range was {
		moved = moved || p.instances[k].memory != from.memory
	}
	if moved { // the commands of all others have addresses of before
		errs = append(errs, t.FreeKept())
	} else if t.keeps(wasWay) {
		t.keep(wasWay, wasOps, wasEarly, was)
		was = nil
	}
	for k, from := range was {
		errs = append(errs, from.strip())
		if to := p.instances[k].memory; to != from.memory {
			to.owned, to.pinned, to.host = from.memory.owned, from.memory.pinned, from.memory.host
			errs = append(errs, from.memory.freeDevice())
		}
	}
	p.resume()
	return errors.Join(errs...)
}

// takeKept makes the program replay a way that it has. Its replays have finished.
func (t *Trials) takeKept(w Way) (err error) {
	p := t.program
	was, kept := p.Way(), t.kept[w]
	if w == was {
		return nil
	}
	if t.keeps(was) {
		t.keep(was, p.ops, p.early, p.instances)
	} else {
		for _, in := range p.instances {
			err = errors.Join(err, in.strip())
		}
	}
	delete(t.kept, w)
	p.useCode(w.Overlap)
	p.plan, p.mode, p.options.Threads, p.ops, p.early, p.instances = w.Plan, w.Mode, w.Threads, kept.ops, kept.early, kept.instances
	for _, in := range p.instances {
		in.memory.lay(p.plan)
	}
	p.resume()
	return err
}

// resume notes which instances and how much memory are in use now.
func (p *Program) resume() {
	p.latest.Store(p.last())
	p.deviceBytes, p.hostBytes = 0, 0
	p.size()
}

// planBodies makes the programs of bodies follow the plan of the program around them.
func (p *Program) planBodies() {
	layout := p.plan.Memory
	if p.body {
		layout = p.layout
	}
	for i, bodies := range p.bodies {
		for k, body := range bodies {
			body.layout, body.plan = layout, p.plan.BodyOf(dag.NodeID(i), k)
			body.ops = body.plan.Replay(1)
			body.planBodies()
		}
	}
}

// prepareInstances makes an instance of the new plan for each that there was, on the same memory where that holds the plan too.
func (p *Program) prepareInstances(ctx context.Context, was []*instance, wasPlan *plan.Plan) error {
	for _, from := range was {
		in := &instance{flight: from.flight, memory: from.memory, progress: from.progress, communicated: from.communicated}
		if !from.memory.holds(p.graph, wasPlan, p.plan) {
			memory, err := p.move(ctx, from.memory)
			if err != nil {
				return err
			}
			in.memory = memory
		}
		p.instances = append(p.instances, in)
		in.memory.lay(p.plan)
		if err := p.prepareInstance(in); err != nil {
			return err
		}
	}
	return nil
}

// holds says whether the arenas have room for another plan of the graph, and the buffers that keep their bytes stay where they are.
func (s *storage) holds(g *dag.Graph, from, to *plan.Plan) bool {
	if s.arenas == nil {
		return true
	}
	for device, bytes := range DeviceBytes(g, to, Arena) {
		if bytes > 0 && (device >= len(s.room) || bytes > s.room[device]) {
			return false
		}
	}
	return slices.Equal(keptPlaces(from), keptPlaces(to))
}

// keptPlaces are the placements of the buffers that keep their bytes for the whole program.
func keptPlaces(p *plan.Plan) []plan.Placement {
	var places []plan.Placement
	for _, m := range p.Memory {
		if slices.Contains(p.Kept, m.Buffer) {
			places = append(places, m)
		}
	}
	return places
}

// move takes memory for the program's plan and copies into it what buffers keep. Host memory stays where it is.
func (p *Program) move(ctx context.Context, from *storage) (*storage, error) {
	if err := checkFits(p.platform, p.graph, p.plan, p.options.Memory, 1); err != nil {
		return nil, err
	}
	to := &storage{platform: p.platform, address: slices.Clone(from.address)}
	if err := to.takeDevice(p.graph, p.plan, p.options.Memory); err != nil {
		return nil, errors.Join(err, to.freeDevice())
	}
	for _, id := range p.plan.Kept {
		b := &p.graph.Buffers[id]
		if b.Bytes == 0 || !b.InArena() {
			continue
		}
		command := cudart.Command{Kind: cudart.CopyMemory, Label: b.Name, Node: -1, Dst: to.address[id], DstDevice: b.Device, Src: from.address[id],
			SrcDevice: b.Device, Bytes: b.Bytes}
		if err := p.do(ctx, b.Device, command); err != nil {
			return nil, errors.Join(fmt.Errorf("buffer %q: move its contents: %w", b.Name, err), to.freeDevice())
		}
	}
	return to, nil
}
