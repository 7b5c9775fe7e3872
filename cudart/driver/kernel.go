// Kernels, and the vendors' libraries whose calls stand in for kernels: attributes, and what can be changed. Launches are rows of a list or nodes of a graph.

package driver

import (
	"fmt"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/cudart/libraries"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/kernels/launch"
)

// kernel is a CUfunction.
type kernel struct {
	p          *Platform
	closed     *atomic.Bool // its module is closed
	d          *device
	entry      string
	handle     uintptr
	attributes cudart.KernelAttributes
	call       *callModule // nil unless it is a call of a vendor's library
	mu         sync.Mutex
	dynamic    uint32 // dynamic shared memory that launches may use
}

// callModule is a vendor's library on a device. Its streams only capture.
type callModule struct {
	p       *Platform
	d       *device
	code    *launch.Module
	closed  atomic.Bool
	mu      sync.Mutex // one call at a time
	session *libraries.Session
	streams map[dag.Priority]*stream // a captured kernel keeps the priority of its stream
}

// read asks for the attributes. On drivers that have no function for it, this also loads the kernel. params is how many
// parameters there are, -1 if that is not known.
func (k *kernel) read(params int) error {
	s, err := k.p.sequence(k.d)
	if err != nil {
		return err
	}
	defer s.release()
	values := new([7]int32)
	if k.p.lib.address[cuFuncLoad] != 0 {
		s.call(cuFuncLoad, k.handle)
	}
	for i, attribute := range [7]uintptr{functionMaxThreads, functionRegisters, functionSharedStatic, functionLocal,
		functionPTXVersion, functionBinaryVersion, functionMaxDynamic} {
		s.callPointers(cuFuncGetAttribute, unsafe.Pointer(&values[i]), attribute, k.handle)
	}
	if err := s.run(); err != nil {
		return err
	}
	k.attributes = cudart.KernelAttributes{
		MaxThreads: int(values[0]), Registers: int(values[1]), SharedStatic: int(values[2]), Local: int(values[3]),
		PTXVersion: int(values[4]), BinaryVersion: int(values[5]), ParamSizes: k.paramSizes(params),
	}
	k.dynamic = uint32(max(values[6], 0))
	return nil
}

// paramSizes asks for the size of each parameter; nil if the driver does not tell. If the number of parameters is not known, it asks until
// the driver returns an error, which tools that check for errors report.
func (k *kernel) paramSizes(params int) []int {
	if k.p.lib.address[cuFuncGetParamInfo] == 0 {
		return nil
	}
	sizes := []int{}
	for len(sizes) != params {
		s, err := k.p.sequence(k.d)
		if err != nil {
			return nil
		}
		s.call(cuFuncGetParamInfo, k.handle, uintptr(len(sizes)), s.out(0), s.out(1))
		code, _ := s.callAll()
		size := int(s.outs[1])
		s.release()
		switch code {
		case 0:
			sizes = append(sizes, size)
		case codeInvalidValue:
			return sizes
		default:
			return nil
		}
	}
	return sizes
}

// Attributes returns the properties of the kernel as compiled for its device.
func (k *kernel) Attributes() cudart.KernelAttributes { return k.attributes }

// Occupancy returns the block size that keeps most threads resident, and how many such blocks fit on a multiprocessor.
func (k *kernel) Occupancy(shared uint32) (block uint32, blocksPerSM int, err error) {
	s, err := k.p.sequence(k.d)
	if err != nil {
		return 0, 0, err
	}
	s.call(cuOccupancyMaxPotentialBlockSize, s.out(0), s.out(1), k.handle, 0, uintptr(shared), 0)
	err = s.run()
	size := uint32(s.outs[1])
	s.release()
	if err != nil {
		return 0, 0, fmt.Errorf("kernel %s: %w", k.entry, err)
	}
	if s, err = k.p.sequence(k.d); err != nil {
		return 0, 0, err
	}
	defer s.release()
	s.call(cuOccupancyMaxActiveBlocksPerMultiprocessor, s.out(0), k.handle, uintptr(size), uintptr(shared))
	if err := s.run(); err != nil {
		return 0, 0, fmt.Errorf("kernel %s: %w", k.entry, err)
	}
	return size, int(uint32(s.outs[0])), nil
}

// SetMaxShared opts in to this much dynamic shared memory. That is required above 48 KiB.
func (k *kernel) SetMaxShared(bytes uint32) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if bytes <= k.dynamic {
		return nil
	}
	if limit := k.d.info.SharedPerBlockMax - k.attributes.SharedStatic; int(bytes) > limit {
		return fmt.Errorf("kernel %s: %d bytes of dynamic shared memory; device %d allows %d (%d a block, %d of them static)",
			k.entry, bytes, k.d.number, limit, k.d.info.SharedPerBlockMax, k.attributes.SharedStatic)
	}
	s, err := k.p.sequence(k.d)
	if err != nil {
		return err
	}
	defer s.release()
	s.call(cuFuncSetAttribute, k.handle, functionMaxDynamic, uintptr(bytes))
	if err := s.run(); err != nil {
		return fmt.Errorf("kernel %s: %w", k.entry, err)
	}
	k.dynamic = bytes
	return nil
}

// fitsTogether refuses a cooperative launch whose blocks cannot all run at once.
func (k *kernel) fitsTogether(grid [3]uint32, threads, shared uint32) error {
	s, err := k.p.sequence(k.d)
	if err != nil {
		return err
	}
	defer s.release()
	s.call(cuOccupancyMaxActiveBlocksPerMultiprocessor, s.out(0), k.handle, uintptr(threads), uintptr(shared))
	if err := s.run(); err != nil {
		return fmt.Errorf("kernel %s: %w", k.entry, err)
	}
	most := uint64(uint32(s.outs[0])) * uint64(k.d.info.Multiprocessors)
	if blocks := uint64(grid[0]) * uint64(grid[1]) * uint64(grid[2]); blocks > most {
		return fmt.Errorf("kernel %s: a cooperative launch of %d blocks of %d threads; at most %d such blocks run at once on device %d", k.entry, blocks,
			threads, most, k.d.number)
	}
	return nil
}
