// Commands of the CPU device: checked once, with their memory looked up, ready to run.

package host

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"unsafe"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/cudart/host/simt"
	"github.com/dagrun/dagrun/kernels/conditions"
	"github.com/dagrun/dagrun/kernels/launch"
)

// encode fills c from a command, and checks everything that can be checked before it is submitted.
func (p *Platform) encode(c *command, from *cudart.Command, index int) *cudart.Error {
	*c = command{
		platform: p, kind: from.Kind, name: from.Call(), priority: from.Priority, width: from.Width, node: from.Node, index: index, label: from.Label,
		dst: from.Dst, src: from.Src, devices: [2]int32{from.DstDevice, from.SrcDevice}, bytes: from.Bytes, pattern: from.Pattern,
		accesses: from.Accesses, rows: from.Rows, pitches: [2]int64{from.DstPitch, from.SrcPitch},
	}
	if c.kind == cudart.SetMemory && c.width != 1 && c.width != 2 && c.width != 4 {
		c.width = 1
		return c.fail(invalidValue, "the pattern has %d bytes; only 1, 2 and 4 are possible", from.Width)
	}
	if from.Stream != nil {
		s, ok := from.Stream.(*stream)
		if !ok || s.queue.platform != p {
			return c.fail(invalidHandle, "the stream belongs to another platform")
		}
		c.stream, c.device = s, s.queue.device
	}
	switch c.kind {
	case cudart.RecordEvent, cudart.WaitEvent:
		e, ok := from.Event.(*event)
		if !ok || e.platform != p {
			return c.fail(invalidHandle, "the event belongs to another platform")
		}
		e.mu.Lock()
		closed := e.closed
		e.mu.Unlock()
		if closed {
			return c.fail(invalidHandle, "the event is closed")
		}
		c.event = e
	case cudart.LaunchKernel:
		k, ok := from.Kernel.(*kernel)
		if !ok || k.module.platform != p {
			return c.fail(invalidHandle, "the kernel belongs to another platform")
		}
		if k.module.closed.Load() {
			return c.fail(invalidHandle, "module %q is closed", k.module.source.Name)
		}
		c.kernel = k
		if c.device == nil {
			c.device = k.module.device
		}
		c.call = launch.Call{Shared: from.Shared, Block: from.Block}
		c.together, c.cluster = from.Cooperative, from.Cluster
		return c.setArgs(from.Grid, from.Args)
	case cudart.CopyMemory, cudart.SetMemory:
		c.pageable = c.kind == cudart.CopyMemory && (from.SrcPageable || from.DstPageable)
		if problem := from.RowProblem(); problem != "" && c.bytes >= 0 {
			return c.fail(invalidValue, "%s", problem)
		}
		return c.setCopy(from.Dst, from.Src)
	case cudart.Communicate:
		return c.setCommunication(from.Communication)
	case cudart.RunBodies:
		return c.setConditional(from)
	case cudart.RunHost:
		return c.setFunction(from.Host)
	case cudart.Empty, cudart.RangePush, cudart.RangePop:
	default:
		return c.fail(invalidValue, "there is no kind of command %d", c.kind)
	}
	return nil
}

// setArgs gives a launch its grid and arguments.
func (c *command) setArgs(grid [3]uint32, args []cudart.Value) *cudart.Error {
	if problem := cudart.MemberProblem(args); problem != "" {
		return c.fail(invalidValue, "%s", problem)
	}
	c.args = slices.Clone(args)
	c.call.Grid = grid
	c.call.Args = make([]launch.Arg, len(args))
	c.uses = nil
	for i, v := range args {
		if !v.Pointer {
			c.call.Args[i] = launch.Arg{Bits: v.Bits}
			continue
		}
		c.call.Args[i] = launch.Arg{Bits: uint64(v.Ptr), Bytes: v.Bytes}
		if v.Bytes > 0 {
			c.uses = append(c.uses, use{ptr: v.Ptr, bytes: v.Bytes, arg: i})
		}
	}
	c.resolve()
	c.nothing = grid[0] == 0 || grid[1] == 0 || grid[2] == 0
	return c.kernel.refuse(c)
}

