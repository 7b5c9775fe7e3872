// The CPU as a platform: opening it, its devices and their properties, and closing it.

// Package host is the CPU device: a [cudart.Platform] without a GPU. Streams are ordered queues served by a pool of workers. Kernels run as
// their Go references or from their PTX. Work on different streams overlaps, so a missing wait is a real race. Errors have the driver's
// codes.
package host

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/cudart/host/simt"
	"github.com/dagrun/dagrun/cudart/world"
	"github.com/dagrun/dagrun/dag"
)

// Connect makes communication go to the other ranks of a world. It must come before the first command is encoded.
func (p *Platform) Connect(_ context.Context, w *world.World, _ []dag.Among) error {
	p.world = w
	return nil
}

// Open starts the CPU devices. Close ends them.
func Open(options Options) (*Platform, error) {
	if options.Devices == 0 {
		options.Devices = 1
	}
	if options.Devices < 0 || options.Devices > 256 {
		return nil, fmt.Errorf("cpu:%d: there can be 1 to 256 CPU devices", options.Devices)
	}
	if options.Workers < 0 || options.Memory < 0 {
		return nil, fmt.Errorf("CPU device: %d workers and %d bytes of memory must not be negative", options.Workers, options.Memory)
	}
	if options.Workers > maxWorkers {
		return nil, fmt.Errorf("CPU device: %d workers; up to %d are possible", options.Workers, maxWorkers)
	}
	if options.Workers == 0 && options.Perturb != 0 {
		// With few workers, what runs first depends on the order in which streams are served, and that is what Perturb changes.
		options.Workers = [...]int{1, 2, 4}[options.Perturb%3]
	}
	if options.Workers == 0 {
		options.Workers = max(4, runtime.GOMAXPROCS(0))
	}
	if options.Memory == 0 {
		options.Memory = physicalMemory() / int64(options.Devices)
	}
	p := &Platform{options: options}
	p.compile = compileWith(options.Compilers)
	p.wakers.New = func() any { return make(chan struct{}, 1) }
	for i := range options.Devices {
		p.devices = append(p.devices, &device{id: int32(i), limit: options.Memory})
		p.infos = append(p.infos, describe(i, options))
		p.peers = append(p.peers, make([]atomic.Bool, options.Devices))
		p.peers[i][i].Store(true)
	}
	if options.CheckOrder {
		p.order = newOrder()
	}
	p.pool.start(options.Workers, options.Perturb)
	return p, nil
}

func describe(i int, options Options) cudart.Info {
	info := cudart.Info{
		Name:               "CPU",
		UUID:               fmt.Sprintf("CPU-%08x", i),
		Memory:             options.Memory,
		Multiprocessors:    options.Workers,
		CopyEngines:        options.Workers,
		MaxThreadsPerBlock: maxThreads,
		MaxBlock:           [3]int{1024, 1024, 64},
		MaxGrid:            [3]int{1<<31 - 1, 65535, 65535},
		ThreadsPerSM:       2048,
		BlocksPerSM:        32,
		SharedPerBlock:     sharedDefault,
		SharedPerBlockMax:  sharedMax,
		SharedPerSM:        sharedMax + 1024,
		Driver:             runtime.Version(),
		Peers:              make([]bool, options.Devices),
	}
	for j := range info.Peers {
		info.Peers[j] = j != i
	}
	return info
}

// Conditions tells which options change how long kernels take, so that times measured under one set are not used under another; "" for
// none of them.
func (p *Platform) Conditions() string {
	o := &p.options
	text := ""
	for _, c := range []struct {
		name string
		set  bool
	}{{"order checked", o.CheckOrder}, {"PTX only", o.PTX}, {"perturbed", o.Perturb != 0},
		{"kernels checked (fast)", o.Sanitize == simt.CheckFast}, {"kernels checked (full)", o.Sanitize == simt.CheckFull},
		{"kernels checked (auto)", o.Sanitize == simt.CheckUsual}} {
		if c.set {
			text += ", " + c.name
		}
	}
	return strings.TrimPrefix(text, ", ")
}

