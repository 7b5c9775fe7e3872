// The platform: devices, their primary contexts, and counts of open resources.

package driver

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/cudart/driver/internal/nccl"
	"github.com/dagrun/dagrun/cudart/world"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/internal/dl"
	"github.com/dagrun/dagrun/kernels/launch"
)

// Platform is all NVIDIA GPUs of this process. Its methods may be called from any goroutine.
type Platform struct {
	lib       *library
	devices   []*device
	sequences sync.Pool
	host      hostMemory
	live      counts
	ranges    ranges
	textures  textures
	compilers launch.Compiler
	queues    string // value of queuesVariable when the driver starts and when it makes a context
	patience  uint64 // of submitting threads
	// limits the submitting threads of a list: they spin, and one without a core would hold up the others. GOMAXPROCS respects a container's limit
	cores  int
	comms  *communicators // with other ranks; nil without
	closed atomic.Bool
}

// counts holds the current numbers for cudart.Live.
type counts struct{ memory, streams, events, modules, lists, graphs atomic.Int64 }

var errClosed = errors.New("the platform is closed")

func newPlatform(lib *library, queues string, choose func(count int) ([]int, error), compilers launch.Compiler) (*Platform, error) {
	p := &Platform{lib: lib, queues: queues, patience: patience(), cores: runtime.GOMAXPROCS(0), compilers: compilers}
	p.sequences.New = func() any { return new(sequence) }
	s, _ := p.sequence(nil)
	defer s.release()
	s.call(cuDeviceGetCount, s.out(0))
	if err := s.run(); err != nil {
		return nil, err
	}
	count := int32(s.outs[0])
	if count == 0 {
		return nil, fmt.Errorf("%w: the driver (CUDA %s) sees no GPU; is CUDA_VISIBLE_DEVICES set?", cudart.ErrNoDevice, versionText(lib.version))
	}
	ordinals, err := chosen(int(count), choose)
	if err != nil {
		return nil, err
	}
	for i, ordinal := range ordinals {
		d := &device{number: int32(i)}
		s.reset()
		s.call(cuDeviceGet, s.out(0), uintptr(ordinal))
		if err := s.run(); err != nil {
			return nil, err
		}
		d.handle = int32(s.outs[0])
		p.devices = append(p.devices, d)
	}
	for _, d := range p.devices {
		if err := p.describe(d); err != nil {
			return nil, err
		}
	}
	p.ranges = injectedRanges()
	return p, nil
}

// chosen returns the numbers that the driver gives to the devices to use.
func chosen(count int, choose func(count int) ([]int, error)) ([]int, error) {
	if choose == nil {
		choose = func(count int) ([]int, error) {
			all := make([]int, count)
			for i := range all {
				all[i] = i
			}
			return all, nil
		}
	}
	ordinals, err := choose(count)
	switch {
	case err != nil:
		return nil, err
	case len(ordinals) == 0:
		return nil, fmt.Errorf("%w: none of the driver's %d was chosen", cudart.ErrNoDevice, count)
	}
	for k, ordinal := range ordinals {
		if ordinal < 0 || ordinal >= count || slices.Contains(ordinals[:k], ordinal) {
			return nil, fmt.Errorf("driver: the devices %v were chosen; want different ones of 0 to %d", ordinals, count-1)
		}
	}
	return ordinals, nil
}