// changeArgs gives an encoded launch other arguments. The declared accesses move with the arguments that hold them.
func (c *command) changeArgs(grid [3]uint32, args []cudart.Value) *cudart.Error {
	old := c.args
	if len(args) != len(old) {
		return c.fail(invalidValue, "the launch was encoded with %d arguments, but %d are given", len(old), len(args))
	}
	c.accesses = slices.Clone(c.accesses)
	for i := range c.accesses {
		a := &c.accesses[i]
		for j, v := range old {
			if v.Pointer && args[j].Pointer && a.Ptr >= v.Ptr && a.Ptr+cudart.Ptr(a.Strip().Span()) <= v.Ptr+cudart.Ptr(v.Bytes) {
				a.Ptr += args[j].Ptr - v.Ptr
				break
			}
		}
	}
	return c.setArgs(grid, args)
}

// setCopy gives a copy or a set its addresses.
func (c *command) setCopy(dst, src cudart.Ptr) *cudart.Error {
	c.dst, c.src = dst, src
	c.uses, c.blocking = nil, c.pageable
	c.accesses = c.moves()
	if c.bytes < 0 {
		return c.fail(invalidValue, "%d bytes", c.bytes)
	}
	if c.kind == cudart.SetMemory && (c.bytes%int64(c.width) != 0 || uint64(dst)%uint64(c.width) != 0) {
		return c.fail(invalidValue, "%d bytes at an address that is a multiple of %d: both must be multiples of the pattern's %d bytes",
			c.bytes, uint64(dst)&-uint64(dst), c.width)
	}
	if c.nothing = c.bytes == 0; c.nothing {
		return nil
	}
	c.uses = append(c.uses, use{ptr: dst, bytes: c.strip(0).Span(), arg: destination})
	if c.kind == cudart.CopyMemory {
		c.uses = append(c.uses, use{ptr: src, bytes: c.strip(1).Span(), arg: source})
	}
	if c.kind == cudart.CopyMemory && c.platform.order != nil && c.strip(0).Overlaps(c.strip(1)) {
		return c.fail(invalidValue, "source and destination overlap; on a device the result of such a copy is undefined")
	}
	c.resolve()
	hosts := 0
	for i, u := range c.uses {
		if u.memory == nil {
			continue
		}
		if u.memory.device != c.devices[i] {
			return c.fail(invalidValue, "%v was declared to be %s, but lies in %v", u.describe(), deviceName(c.devices[i]), u.memory)
		}
		if u.memory.device < 0 {
			hosts++
		}
		if u.memory.place == pageable && c.kind == cudart.CopyMemory {
			c.blocking = true
		}
	}
	if hosts == 2 {
		c.blocking = true // the host makes copies within host memory
	}
	return nil
}

// strip returns the destination of a copy or a set, 0, or the source, 1.
func (c *command) strip(side int) cudart.Strip {
	return cudart.Strip{Ptr: [2]cudart.Ptr{c.dst, c.src}[side], Bytes: c.bytes, Rows: c.rows, Pitch: c.pitches[side]}
}

// moves returns the actual accesses of a copy or a set, with the names of the declared ones.
func (c *command) moves() []cudart.Access {
	moves := []cudart.Access{
		{Ptr: c.src, Bytes: c.bytes, Rows: c.rows, Pitch: c.pitches[1]},
		{Ptr: c.dst, Bytes: c.bytes, Rows: c.rows, Pitch: c.pitches[0], Write: true},
	}
	if c.kind == cudart.SetMemory {
		moves = moves[1:]
	}
	for i := range moves {
		for _, a := range c.accesses {
			if a.Write == moves[i].Write {
				moves[i].Name, moves[i].Offset = a.Name, a.Offset
				break
			}
		}
	}
	return moves
}

func deviceName(id int32) string {
	if id < 0 {
		return "in host memory"
	}
	return fmt.Sprintf("on device %d", id)
}

func (u use) describe() string {
	switch u.arg {
	case destination:
		return "the destination"
	case source:
		return "the source"
	}
	return fmt.Sprintf("argument %d", u.arg)
}

// usable checks that every range lies in live memory that the command's device may access. Freed memory is looked up again, because the
// addresses may belong to a new allocation; that makes a new command.
func (c *command) usable() (*command, *cudart.Error) {
	for i := range c.uses {
		u := &c.uses[i]
		if u.memory != nil && u.memory.live.Load() {
			if c.kind == cudart.LaunchKernel {
				if e := c.reach(u); e != nil {
					return nil, e
				}
			}
			continue
		}
		if _, why := c.platform.memory.misuse(u.ptr, u.bytes); why != "" {
			return nil, c.fail(illegalAddress, "%s: %s", u.describe(), why)
		}
		again := *c
		again.uses = slices.Clone(c.uses)
		again.call.Args = slices.Clone(c.call.Args)
		again.resolve()
		return again.usable()
	}
	return c, nil
}

