// The CPU as a platform: opening it, its devices and their properties, and closing it.

// Package host is the CPU device: a [cudart.Platform] without a GPU. Streams are ordered queues served by a pool of workers. Kernels run as
// their Go references or from their PTX. Work on different streams overlaps, so a missing wait is a real race. Errors have the driver's
// codes.
package host

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/cudart/host/simt"
	"github.com/dagrun/dagrun/cudart/world"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/kernels"
)

// Options describes the CPU devices. The zero value is one device with all cores and all memory.
type Options struct {
	// Devices is how many devices there are; 0 means 1. All share the workers.
	Devices int
	// Memory is the size of each device's memory in bytes; 0 means the machine's memory, divided by Devices.
	Memory int64
	// Workers is how many commands run at once. 0 means one per core, but at least 4, so that streams overlap on any machine.
	Workers int
	// Perturb, if not 0, is the seed of random disturbances, which help to find missing waits: streams are served in a changing, unfair
	// order, by few workers (unless Workers is set), and new memory holds garbage. A program without missing waits gives the same results
	// for every seed.
	Perturb uint64
	// CheckOrder makes the device track which command is ordered after which. A command that conflicts with an earlier one, and is not
	// ordered after it, is refused with a [cudart.RaceError], whatever the timing was. Only the first such error is reliable, because
	// the refused command is missing afterwards.
	CheckOrder bool
	// References are Go implementations of kernels, by entry name, for modules that have none of their own.
	References map[string]kernels.Reference
	// Sanitize is what kernels that run from their PTX are checked for, beside the bounds and the alignment of each access.
	Sanitize simt.Check
	// MaxSteps is how many instructions a launch that runs from PTX may run, all threads together; 0 sets no limit.
	MaxSteps uint64
	// PTX runs every kernel from its PTX, those with a Go version too.
	PTX bool
	// Links makes copies take as long as over links; nil: they take what they take.
	Links *Links
	// Print receives what kernels print when they run from PTX; nil drops it. Several goroutines may call it at the same time.
	Print func(text string)
}

// Platform is a set of CPU devices.
type Platform struct {
	options Options
	infos   []cudart.Info
	devices []*device
	memory  addresses
	pool    pool
	order   *order // nil unless CheckOrder
	peers   [][]atomic.Bool
	capture sync.Mutex // guards every capture

	mu      sync.Mutex
	closed  bool
	queues  []*queue // queues that are not closed, or not empty yet
	made    int32    // number of streams made so far
	streams atomic.Int64
	events  atomic.Int64
	modules atomic.Int64
	lists   atomic.Int64
	graphs  atomic.Int64
	wakers  sync.Pool // channels that goroutines wait on
	compile compileFunc
	world   *world.World // nil: this process is the only rank
}

// Connect makes communication go to the other ranks of a world. It must come before the first command is encoded.
func (p *Platform) Connect(_ context.Context, w *world.World, _ []dag.Among) error {
	p.world = w
	return nil
}

// device is the state of one device's context.
type device struct {
	id    int32
	limit int64
	used  atomic.Int64
	fault atomic.Pointer[cudart.Error]
	links links
	told  atomic.Bool // whether the fault itself was returned to someone
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
	if options.Links != nil {
		if err := options.Links.check(); err != nil {
			return nil, err
		}
	}
	if options.Workers == 0 && options.Perturb != 0 {
		// With few workers, what runs first depends on the order in which streams are served, and that is what Perturb changes.
		options.Workers = [...]int{1, 2, 4}[options.Perturb%3]
	}
	if options.Workers == 0 {
		options.Workers = max(4, runtime.GOMAXPROCS(0))
		if options.Links != nil { // copies on their way keep workers busy
			options.Workers += 3 * options.Devices
		}
	}
	if options.Memory == 0 {
		options.Memory = physicalMemory() / int64(options.Devices)
	}
	p := &Platform{options: options}
	p.compile = compileWith(&kernels.Compilers{})
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
	}{{"order checked", o.CheckOrder}, {"PTX only", o.PTX}, {"links simulated", o.Links != nil}, {"perturbed", o.Perturb != 0}, {fmt.Sprintf("sanitize %v", o.Sanitize), o.Sanitize != 0}} {
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

// device returns a device that exists and works.
func (p *Platform) device(call string, id int32) (*device, error) {
	if id < 0 || int(id) >= len(p.devices) {
		return nil, fail(call, invalidDevice, id, "there are %d CPU devices", len(p.devices))
	}
	d := p.devices[id]
	return d, d.check(call)
}

// check returns the error of a device after a fault: the fault itself the first time, later cudart.ErrPoisoned with it.
func (d *device) check(call string) error {
	fault := d.fault.Load()
	switch {
	case fault == nil:
		return nil
	case fault.Code == int(deinitialized):
		return fail(call, deinitialized, d.id, "the platform is closed")
	}
	if d.told.CompareAndSwap(false, true) {
		return fault
	}
	return fmt.Errorf("device %d: %w: %w", d.id, cudart.ErrPoisoned, fault)
}

// poison makes the context unusable. Only the first fault is kept.
func (d *device) poison(e *cudart.Error) { d.fault.CompareAndSwap(nil, e) }

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

// assumedMemory is used if the machine's memory size cannot be found out.
const assumedMemory = 16 << 30

const (
	firstHandle     = 0x10000
	legacyHandle    = 1 // CU_STREAM_LEGACY
	perThreadHandle = 2 // CU_STREAM_PER_THREAD
)

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
