// Storage: allocates the buffers of one replay in flight.

package engine

import (
	"errors"
	"fmt"
	"sort"
	"strings"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/internal/words"
	"github.com/dagrun/dagrun/planner/plan"
)

// MemoryMode says how device buffers get their bytes.
type MemoryMode uint8

const (
	// Arena puts all buffers of a device into one allocation, as planned. Buffers that are never alive together share bytes.
	Arena MemoryMode = iota
	// Separate gives every buffer its own allocation, so that memory checkers see where each buffer ends.
	Separate
)

// alignment of device buffers, the same as that of cuMemAlloc.
const alignment = 256

// storage is the memory of one instance, with an address for every buffer.
type storage struct {
	platform cudart.Platform
	address  []cudart.Ptr // by buffer
	owned    []cudart.Ptr // allocations on the host, in the order they were made
	taken    []cudart.Ptr // and on devices
	pinned   []cudart.Ptr // memory of the caller that was registered here
	arenas   []cudart.Ptr // by device, 0 where there is none; with separate memory there are none at all
	room     []int64      // bytes of each
	device   int64        // bytes allocated on devices
	host     int64        // bytes allocated on the host
}

// newStorage allocates memory for every buffer. bound holds the caller's memory by buffer; nil if there is none.
func newStorage(platform cudart.Platform, g *dag.Graph, p *plan.Plan, mode MemoryMode, bound map[dag.BufferID][]byte) (*storage, error) {
	s := &storage{platform: platform, address: make([]cudart.Ptr, len(g.Buffers))}
	err := s.takeDevice(g, p, mode)
	for i := 0; err == nil && i < len(g.Buffers); i++ {
		if g.Buffers[i].Place == dag.Host {
			err = s.takeHost(dag.BufferID(i), &g.Buffers[i], bound[dag.BufferID(i)])
		}
	}
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

func (s *storage) takeHost(id dag.BufferID, b *dag.Buffer, bound []byte) error {
	if bound != nil {
		address, err := s.platform.RegisterHost(bound)
		if err != nil {
			return fmt.Errorf("buffer %q: pin the caller's memory: %w", b.Name, err)
		}
		s.pinned = append(s.pinned, address)
		s.address[id] = address
		return nil
	}
	address, err := s.platform.AllocHost(b.Bytes, b.Pageable)
	if err != nil {
		return fmt.Errorf("buffer %q: %s of host memory: %w", b.Name, words.Bytes(b.Bytes), err)
	}
	s.owned = append(s.owned, address)
	s.host += b.Bytes
	s.address[id] = address
	return nil
}

func (s *storage) takeDevice(g *dag.Graph, p *plan.Plan, mode MemoryMode) error {
	needs := DeviceBytes(g, p, mode)
	take := func(device int32, bytes int64) (cudart.Ptr, error) {
		address, err := s.platform.Alloc(device, bytes)
		if errors.Is(err, cudart.ErrOutOfMemory) {
			free, _, freeErr := s.platform.MemoryInfo(device)
			if freeErr != nil {
				free = -1
			}
			return 0, &OutOfMemoryError{Device: device, Needed: needs[device], Free: free, Largest: largest(g, device), Err: err}
		}
		if err != nil {
			return 0, err
		}
		s.taken = append(s.taken, address)
		s.device += bytes
		return address, nil
	}
	if mode == Separate {
		for i := range g.Buffers {
			b := &g.Buffers[i]
			if !b.InArena() {
				continue
			}
			address, err := take(b.Device, b.Bytes)
			if err != nil {
				return err
			}
			s.address[i] = address
		}
		return nil
	}
	s.arenas, s.room = make([]cudart.Ptr, len(needs)), needs
	for device, bytes := range needs {
		if bytes == 0 {
			continue
		}
		base, err := take(int32(device), bytes)
		if err != nil {
			return err
		}
		s.arenas[device] = base
	}
	s.lay(p)
	return nil
}

// lay gives every device buffer the address in the arenas that the plan says. Separate memory stays where it is.
func (s *storage) lay(p *plan.Plan) {
	if s.arenas == nil {
		return
	}
	for _, m := range p.Memory {
		s.address[m.Buffer] = s.arenas[m.Device] + cudart.Ptr(m.Offset)
	}
}

func (s *storage) close() error {
	var errs []error
	for _, address := range s.pinned {
		errs = append(errs, s.platform.UnregisterHost(address))
	}
	for _, address := range s.owned {
		errs = append(errs, s.platform.Free(address))
	}
	s.pinned, s.owned = nil, nil
	return errors.Join(append(errs, s.freeDevice())...)
}

// freeDevice frees what lies on devices.
func (s *storage) freeDevice() error {
	var errs []error
	for _, address := range s.taken {
		errs = append(errs, s.platform.Free(address))
	}
	s.taken = nil
	return errors.Join(errs...)
}

// DeviceBytes returns how many bytes one instance needs on each device.
func DeviceBytes(g *dag.Graph, p *plan.Plan, mode MemoryMode) []int64 {
	var needs []int64
	at := func(device int32) *int64 {
		for int(device) >= len(needs) {
			needs = append(needs, 0)
		}
		return &needs[device]
	}
	if mode == Separate {
		for i := range g.Buffers {
			if b := &g.Buffers[i]; b.InArena() {
				*at(b.Device) += (b.Bytes + alignment - 1) / alignment * alignment
			}
		}
		return needs
	}
	for _, m := range p.Memory {
		need := at(m.Device)
		*need = max(*need, m.Offset+m.Bytes)
	}
	return needs
}

// BufferSize is a buffer and its bytes, for messages.
type BufferSize struct {
	Name  string
	Bytes int64
}

// largest returns a device's biggest buffers, at most five.
func largest(g *dag.Graph, device int32) []BufferSize {
	return largestOf(g, func(b *dag.Buffer) bool { return b.InArena() && b.Device == device })
}

func largestOf(g *dag.Graph, counts func(b *dag.Buffer) bool) []BufferSize {
	var sizes []BufferSize
	for i := range g.Buffers {
		if b := &g.Buffers[i]; counts(b) {
			sizes = append(sizes, BufferSize{b.Name, b.Bytes})
		}
	}
	sort.SliceStable(sizes, func(i, j int) bool { return sizes[i].Bytes > sizes[j].Bytes })
	return sizes[:min(5, len(sizes))]
}

// OutOfMemoryError tells how much memory a program needed and how much was free. It matches cudart.ErrOutOfMemory.
type OutOfMemoryError struct {
	Device  int32 // -1: the host
	Needed  int64 // bytes that the program needs there
	Free    int64 // bytes that were free; -1 if unknown
	Largest []BufferSize
	Err     error
}

func (e *OutOfMemoryError) Error() string {
	var b strings.Builder
	where, need := fmt.Sprintf("device %d", e.Device), "the program needs"
	if e.Device < 0 {
		where, need = "the host", "the run needs, with its results,"
	}
	fmt.Fprintf(&b, "%s is out of memory: %s %s", where, need, words.Bytes(e.Needed))
	if e.Free >= 0 {
		fmt.Fprintf(&b, ", %s are free", words.Bytes(e.Free))
	}
	separator := "; largest buffers: "
	for _, s := range e.Largest {
		fmt.Fprintf(&b, "%s%s %s", separator, s.Name, words.Bytes(s.Bytes))
		separator = ", "
	}
	return b.String()
}

func (e *OutOfMemoryError) Unwrap() error { return e.Err }
