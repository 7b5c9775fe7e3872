// Making a program: the plan is verified, and everything that replays need is taken. Close frees it.

package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/dag/outline"
	"github.com/dagrun/dagrun/internal/files"
	"github.com/dagrun/dagrun/planner/plan"
	"github.com/dagrun/dagrun/planner/proof"
)

// New verifies the plan and prepares everything to run it. edges finds the edges that a CUDA graph of a plan needs.
func New(ctx context.Context, g *dag.Graph, plan *plan.Plan, platform cudart.Platform, edges EdgesOf, options Options) (*Program, error) {
	switch {
	case ctx == nil:
		return nil, ErrNoContext
	case g == nil:
		return nil, errors.New("a program needs a graph")
	case g.Check() != nil:
		return nil, fmt.Errorf("a program needs a graph: %w", g.Check())
	case plan == nil:
		return nil, errors.New("a program needs a plan")
	case platform == nil:
		return nil, errors.New("a program needs a platform to run on")
	}
	if options.Inflight == 0 {
		options.Inflight = 1
	}
	p := &Program{graph: g, plan: plan, platform: platform, edges: edges, options: options, mode: options.Mode, log: options.Logger,
		setKernel: map[int32]cudart.Kernel{}}
	p.arrays.Dir = g.Dir
	p.trials.program, p.initial.program, p.turns.program = p, p, p
	p.takeLaunches()
	if p.log == nil {
		p.log = slog.New(slog.DiscardHandler)
	}
	for i := range g.Nodes {
		p.ranked = p.ranked || g.Nodes[i].Priority != dag.Normal
		p.low = p.low || g.Nodes[i].Priority == dag.Low
	}
	if err := p.prepare(ctx); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

func (p *Program) prepare(ctx context.Context) error {
	if err := proof.Verify(p.graph, p.plan); err != nil && !p.tolerates(err) {
		return err
	}
	if err := p.checkOptions(); err != nil {
		return err
	}
	if err := CheckWork(p.graph, p.plan); err != nil {
		return err
	}
	if p.options.Confined {
		var err error
		if p.arrays.Folder, err = files.OpenFolder(p.graph.Dir); err != nil {
			return files.CannotRead(p.graph.Dir, err)
		}
	}
	p.ops = p.plan.Replay(p.options.Inflight)
	if err := proof.Replay(p.graph, p.plan, p.ops); err != nil {
		return err
	}
	p.report("prepare devices", 0, 0)
	if err := p.checkDevices(); err != nil {
		return err
	}
	if err := checkFits(p.platform, p.graph, p.plan, p.options.Memory, p.options.Inflight); err != nil {
		return err
	}
	if err := p.checkHost(); err != nil {
		return err
	}
	if err := p.findFunctions(); err != nil {
		return err
	}
	p.makeBodies()
	if p.options.Overlap == OverlapOn {
		if err := CanOverlap(p.platform); err != nil {
			return err
		}
	}
	start := time.Now()
	if err := p.load(ctx, p.options.Overlap == OverlapOn); err != nil {
		return err
	}
	p.loading = time.Since(start)
	p.report("allocate memory", 0, 0)
	for flight := range p.options.Inflight {
		in, err := p.newInstance(ctx, flight)
		if in != nil {
			p.instances = append(p.instances, in)
		}
		if err != nil {
			return err
		}
	}
	p.size()
	if err := p.initial.fill(ctx); err != nil {
		return err
	}
	return p.chooseMode(ctx)
}

// CheckWork refuses a plan that was made for nodes that do other work.
func CheckWork(g *dag.Graph, p *plan.Plan) error {
	if p.Work == "" || p.Work == g.WorkHash() {
		return nil
	}
	if old := p.WorkDone; old != nil {
		if difference := outline.WorkDifference(g, old); difference != "" {
			return fmt.Errorf("%w: %s when it was planned: plan again", plan.ErrOtherGraph, difference)
		}
	}
	return fmt.Errorf("%w: the pipeline has the same structure, but kernels, arguments, launch shapes or costs have changed since it was planned: plan again",
		plan.ErrOtherGraph)
}

func (p *Program) checkOptions() error {
	switch o := &p.options; {
	case o.Mode > Auto:
		return fmt.Errorf("unknown mode: %s", o.Mode)
	case o.Overlap > OverlapAuto:
		return fmt.Errorf("unknown choice: %s", o.Overlap)
	case o.Memory > Separate:
		return fmt.Errorf("unknown memory mode: MemoryMode(%d)", uint8(o.Memory))
	case o.Threads < 0 || o.Threads > 1024:
		return fmt.Errorf("%d threads: the number must be 1 to 1024", o.Threads)
	case len(p.platform.Devices()) == 0:
		return fmt.Errorf("%s has no device: %w", p.platform.Name(), cudart.ErrNoDevice)
	}
	if p.options.Threads > 1 {
		if err := proof.VerifySingleUse(p.graph, p.plan); err != nil {
			return fmt.Errorf("submitting from %d threads needs a plan with one event per record (planner.Options.SingleUseEvents): %w", p.options.Threads, err)
		}
	}
	if p.options.Inflight < 0 || p.options.Inflight > 1024 {
		return fmt.Errorf("%d replays in flight: the number must be 1 to 1024", p.options.Inflight)
	}
	if p.options.Inflight > 1 {
		if carried := p.graph.Carried(); len(carried) > 0 {
			return &CarriedError{Buffer: p.graph.Buffers[carried[0]].Name, Inflight: p.options.Inflight}
		}
		if len(p.options.Bind) > 0 {
			return errors.New("buffers bound to the caller's memory cannot be given to several replays in flight")
		}
		if p.options.Origin != nil {
			return errors.New("several replays in flight cannot share the caller's stream")
		}
	}
	return nil
}

// CarriedError is returned if several replays in flight are requested for a pipeline whose replays depend on each other.
type CarriedError struct {
	Buffer   string
	Inflight int
}

func (e *CarriedError) Error() string {
	return fmt.Sprintf("%d replays in flight are not possible: buffer %q is read before it is written, so each replay depends on the one before it",
		e.Inflight, e.Buffer)
}

// checkDevices refuses device numbers that the platform does not have, and enables access between devices where nodes need it.
func (p *Program) checkDevices() error {
	devices := p.platform.Devices()
	for _, s := range p.plan.Streams {
		if int(s.Device) >= len(devices) {
			return fmt.Errorf("the plan uses device %d, but there are only %d (%s)", s.Device, len(devices), p.platform.Name())
		}
	}
	for _, q := range p.family() {
		if err := q.enablePeers(devices); err != nil {
			return err
		}
	}
	return nil
}

// enablePeers enables access between devices where nodes need it.
func (p *Program) enablePeers(devices []cudart.Info) error {
	for i := range p.graph.Nodes {
		n := &p.graph.Nodes[i]
		if n.Kind == dag.Memcpy {
			dst, src := &p.graph.Buffers[n.Copy.Dst.Buffer], &p.graph.Buffers[n.Copy.Src.Buffer]
			if a, b := deviceOf(dst), deviceOf(src); a >= 0 && b >= 0 && a != b && devices[a].Peers[b] && devices[b].Peers[a] {
				if err := p.platform.EnablePeer(a, b); err != nil {
					return err
				}
				if err := p.platform.EnablePeer(b, a); err != nil {
					return err
				}
			}
		}
		if n.Peer {
			for _, a := range p.graph.Accesses(dag.NodeID(i)) {
				if b := &p.graph.Buffers[a.Buffer]; b.Place == dag.Device && b.Device != n.Device {
					if err := p.platform.EnablePeer(n.Device, b.Device); err != nil {
						return fmt.Errorf("node %q: %w", n.Name, err)
					}
				}
			}
		}
	}
	return nil
}

func (p *Program) newInstance(ctx context.Context, flight int) (in *instance, err error) {
	in = &instance{flight: flight}
	bound := map[dag.BufferID][]byte{}
	for i := range p.graph.Buffers {
		b := &p.graph.Buffers[i]
		memory, ok := p.options.Bind[b.Name]
		if !ok {
			continue
		}
		if b.Place != dag.Host {
			return in, fmt.Errorf("bind %q: only host buffers can be bound", b.Name)
		}
		if int64(len(memory)) != b.Bytes {
			return in, fmt.Errorf("bind %q: the memory has %d bytes, but the buffer has %d", b.Name, len(memory), b.Bytes)
		}
		bound[dag.BufferID(i)] = memory
	}
	for name := range p.options.Bind {
		if _, ok := p.Buffer(name); !ok {
			return in, fmt.Errorf("bind %q: the pipeline has no such buffer", name)
		}
	}
	if in.memory, err = newStorage(p.platform, p.graph, p.plan, p.options.Memory, bound); err != nil {
		return in, err
	}
	for id, address := range p.codeOf(in).symbols {
		in.memory.address[id] = address
	}
	if p.options.DebugProgress {
		if in.progress, err = p.platform.AllocHost(4*int64(max(1, p.graph.Len())), false); err != nil {
			return in, err
		}
		in.memory.owned = append(in.memory.owned, in.progress)
		clear(p.platform.HostBytes(in.progress, 4*int64(p.graph.Len())))
	}
	if err := p.followCommunication(in); err != nil {
		return in, err
	}
	if err := p.share(ctx, in); err != nil { // before commands are encoded, which depend on it
		return in, err
	}
	return in, p.prepareInstance(in)
}

// Close waits for submitted work and frees everything.
func (p *Program) Close() error {
	if p == nil {
		return nil
	}
	if p.closed {
		return p.closeErr
	}
	p.closed = true
	var errs []error
	p.turns.end()
	p.callbacks.Wait()
	errs = append(errs, p.trials.FreeKept())
	for _, in := range p.instances {
		errs = append(errs, in.close())
	}
	for _, m := range p.modules {
		errs = append(errs, m.Close())
	}
	errs = append(errs, p.arrays.Folder.Close())
	p.closeErr = errors.Join(errs...)
	return p.closeErr
}

// makeBodies makes a program for each body of each loop and branch.
func (p *Program) makeBodies() {
	layout := p.plan.Memory
	if p.body {
		layout = p.layout
	}
	for i := range p.graph.Nodes {
		n := &p.graph.Nodes[i]
		if n.Control == nil {
			continue
		}
		if p.bodies == nil {
			p.bodies = make([][]*Program, p.graph.Len())
		}
		for k, g := range n.Control.Bodies {
			plan := p.plan.BodyOf(dag.NodeID(i), k)
			body := &Program{body: true, layout: layout, graph: g, plan: plan, ops: plan.Replay(1), platform: p.platform, edges: p.edges, log: p.log,
				ranked: p.ranked, low: p.low, setKernel: p.setKernel, hosts: p.hosts}
			body.options.Progress, body.options.Functions = p.options.Progress, p.options.Functions
			body.takeLaunches()
			body.makeBodies()
			p.bodies[i] = append(p.bodies[i], body)
		}
	}
}

// takeLaunches notes what each node launches.
func (p *Program) takeLaunches() {
	p.launches = make([]*dag.Launch, p.graph.Len())
	for i := range p.graph.Nodes {
		p.launches[i] = p.graph.Nodes[i].Launch
	}
}

// size fills in the counters for the size of the program, when it is made.
func (p *Program) size() {
	for _, in := range p.instances {
		p.deviceBytes += in.memory.device
		p.hostBytes += in.memory.host
	}
	p.waits = p.plan.Stats.Waits + len(p.plan.Fork()) + len(p.plan.Join())
}
