// Direct all-reduces: ranks of one machine whose GPUs reach each other's memory combine their elements with a kernel of dagrun, not of NCCL. It has less
// latency, and takes fewer multiprocessors from the kernels beside it.

package driver

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"unsafe"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/internal/dl"
	"github.com/dagrun/dagrun/kernels/launch"
)

// directVariable disables direct all-reduces, on all ranks, if it is "off" on one.
const directVariable = "DAGRUN_DIRECT"

// directLeast is how many bytes a direct all-reduce has at least, unless it is a small one: of fewer, NCCL is as fast.
const directLeast = 1 << 20

// openDirect finds out whether all ranks reach each other's memory. All ranks call it.
func (c *communicators) openDirect(ctx context.Context) error {
	place := c.world.Place()
	x := &direct{p: c.p, d: c.d, ranks: place.Ranks, own: place.Rank, kernels: map[directKind]uintptr{}}
	var err error
	if x.possible() {
		err = x.prepare()
	} else {
		err = cudart.ErrUnsupported
	}
	ok, failed := x.exchange(ctx, c, cudart.Ptr(x.control[x.own]), err == nil, &x.control)
	if failed != nil {
		return failed
	}
	if !ok {
		return x.close()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.direct = x
	if c.aborted {
		x.end()
	}
	return nil
}

func (x *direct) possible() bool {
	return os.Getenv(directVariable) != "off" && !peersOff() && runtime.GOOS == "linux" && x.ranks >= 2 && x.ranks <= directMost && x.d.info.Capability[0] >= 7
}

// peersOff reports whether the user keeps NCCL from reaching the memory of other GPUs, as on machines where that does not work.
func peersOff() bool {
	disable, level := os.Getenv("NCCL_P2P_DISABLE"), os.Getenv("NCCL_P2P_LEVEL")
	return disable != "" && disable != "0" || level == "LOC" || level == "0"
}

// prepare allocates this rank's control memory, in which the slots of small all-reduces come last, and what else its kernels need. Memory that is shared
// is of whole units of 2 MiB, so that the driver shares nothing else with it.
func (x *direct) prepare() error {
	const unit = 2 << 20
	bytes := uintptr(directControl+smallSlots(x.ranks)+unit-1) / unit * unit
	s, err := x.p.sequence(x.d)
	if err != nil {
		return err
	}
	defer s.release()
	s.call(cuMemAlloc, s.out(0), bytes)
	s.call(cuMemAlloc, s.out(1), 4*(directBlocks+smallBlocks))
	s.call(cuMemHostAlloc, s.out(2), 4, memHostPortable)
	err = s.run()
	x.control[x.own], x.rounds, x.stop = uintptr(s.outs[0]), uintptr(s.outs[1]), cudart.Ptr(s.outs[2])
	if err != nil {
		return err
	}
	*x.word() = 0
	z, err := x.p.sequence(x.d)
	if err != nil {
		return err
	}
	defer z.release()
	z.call(cuMemsetD8Async, x.control[x.own], 0, bytes, 0)
	z.call(cuMemsetD8Async, x.rounds, 0, 4*(directBlocks+smallBlocks), 0)
	z.call(cuCtxSynchronize)
	return z.run()
}

// word is the word that stops kernels which wait for other ranks.
func (x *direct) word() *uint32 { return (*uint32)(*(*unsafe.Pointer)(unsafe.Pointer(&x.stop))) }

// machine tells machines apart, and systems that have been started again.
func machine() string {
	id, _ := os.ReadFile("/proc/sys/kernel/random/boot_id") // without one, no two ranks share memory
	return strings.TrimSpace(string(id))
}

// directOffer is what a rank says of memory that it shares.
type directOffer struct {
	Machine string `json:"machine"`
	Handle  string `json:"handle"` // "" if it cannot be shared
}

// exchange brings memory of all ranks to all. It reports false if one of them cannot reach that of another; none has it then.
func (x *direct) exchange(ctx context.Context, c *communicators, memory cudart.Ptr, willing bool, of *[directMost]uintptr) (bool, error) {
	own := directOffer{Machine: machine()}
	if willing {
		if handle, err := x.export(memory); err == nil {
			own.Handle = hex.EncodeToString(handle[:])
		}
	}
	text, err := json.Marshal(own)
	if err != nil {
		return false, err
	}
	texts, err := c.world.Barrier(ctx, "share memory", string(text))
	if err != nil {
		return false, err
	}
	opened := x.open(texts, own, uintptr(memory), of)
	answers, err := c.world.Barrier(ctx, "memory is shared", fmt.Sprint(opened))
	if err != nil {
		return false, err
	}
	for _, a := range answers {
		opened = opened && a == "true"
	}
	if !opened {
		x.forget(of)
	}
	return opened, nil
}

// open opens the memory that other ranks have offered, and reports whether it could open all.
func (x *direct) open(texts []string, own directOffer, memory uintptr, of *[directMost]uintptr) bool {
	if own.Handle == "" || own.Machine == "" || len(texts) != x.ranks {
		return false
	}
	of[x.own] = memory
	for rank, text := range texts {
		if rank == x.own {
			continue
		}
		var offer directOffer
		handle := new(memHandle)
		if json.Unmarshal([]byte(text), &offer) != nil || offer.Machine != own.Machine || len(offer.Handle) != hex.EncodedLen(handleBytes) {
			return false
		}
		if _, err := hex.Decode(handle[:], []byte(offer.Handle)); err != nil {
			return false
		}
		at, err := x.reach(handle)
		if err != nil {
			return false
		}
		of[rank] = at
	}
	return true
}

// export makes the handle of memory.
func (x *direct) export(memory cudart.Ptr) (*memHandle, error) {
	handle := new(memHandle)
	return handle, x.p.inContext(x.d, func() error {
		return x.result(cuIpcGetMemHandle, dl.CallWith(x.p.lib.address[cuIpcGetMemHandle], dl.Pointer(handle), dl.Number(uintptr(memory))))
	})
}

// reach opens the memory of another rank.
func (x *direct) reach(handle *memHandle) (uintptr, error) {
	const lazilyEnablePeers = 1
	at := new(uintptr)
	args := []dl.Argument{dl.Pointer(at)}
	switch runtime.GOARCH {
	case "amd64": // a structure of this size is passed on the stack, after the arguments in the six registers
		args = append(args, dl.Number(lazilyEnablePeers), dl.Number(0), dl.Number(0), dl.Number(0), dl.Number(0))
		for k := 0; k < handleBytes; k += 8 {
			args = append(args, dl.Number(*(*uintptr)(unsafe.Pointer(&handle[k]))))
		}
	default: // its address is passed
		args = append(args, dl.Pointer(handle), dl.Number(lazilyEnablePeers))
	}
	err := x.p.inContext(x.d, func() error {
		return x.result(cuIpcOpenMemHandle, dl.CallWith(x.p.lib.address[cuIpcOpenMemHandle], args...))
	})
	return *at, err
}

func (x *direct) result(f function, code uint32) error {
	if code == 0 {
		return nil
	}
	return onDevice(x.p.lib.failure(f, uint64(code)), x.d)
}

// forget closes the memory of other ranks.
func (x *direct) forget(of *[directMost]uintptr) {
	for rank, at := range of[:x.ranks] {
		if rank != x.own && at != 0 {
			_ = x.p.dispose(x.d, cuIpcCloseMemHandle, at) // nothing needs it any more
			of[rank] = 0
		}
	}
}

// Share lets the other ranks reach memory of Alloc, so that all-reduces in it are direct where they can be. All ranks call it the same number of
// times; one without such memory gives 0.
func (p *Platform) Share(ctx context.Context, memory cudart.Ptr, bytes int64) error {
	c := p.comms
	if c == nil || c.direct == nil {
		return nil
	}
	x := c.direct
	one := sharedMemory{start: memory, bytes: bytes}
	ok, err := x.exchange(ctx, c, memory, memory != 0 && bytes >= 2<<20, &one.of)
	if err != nil {
		return err
	}
	if ok {
		x.shared = append(x.shared, one)
	}
	return nil
}

// unshare closes what other ranks shared together with memory that is about to be freed.
func (x *direct) unshare(memory cudart.Ptr) {
	if x == nil {
		return
	}
	for k := range x.shared {
		if x.shared[k].start == memory {
			x.forget(&x.shared[k].of)
			x.shared = slices.Delete(x.shared, k, k+1)
			return
		}
	}
}

// sharedWith returns the shared memory that holds some bytes, nil for none.
func (x *direct) sharedWith(ptr cudart.Ptr, bytes int64) *sharedMemory {
	for k := range x.shared {
		if m := &x.shared[k]; ptr >= m.start && int64(ptr-m.start)+bytes <= m.bytes {
			return m
		}
	}
	return nil
}

// fits reports whether a communication is direct. All ranks come to the same answer: they share the same memory, and pipelines keep what
// communicates in it. NCCL does buckets: it overlaps what is in one of its groups.
func (x *direct) fits(t *cudart.Communication) bool {
	if x == nil || t.Verb != dag.AllReduce || directOperations[t.DType][t.Reduction] == "" || int(t.Group.Count) != x.ranks || len(t.More) > 0 || t.SrcBytes == 0 {
		return false
	}
	if x.small(t.SrcBytes) {
		return true
	}
	m := x.sharedWith(t.Src, t.SrcBytes)
	return t.SrcBytes >= directLeast && m != nil && m == x.sharedWith(t.Dst, t.DstBytes)
}

// small reports whether a direct all-reduce is one in which each rank writes all of its elements to all others.
func (x *direct) small(bytes int64) bool { return bytes*int64(x.ranks-1) <= directSmall }

// add appends the row of a direct all-reduce.
func (x *direct) add(l *submitter, memory *arena, owner int32, c *checked) error {
	kind, blocks, args := x.launch(c.Communication)
	function, err := x.kernel(kind)
	if err != nil {
		return err
	}
	values := make([]cudart.Value, len(args))
	for k, n := range args {
		values[k].Bits = uint64(n)
	}
	params, _, err := packArgs(memory, values)
	if err != nil {
		return err
	}
	l.add(x.p, cuLaunchKernel, owner, function, blocks, 1, 1, directThreads, 1, 1, 0, c.stream.handle, params, 0)
	return nil
}

// launch returns which kernel a direct all-reduce takes, its blocks, and its arguments.
func (x *direct) launch(t *cudart.Communication) (directKind, uintptr, []int64) {
	if x.small(t.SrcBytes) {
		return directKind{t.DType, t.Reduction, true}, smallGrid(t.SrcBytes), x.slots(t)
	}
	return directKind{t.DType, t.Reduction, false}, directBlocks, x.large(t)
}

// large returns the arguments of the kernel in which each rank combines its part of the elements.
func (x *direct) large(t *cudart.Communication) []int64 {
	m := x.sharedWith(t.Src, t.SrcBytes)
	size := t.DType.Size()
	first, count := directPart(t.SrcBytes/size, x.ranks, x.own)
	args := []int64{int64(t.Src - m.start), int64(t.Dst - m.start), first * size, count, int64(x.rounds), int64(x.stop)}
	for r := range x.ranks {
		args = append(args, int64(m.of[r]), int64(x.control[r]))
	}
	return args
}

// slots returns the arguments of the kernel of small all-reduces.
func (x *direct) slots(t *cudart.Communication) []int64 {
	args := []int64{int64(t.Src), int64(t.Dst), t.SrcBytes / t.DType.Size(), int64(x.rounds) + 4*directBlocks, int64(x.stop)}
	for r := range x.ranks {
		args = append(args, int64(x.control[r])+directControl)
	}
	return args
}

// kernel returns the kernel for a type and an operation, which is loaded when it is first needed.
func (x *direct) kernel(kind directKind) (uintptr, error) {
	if f, ok := x.kernels[kind]; ok {
		return f, nil
	}
	module, err := x.p.loadImage(x.d, "of direct all-reduces", launch.PTX, []byte(x.code(kind)))
	if err != nil {
		return 0, err
	}
	x.modules = append(x.modules, module)
	function, err := x.p.findKernel(x.d, module, directEntry)
	if err != nil {
		return 0, fmt.Errorf("the module of direct all-reduces: %w", err)
	}
	x.kernels[kind] = function
	return function, nil
}

// code returns the kernel's PTX.
func (x *direct) code(kind directKind) string {
	if kind.small {
		return smallCode(x.ranks, x.own, kind.dtype, kind.reduction)
	}
	return directCode(x.ranks, x.own, kind.dtype, kind.reduction)
}

// end stops kernels that wait for other ranks.
func (x *direct) end() {
	if x != nil && x.stop != 0 {
		*x.word() = 1
	}
}

// close gives everything back. Nothing of it may be running.
func (x *direct) close() error {
	if x == nil {
		return nil
	}
	var errs []error
	for k := range x.shared {
		x.forget(&x.shared[k].of)
	}
	x.forget(&x.control)
	for _, module := range x.modules {
		errs = append(errs, x.p.dispose(x.d, cuModuleUnload, module))
	}
	for _, at := range []uintptr{x.control[x.own], x.rounds} {
		if at != 0 {
			errs = append(errs, x.p.dispose(x.d, cuMemFree, at))
		}
	}
	if x.stop != 0 {
		errs = append(errs, x.p.dispose(x.d, cuMemFreeHost, uintptr(x.stop)))
	}
	return errors.Join(errs...)
}