// describe reads a device's properties, none of which needs a context.
func (p *Platform) describe(d *device) error {
	name, uuid := new([256]byte), new([16]byte)
	s, _ := p.sequence(nil)
	defer s.release()
	s.callPointers(cuDeviceGetName, unsafe.Pointer(name), 256, uintptr(d.handle))
	s.callPointers(cuDeviceGetUuid, unsafe.Pointer(uuid), uintptr(d.handle))
	s.call(cuDeviceTotalMem, s.out(0), uintptr(d.handle))
	if err := s.run(); err != nil {
		return onDevice(err, d)
	}
	var failed error
	attribute := func(a uintptr) int {
		s.reset()
		s.outs[1] = 0
		s.call(cuDeviceGetAttribute, s.out(1), a, uintptr(d.handle))
		if err := s.run(); err != nil && failed == nil {
			failed = onDevice(err, d)
		}
		return int(int32(s.outs[1]))
	}
	d.info = cudart.Info{
		Name:               dl.Text(&name[0]),
		UUID:               fmt.Sprintf("GPU-%x-%x-%x-%x-%x", uuid[0:4], uuid[4:6], uuid[6:8], uuid[8:10], uuid[10:16]),
		Memory:             int64(s.outs[0]),
		Multiprocessors:    attribute(attrMultiprocessors),
		Capability:         [2]int{attribute(attrCapabilityMajor), attribute(attrCapabilityMinor)},
		ClockKHz:           attribute(attrClockRate),
		MemoryClockKHz:     attribute(attrMemoryClockRate),
		MemoryBusBits:      attribute(attrMemoryBusWidth),
		L2Bytes:            attribute(attrL2CacheSize),
		CopyEngines:        attribute(attrAsyncEngines),
		MaxThreadsPerBlock: attribute(attrMaxThreadsPerBlock),
		MaxBlock:           [3]int{attribute(attrMaxBlockX), attribute(attrMaxBlockX + 1), attribute(attrMaxBlockX + 2)},
		MaxGrid:            [3]int{attribute(attrMaxGridX), attribute(attrMaxGridX + 1), attribute(attrMaxGridX + 2)},
		ThreadsPerSM:       attribute(attrThreadsPerSM),
		BlocksPerSM:        attribute(attrBlocksPerSM),
		SharedPerBlock:     attribute(attrSharedPerBlock),
		SharedPerBlockMax:  attribute(attrSharedOptIn),
		SharedPerSM:        attribute(attrSharedPerSM),
		Driver:             versionText(p.lib.version),
		Peers:              make([]bool, len(p.devices)),
	}
	for i, other := range p.devices {
		if other == d {
			continue
		}
		s.reset()
		s.outs[1] = 0
		s.call(cuDeviceCanAccessPeer, s.out(1), uintptr(d.handle), uintptr(other.handle))
		if err := s.run(); err != nil {
			return onDevice(err, d)
		}
		d.info.Peers[i] = int32(s.outs[1]) != 0
	}
	return failed
}

// Name is "cuda".
func (p *Platform) Name() string { return "cuda" }

// Devices describes the GPUs in the driver's order, which CUDA_VISIBLE_DEVICES changes.
func (p *Platform) Devices() []cudart.Info {
	infos := make([]cudart.Info, len(p.devices))
	for i, d := range p.devices {
		infos[i] = d.info
	}
	return infos
}

// device finds a device by number.
func (p *Platform) device(number int32) (*device, error) {
	if number < 0 || int(number) >= len(p.devices) {
		return nil, fmt.Errorf("%w %d: there are %d, numbered from 0", cudart.ErrNoDevice, number, len(p.devices))
	}
	return p.devices[number], nil
}