// Name implements [cudart.Platform].
func (p *Platform) Name() string { return "cpu" }

// Devices implements [cudart.Platform].
func (p *Platform) Devices() []cudart.Info {
	infos := slices.Clone(p.infos)
	for i := range infos {
		infos[i].Peers = slices.Clone(infos[i].Peers)
	}
	return infos
}

// TakesDeciders implements [cudart.Platform]: a worker tests conditions.
func (p *Platform) TakesDeciders() bool { return false }

// EnablePeer implements [cudart.Platform].
func (p *Platform) EnablePeer(id, peer int32) error {
	const call = "cuCtxEnablePeerAccess"
	if _, err := p.device(call, id); err != nil {
		return err
	}
	if _, err := p.device(call, peer); err != nil {
		return err
	}
	p.peers[id][peer].Store(true)
	return nil
}

// Synchronize implements [cudart.Platform].
func (p *Platform) Synchronize(ctx context.Context, id int32) error {
	const call = "cuCtxSynchronize"
	d, err := p.device(call, id)
	if err != nil {
		return err
	}
	p.mu.Lock()
	all := slices.Clone(p.queues)
	p.mu.Unlock()
	for _, q := range all {
		if q.device != d {
			continue
		}
		if q.capturing() {
			return fail(call, captureUnsupported, id, "stream %d is capturing", q.id)
		}
		c := p.order.stands(q)
		if err := q.finish(ctx, q.submitted()); err != nil {
			return err
		}
		p.order.waited(c)
	}
	p.prune()
	return d.check(call)
}

// prune forgets closed streams that are empty.
func (p *Platform) prune() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.queues = slices.DeleteFunc(p.queues, func(q *queue) bool { return q.closed.Load() && q.done.Load() == q.submitted() })
}

// Live implements [cudart.Platform].
func (p *Platform) Live() cudart.Live {
	p.memory.mu.RLock()
	defer p.memory.mu.RUnlock()
	return cudart.Live{
		Memory:  len(p.memory.sorted),
		Streams: int(p.streams.Load()),
		Events:  int(p.events.Load()),
		Modules: int(p.modules.Load()),
		Lists:   int(p.lists.Load()),
		Graphs:  int(p.graphs.Load()),
	}
}

// Close waits for all work, ends the workers and frees all memory. If something that was made has not been closed, the error counts it and
// matches [cudart.ErrLeak]; it is freed nevertheless. A second Close does nothing.
func (p *Platform) Close() error {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil
	}
	p.closed = true
	queues := p.queues
	p.mu.Unlock()
	live := p.Live()
	for _, q := range queues {
		q.finish(context.Background(), q.submitted())
	}
	for _, d := range p.devices {
		d.fault.Store(fail("cuDevicePrimaryCtxRelease", deinitialized, d.id, ""))
	}
	p.pool.stop()
	if _, err := p.memory.clear(); err != nil {
		return fmt.Errorf("CPU device: unmap: %w", err)
	}
	return leaks(live)
}

// leaks returns the error for resources that were not closed.
func leaks(live cudart.Live) error {
	var parts []string
	for _, kind := range []struct {
		n    int
		name string
	}{{live.Memory, "allocation"}, {live.Streams, "stream"}, {live.Events, "event"}, {live.Modules, "module"}, {live.Lists, "list"}, {live.Graphs, "graph"}} {
		switch {
		case kind.n == 1:
			parts = append(parts, "1 "+kind.name)
		case kind.n > 1:
			parts = append(parts, fmt.Sprintf("%d %ss", kind.n, kind.name))
		}
	}
	if parts == nil {
		return nil
	}
	return fmt.Errorf("CPU device closed with %s %w", strings.Join(parts, ", "), cudart.ErrLeak)
}