// reach checks that a kernel may access memory from its device.
func (c *command) reach(u *use) *cudart.Error {
	m := u.memory
	switch {
	case m.place == pageable:
		return c.fail(illegalAddress, "%s lies in %v; kernels can access only pinned host memory", u.describe(), m)
	case m.device >= 0 && !c.platform.peers[c.device.id][m.device].Load():
		return c.fail(illegalAddress, "%s lies in %v; peer access from device %d is not enabled", u.describe(), m, c.device.id)
	}
	return nil
}

// markWritten notes what the command has written: what it declares, or else all that it was given. A kernel that was checked has noted
// it itself.
func (c *command) markWritten() {
	if c.kind == cudart.LaunchKernel && c.kernel.interpreter != nil {
		return
	}
	declared := slices.ContainsFunc(c.accesses, func(a cudart.Access) bool { return a.Write })
	for _, u := range c.uses {
		switch m := u.memory; {
		case m == nil || m.written == nil || u.arg == source:
		case !declared:
			m.written.Mark(uint64(u.ptr), u.bytes)
		default:
			for _, a := range c.accesses {
				strip := a.Strip()
				for k := range max(strip.Rows, 1) {
					lo, hi := max(strip.Row(k), u.ptr), min(strip.Row(k)+cudart.Ptr(strip.Width()), u.ptr+cudart.Ptr(u.bytes))
					if a.Write && lo < hi {
						m.written.Mark(uint64(lo), int64(hi-lo))
					}
				}
			}
		}
	}
}

// launch runs the kernel: from its PTX, or its reference, whose Spans may panic too.
func (c *command) launch(w *worker) (crashed *crash) {
	if c.kernel.interpreter != nil {
		return c.interpret(w)
	}
	checked := c.platform.options.Sanitize != simt.CheckNothing
	if checked && c.kernel.reference.ReadsAll {
		if e := c.checkInputs(); e != nil {
			c.device.poison(e)
			return nil
		}
	}
	var n int64
	if crashed = guardSpans(c, &n); crashed != nil {
		return crashed
	}
	if _, users := c.platform.options.References[c.kernel.entry]; !checked || !users {
		return w.split(c, n)
	}
	s := c.spoilOutputs()
	if crashed = w.split(c, n); crashed == nil {
		if e := s.check(c); e != nil {
			c.device.poison(e)
		}
	}
	return crashed
}

// callHost runs a function of the host.
func (c *command) callHost() *cudart.Error {
	if c.platform.options.Sanitize == simt.CheckNothing {
		c.function()
		return nil
	}
	s := c.spoilOutputs()
	c.function()
	return s.check(c)
}

func guardSpans(c *command, n *int64) (crashed *crash) {
	defer func() {
		if v := recover(); v != nil {
			crashed = newCrash(v)
		}
	}()
	*n = 1
	if c.kernel.reference.Spans != nil {
		*n = c.kernel.reference.Spans(&c.call)
	}
	return nil
}

// copyPart is how many bytes of a copy are one part.
const copyPart = 1 << 20

// parts is how many parts a copy or a set has: of a tile, as many rows as make a part.
func (c *command) parts() int64 {
	if c.rows > 1 {
		n := c.rowsOfPart()
		return (c.rows + n - 1) / n
	}
	return (c.bytes + copyPart - 1) / copyPart
}

func (c *command) rowsOfPart() int64 { return max(copyPart/max(c.bytes/c.rows, 1), 1) }

// part implements part.
func (c *command) part(lo, hi int64) {
	switch {
	case c.kind == cudart.LaunchKernel:
		c.kernel.reference.Run(&c.call, lo, hi)
	case c.rows > 1:
		n, width := c.rowsOfPart(), c.bytes/c.rows
		for row := lo * n; row < min(hi*n, c.rows); row++ {
			if c.kind == cudart.CopyMemory {
				copy(c.bytesOf(0, row*c.pitches[0], width), c.bytesOf(1, row*c.pitches[1], width))
			} else {
				set(c.bytesOf(0, row*c.pitches[0], width), c.pattern, c.width)
			}
		}
	default:
		start := lo * copyPart
		n := min(hi*copyPart, c.bytes) - start
		if c.kind == cudart.CopyMemory {
			copy(c.bytesOf(0, start, n), c.bytesOf(1, start, n))
		} else {
			set(c.bytesOf(0, start, n), c.pattern, c.width)
		}
	}
}