// prepare retains a device's primary context when it is first needed.
func (p *Platform) prepare(d *device) error {
	if err := d.faulted(); err != nil {
		return err
	}
	if d.context.Load() != 0 {
		return nil
	}
	if p.closed.Load() {
		return errClosed
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.context.Load() != 0 {
		return nil
	}
	if p.closed.Load() { // in the meantime
		return errClosed
	}
	s, _ := p.sequence(nil)
	defer s.release()
	s.call(cuDevicePrimaryCtxRetain, s.out(0), uintptr(d.handle))
	var err error
	withVariable(queuesVariable, p.queues, func() { err = s.run() })
	if err != nil {
		return onDevice(err, d)
	}
	if err := p.adoptContext(d, uintptr(s.outs[0])); err != nil {
		s.reset()
		s.call(cuDevicePrimaryCtxRelease, uintptr(d.handle))
		s.run()
		return err
	}
	d.retained = true
	return nil
}

// Prepare makes the context of a device, which otherwise its first use does. That takes a tenth of a second, so a program that has other
// things to do first can call it in the background.
func (p *Platform) Prepare(number int32) error {
	d, err := p.device(number)
	if err != nil {
		return err
	}
	return p.prepare(d)
}

// adoptContext makes a context the one that is used on a device. The caller holds d.mu.
func (p *Platform) adoptContext(d *device, context uintptr) error {
	s := p.sequenceIn(context, d)
	defer s.release()
	s.call(cuCtxGetStreamPriorityRange, s.out(0), s.out(1))
	if err := s.run(); err != nil {
		return err
	}
	d.least, d.greatest = int32(s.outs[0]), int32(s.outs[1])
	d.context.Store(context)
	return nil
}

// MemoryInfo tells how much of a device's memory is free, for this process and others.
func (p *Platform) MemoryInfo(number int32) (free, total int64, err error) {
	d, err := p.device(number)
	if err != nil {
		return 0, 0, err
	}
	s, err := p.sequence(d)
	if err != nil {
		return 0, 0, err
	}
	defer s.release()
	s.call(cuMemGetInfo, s.out(0), s.out(1))
	if err := s.run(); err != nil {
		return 0, 0, err
	}
	return int64(s.outs[0]), int64(s.outs[1]), nil
}

// Synchronize waits for everything on a device. The driver has no query for a whole device. So if ctx ends first, the driver's own wait
// continues in the background until the device is done.
func (p *Platform) Synchronize(ctx context.Context, number int32) error {
	d, err := p.device(number)
	if err != nil {
		return err
	}
	s, err := p.sequence(d)
	if err != nil {
		return err
	}
	wait := func() error {
		defer s.release()
		s.call(cuCtxSynchronize)
		return s.run()
	}
	if ctx == nil || ctx.Done() == nil {
		return wait()
	}
	done := make(chan error, 1)
	go func() { done <- wait() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// EnablePeer lets kernels of one device access another device's memory. It succeeds if access is already enabled. Access is never disabled
// again.
func (p *Platform) EnablePeer(number, peer int32) error {
	d, err := p.device(number)
	if err != nil {
		return err
	}
	other, err := p.device(peer)
	if err != nil {
		return err
	}
	if d == other {
		return nil
	}
	if !d.info.Peers[peer] {
		return fmt.Errorf("%w: device %d cannot access the memory of device %d", cudart.ErrUnsupported, number, peer)
	}
	if err := p.prepare(other); err != nil {
		return err
	}
	s, err := p.sequence(d)
	if err != nil {
		return err
	}
	defer s.release()
	s.call(cuCtxEnablePeerAccess, other.context.Load(), 0)
	if err := s.run(); err != nil && !isCode(err, codePeerAlreadyEnabled) {
		return err
	}
	return nil
}

// Live counts what has been made and not yet closed.
func (p *Platform) Live() cudart.Live {
	return cudart.Live{
		Memory:  int(p.live.memory.Load()),
		Streams: int(p.live.streams.Load()),
		Events:  int(p.live.events.Load()),
		Modules: int(p.live.modules.Load()),
		Lists:   int(p.live.lists.Load()),
		Graphs:  int(p.live.graphs.Load()),
	}
}

// Queues returns how many hardware queues are asked for, 0 if the environment holds something that is no number.
func (p *Platform) Queues() int {
	n, err := strconv.Atoi(p.queues)
	if err != nil {
		return 0
	}
	return n
}

// sequence starts a sequence on a device, or without a context if d is nil.
func (p *Platform) sequence(d *device) (*sequence, error) {
	context := uintptr(0)
	if d != nil {
		if err := p.prepare(d); err != nil {
			return nil, err
		}
		context = d.context.Load()
	}
	return p.sequenceIn(context, d), nil
}

// sequenceIn starts a sequence in a context, or without one if that is 0.
func (p *Platform) sequenceIn(context uintptr, d *device) *sequence {
	s := p.sequences.Get().(*sequence)
	s.begin(p.lib, d, context, &p.sequences)
	return s
}

// dispose makes a call that frees something. After a fault there is nothing left to free.
func (p *Platform) dispose(d *device, f function, handle uintptr) error {
	if d.fault.Load() != nil || p.closed.Load() {
		return nil
	}
	s, err := p.sequence(d)
	if err != nil {
		return err
	}
	defer s.release()
	s.call(f, handle)
	return s.run()
}

// communicators are this rank's connections to others.
type communicators struct {
	lib    *nccl.Library
	p      *Platform
	world  *world.World
	d      *device
	group  map[dag.Among]nccl.Comm // this rank's groups of ranks, and all ranks
	order  []nccl.Comm             // as they were made
	direct *direct                 // nil where ranks do not reach each other's memory

	end     chan struct{} // closed by Close
	watched sync.WaitGroup

	mu        sync.Mutex
	broken    bool // communicators can only be aborted
	aborted   bool
	abandoned bool // a call into NCCL does not return
}

// handleBytes is the size of CUipcMemHandle.
const handleBytes = 64

// memHandle is what another process needs to reach device memory.
type memHandle [handleBytes]byte

// direct is what direct all-reduces need; nil where they are not possible.
type direct struct {
	p       *Platform
	d       *device
	ranks   int
	own     int
	control [directMost]uintptr // the control memory of each rank
	rounds  uintptr             // how many rounds each block has made, of large all-reduces and of small ones
	stop    cudart.Ptr          // a word on the host: 1 when communication ends early
	shared  []sharedMemory
	kernels map[directKind]uintptr
	modules []uintptr
}

// sharedMemory is memory of this rank, and the memory that each other rank shared with it.
type sharedMemory struct {
	start cudart.Ptr
	bytes int64
	of    [directMost]uintptr // by rank, this one's own included
}

type directKind struct {
	dtype     dag.DType
	reduction dag.Reduction
	small     bool
}