// NewStream implements [cudart.Platform].
func (p *Platform) NewStream(id int32, priority dag.Priority) (cudart.Stream, error) {
	d, err := p.device("cuStreamCreateWithPriority", id)
	if err != nil {
		return nil, err
	}
	priority = min(max(priority, dag.Low), dag.High)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.streams.Add(1)
	return &stream{queue: p.newQueue(d, priority)}, nil
}

// newQueue makes a queue. The caller holds mu. Handles start above the special ones (0, 1 and 2) and are never reused.
func (p *Platform) newQueue(d *device, priority dag.Priority) *queue {
	q := &queue{platform: p, device: d, priority: priority, id: p.made, handle: firstHandle + uintptr(p.made)*16, ring: make([]entry, 64)}
	p.made++
	q.sequence = p.order.newSequence()
	p.queues = append(p.queues, q)
	return q
}

// maxWorkers limits the goroutines of a platform: a larger number is a mistake and would take gigabytes.
const maxWorkers = 4096

// AdoptStream implements [cudart.Platform]. The handles are those of this platform's streams; 0 and 1 name the default stream of
// device 0, and 2, a stream for each thread, is refused.
func (p *Platform) AdoptStream(handle uintptr) (cudart.Stream, error) {
	const call = "cuStreamGetCtx"
	if handle == perThreadHandle {
		return nil, fail(call, notSupported, -1, "the per-thread default stream is a different stream on every thread; pass a stream of your own")
	}
	if handle == 0 {
		handle = legacyHandle
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, q := range p.queues {
		if q.handle == handle && !q.closed.Load() {
			p.streams.Add(1)
			return &stream{queue: q, adopted: true}, nil
		}
	}
	if handle != legacyHandle {
		return nil, fail(call, invalidHandle, -1, "%#x is not a stream of this platform", handle)
	}
	q := p.newQueue(p.devices[0], dag.Normal)
	q.handle = legacyHandle
	p.streams.Add(1)
	return &stream{queue: q, adopted: true}, nil
}

func (p *pool) start(workers int, seed uint64) {
	p.workers = workers
	p.wake.L = &p.mu
	if seed != 0 {
		p.random = rand.New(rand.NewPCG(seed, 0))
	}
	for i := range workers {
		w := &worker{pool: p}
		if seed != 0 {
			w.order = seed*0x9e3779b97f4a7c15 + uint64(i) | 1
		}
		p.all = append(p.all, w)
		p.group.Go(w.run)
	}
}

// Synchronize implements [cudart.Stream].
func (s *stream) Synchronize(ctx context.Context) error {
	const call = "cuStreamSynchronize"
	if err := s.check(call); err != nil {
		return err
	}
	q := s.queue
	if err := q.refuseCapture(call); err != nil {
		return err
	}
	c := q.platform.order.stands(q)
	if err := q.finish(ctx, q.submitted()); err != nil {
		return err
	}
	q.platform.order.waited(c)
	return q.device.check(call)
}

// Query implements [cudart.Stream].
func (s *stream) Query() (bool, error) {
	const call = "cuStreamQuery"
	if err := s.check(call); err != nil {
		return false, err
	}
	if err := s.queue.refuseCapture(call); err != nil {
		return false, err
	}
	c := s.queue.platform.order.stands(s.queue)
	if !s.queue.here().reached() {
		return false, nil
	}
	s.queue.platform.order.waited(c)
	return true, s.queue.device.check(call)
}

// Close implements [cudart.Stream]. Work already submitted still runs.
func (s *stream) Close() error {
	if s.closed.Swap(true) {
		return nil
	}
	s.queue.platform.streams.Add(-1)
	if !s.adopted {
		s.queue.closed.Store(true)
		s.queue.platform.order.retire(s.queue.sequence)
		s.queue.platform.prune()
	}
	return nil
}