// bytesOf returns some bytes of the destination, use 0, or the source, use 1.
func (c *command) bytesOf(use int, start, bytes int64) []byte {
	u := &c.uses[use]
	return unsafe.Slice((*byte)(unsafe.Add(u.memory.at(u.ptr), start)), bytes)
}

// set fills b with the low bytes of a pattern, little-endian.
func set(b []byte, pattern uint32, width uint8) {
	for i := range min(int(width), len(b)) {
		b[i] = byte(pattern >> (8 * i))
	}
	for n := int(width); n < len(b); n *= 2 {
		copy(b[n:], b[:n])
	}
}

// crashed turns a panic into a fault: a panic with an address is an illegal access, any other a failed launch.
func (c *command) crashed(v *crash) *cudart.Error {
	if fault, ok := v.value.(interface{ Addr() uintptr }); ok {
		return c.fail(illegalAddress, "%s", c.near(cudart.Ptr(fault.Addr())))
	}
	if e, ok := v.value.(runtime.Error); ok && strings.Contains(e.Error(), "nil pointer dereference") {
		return c.fail(illegalAddress, "address 0")
	}
	e := c.fail(launchFailed, "panic: %v", v.value)
	e.Detail = string(v.stack)
	return e
}

// near describes an address that a kernel must not access.
func (c *command) near(p cudart.Ptr) string {
	for i := range c.uses {
		m := c.uses[i].memory
		if p >= m.end() && p-m.end() < nearby {
			return fmt.Sprintf("the address lies %d bytes past the end of %v", p-m.end(), m)
		}
		if p < m.base && m.base-p < nearby {
			return fmt.Sprintf("the address lies %d bytes before the start of %v", m.base-p, m)
		}
	}
	_, why := c.platform.memory.misuse(p, 1)
	if why == "" {
		why = "the address is not accessible"
	}
	return why
}

// nearby is the distance from an argument within which an address counts as an overrun of the argument.
const nearby = 1 << 20

// check checks a command's accesses against earlier ones and records them.
func (o *order) check(c *command, e epoch, now clock) error {
	for i, a := range c.accesses {
		if a.Bytes <= 0 || c.nothing {
			continue
		}
		strip := a.Strip()
		m, _ := c.platform.memory.misuse(a.Ptr, strip.Span())
		if m == nil {
			continue // this is reported when the command runs
		}
		e.access = int32(i)
		for row := range max(strip.Rows, 1) {
			lo := int64(strip.Row(row) - m.base)
			if found := m.shadow.access(lo, lo+strip.Width(), e, a.Write, o, now); found.with.by != nil {
				return race(found, e, m)
			}
		}
	}
	return nil
}

// setConditional prepares a loop or branch.
func (c *command) setConditional(from *cudart.Command) *cudart.Error {
	v := from.Conditional
	if problem := v.Problem(); problem != "" {
		return c.fail(invalidValue, "%s", problem)
	}
	c.repeated = &conditional{Conditional: *v}
	if seed := c.platform.options.Perturb; seed != 0 {
		c.repeated.random = rand.New(rand.NewPCG(seed, uint64(c.index)))
	}
	c.call.Args = make([]launch.Arg, len(v.Operands)+2)
	for k, at := range v.Operands {
		c.uses = append(c.uses, use{ptr: at, bytes: v.Condition.Types[k].Size(), arg: k})
	}
	c.uses = append(c.uses, use{ptr: v.Counts, bytes: 8 * conditions.CountWords * int64(max(v.Clear, 1)), arg: len(v.Operands)})
	if v.Stamping.Room > 0 {
		c.uses = append(c.uses, use{ptr: v.Stamps, bytes: 8 * conditions.StampWords * v.Stamping.Room, arg: len(v.Operands) + 1})
	}
	c.resolve()
	for _, body := range v.Bodies {
		if len(body.Deps) != len(body.Commands) {
			return c.fail(invalidValue, "its body has %d commands, but dependencies for %d", len(body.Commands), len(body.Deps))
		}
		encoded := make([]*command, len(body.Commands))
		for i := range body.Commands {
			inner := new(command)
			if e := c.platform.encode(inner, &body.Commands[i], i); e != nil {
				return e
			}
			switch inner.kind {
			case cudart.RecordEvent, cudart.WaitEvent, cudart.Communicate, cudart.RunHost:
				return inner.fail(notSupported, "the body of a loop or branch cannot contain it")
			}
			encoded[i] = inner
		}
		t, err := newTable(encoded, body.Deps)
		if err != nil {
			return err.(*cudart.Error)
		}
		c.repeated.bodies = append(c.repeated.bodies, t)
	}
	return nil
}
