// Encoding: turns commands into rows, once.

package driver

import (
	"errors"
	"fmt"
	"slices"
	"unsafe"

	"github.com/dagrun/dagrun/cudart"
)

// encoding makes a table. fill adds its submitters.
func (p *Platform) encoding(list []checked, fill func(*encoded) error) (*encoded, error) {
	e := &encoded{p: p, places: make([]place, len(list)), early: early(list)}
	var err error
	if e.stop, err = e.memory.word(); err == nil {
		err = fill(e)
	}
	if err == nil {
		err = e.settle()
	}
	if err != nil {
		return nil, errors.Join(err, e.close())
	}
	return e, nil
}

// encode lowers checked commands to rows for one thread or several.
func (p *Platform) encode(list []checked, origin *stream, threads int) (*encoded, error) {
	return p.encoding(list, func(e *encoded) error { return e.fill(list, origin, threads) })
}

func (e *encoded) fill(list []checked, origin *stream, threads int) error {
	p := e.p
	submitterOf := assignSubmitters(list, origin, threads)
	count := 0
	for _, l := range submitterOf {
		count = max(count, int(l)+1)
	}
	for range max(count, 1) {
		room := len(list)/max(count, 1) + 16
		e.submitters = append(e.submitters, &submitter{rows: make([]row, 0, room), calls: make([]function, 0, room), owner: make([]int32, 0, room)})
	}
	between := newThreadOrder(list, submitterOf)
	bridged := bridges(list, origin)
	first := make([]bool, len(e.submitters))
	start := func(l *submitter, number int32, d *device) {
		l.add(p, cuCtxPushCurrent, -1, d.context.Load())
		l.device = d
		first[number] = true
		for _, s := range bridged {
			if submitterOf[s.command] != number {
				continue
			}
			b := s.stream.bridge
			l.enter(p, s.stream.d)
			l.add(p, cuEventRecord, -1, b.in.handle, b.legacy)
			l.add(p, cuStreamWaitEvent, -1, s.stream.handle, b.in.handle, 0)
		}
	}
	for i := range list {
		c := &list[i]
		number := submitterOf[i]
		l := e.submitters[number]
		if !first[number] {
			d := p.devices[0]
			if c.stream != nil {
				d = c.stream.d
			} else if origin != nil {
				d = origin.d
			}
			if err := p.prepare(d); err != nil {
				return err
			}
			start(l, number, d)
		}
		if c.stream != nil {
			l.enter(p, c.stream.d)
		}
		for _, w := range between.waits(i) {
			word, err := between.word(&e.memory, w)
			if err != nil {
				return err
			}
			l.builtin(rowWait, int32(i), uintptr(unsafe.Pointer(word)))
		}
		if err := e.command(l, number, i, c); err != nil {
			return err
		}
		if between.waitedFor(i) {
			word, err := between.word(&e.memory, int32(i))
			if err != nil {
				return err
			}
			l.builtin(rowPublish, int32(i), uintptr(unsafe.Pointer(word)))
		}
	}
	for _, s := range bridged {
		l := e.submitters[submitterOf[s.command]]
		b := s.stream.bridge
		l.enter(p, s.stream.d)
		l.add(p, cuEventRecord, -1, b.out.handle, s.stream.handle)
		l.add(p, cuStreamWaitEvent, -1, b.legacy, b.out.handle, 0)
	}
	return nil
}

// bridgedStream is a stream that stands for the legacy stream, with the first command on it.
type bridgedStream struct {
	stream  *stream
	command int
}

func bridges(list []checked, origin *stream) []bridgedStream {
	var found []bridgedStream
	for i := range list {
		s := list[i].stream
		if s == nil || s.bridge == nil || slices.ContainsFunc(found, func(b bridgedStream) bool { return b.stream == s }) {
			continue
		}
		found = append(found, bridgedStream{s, i})
	}
	return found
}

// command appends a command's row.
func (e *encoded) command(l *submitter, number int32, i int, c *checked) error {
	p, owner := e.p, int32(i)
	at := &e.places[i]
	*at = place{submitter: number, row: int32(len(l.rows))}
	switch c.Kind {
	case cudart.LaunchKernel:
		if c.kernel.call != nil {
			return e.call(l, i, c)
		}
		params, args, err := packArgs(&e.memory, c.Args)
		if err != nil {
			return err
		}
		at.args = args
		if c.Early || clustered(c) {
			if at.config, err = e.extended(l, owner, c, params, e.early != nil && e.early[i]); err != nil {
				return err
			}
			if nothing(c.Grid) {
				l.rows[at.row].fn = rowNothing
			}
			break
		}
		launch := cuLaunchKernel
		if c.Cooperative { // takes the same arguments, but for the last, which is 0
			launch = cuLaunchCooperativeKernel
		}
		l.add(p, launch, owner, c.kernel.handle, uintptr(c.Grid[0]), uintptr(c.Grid[1]), uintptr(c.Grid[2]),
			uintptr(c.Block[0]), uintptr(c.Block[1]), uintptr(c.Block[2]), uintptr(c.Shared), c.stream.handle, params, 0)
		if nothing(c.Grid) {
			l.rows[at.row].fn = rowNothing
		}
	case cudart.CopyMemory:
		if c.Rows > 1 && c.Bytes > 0 {
			args, err := p.copyRows(&e.memory, c)
			if err != nil {
				return err
			}
			at.args = args
			l.add(p, cuMemcpy2DAsync, owner, uintptr(unsafe.Pointer(unsafe.SliceData(args))), c.stream.handle)
			break
		}
		f, args, err := p.copyCall(c)
		if err != nil {
			return err
		}
		l.add(p, f, owner, args[:]...)
		if c.Bytes == 0 {
			l.rows[at.row].fn = rowNothing
		}
	case cudart.SetMemory:
		if c.Rows > 1 && c.Bytes > 0 {
			f := cuMemsetD2D8Async
			switch c.Width {
			case 2:
				f = cuMemsetD2D16Async
			case 4:
				f = cuMemsetD2D32Async
			}
			l.add(p, f, owner, uintptr(c.Dst), uintptr(c.DstPitch), uintptr(c.Pattern), uintptr(c.Target().Width()/int64(c.Width)), uintptr(c.Rows), c.stream.handle)
			break
		}
		f := cuMemsetD8Async
		switch c.Width {
		case 2:
			f = cuMemsetD16Async
		case 4:
			f = cuMemsetD32Async
		}
		l.add(p, f, owner, uintptr(c.Dst), uintptr(c.Pattern), uintptr(c.Bytes/int64(c.Width)), c.stream.handle)
		if c.Bytes == 0 {
			l.rows[at.row].fn = rowNothing
		}
	case cudart.RecordEvent:
		l.add(p, cuEventRecord, owner, c.event.handle, c.stream.handle)
	case cudart.WaitEvent:
		l.add(p, cuStreamWaitEvent, owner, c.stream.handle, c.event.handle, 0)
	case cudart.Communicate:
		return p.communicate(l, &e.memory, owner, c)
	case cudart.RunHost:
		number := registerHost(c.Host)
		e.functions = append(e.functions, number)
		l.add(p, cuLaunchHostFunc, owner, c.stream.handle, hostCallback(), number)
	case cudart.RangePush:
		if p.ranges.push == 0 {
			at.row = -1
			return nil
		}
		text, err := e.memory.text(c.Label)
		if err != nil {
			return err
		}
		l.builtin(rowIgnore, owner, p.ranges.push, uintptr(text))
	case cudart.RangePop:
		if p.ranges.push == 0 {
			at.row = -1
			return nil
		}
		l.builtin(rowIgnore, owner, p.ranges.pop)
	case cudart.Empty:
		at.row = -1
	default:
		return c.wrong(i, "a list cannot hold a command of kind %d", c.Kind)
	}
	return nil
}

// copyCall chooses the function for a copy. The direction is known, so the driver need not look up the addresses.
func (p *Platform) copyCall(c *checked) (function, [6]uintptr, error) {
	dst, src, bytes, s := uintptr(c.Dst), uintptr(c.Src), uintptr(c.Bytes), c.stream.handle
	switch {
	case c.DstDevice >= 0 && c.SrcDevice < 0:
		return cuMemcpyHtoDAsync, [6]uintptr{dst, src, bytes, s}, nil
	case c.DstDevice < 0 && c.SrcDevice >= 0:
		return cuMemcpyDtoHAsync, [6]uintptr{dst, src, bytes, s}, nil
	case c.DstDevice < 0:
		return cuMemcpyAsync, [6]uintptr{dst, src, bytes, s}, nil
	case c.DstDevice == c.SrcDevice:
		return cuMemcpyDtoDAsync, [6]uintptr{dst, src, bytes, s}, nil
	}
	for _, d := range [2]*device{p.devices[c.DstDevice], p.devices[c.SrcDevice]} {
		if err := p.prepare(d); err != nil {
			return 0, [6]uintptr{}, err
		}
	}
	// The driver finds both devices by the addresses. cuMemcpyPeerAsync would do the same, but it is refused during a capture.
	return cuMemcpyAsync, [6]uintptr{dst, src, bytes, s}, nil
}

// settle moves the rows to memory that C may keep, and adds to each submitter the rows that must run even after a failure.
func (e *encoded) settle() error {
	for number, l := range e.submitters {
		if len(l.rows) > 0 {
			l.finally(e.p, cuCtxPopCurrent, 0, 0)
		}
		w, err := e.memory.take(int(unsafe.Sizeof(walk{})), cacheLine)
		if err != nil {
			return err
		}
		l.walk = (*walk)(w)
		popped, err := e.memory.words(2)
		if err != nil {
			return err
		}
		rows, err := e.memory.rows(len(l.rows))
		if err != nil {
			return err
		}
		copy(rows, l.rows)
		l.rows = rows
		joins := 0
		if number == 0 {
			joins = len(e.submitters) - 1
		}
		epilogue, err := e.memory.rows(len(l.epilogue) + joins)
		if err != nil {
			return err
		}
		copy(epilogue[joins:], l.epilogue)
		for i := joins; i < len(epilogue); i++ {
			r := &epilogue[i]
			r.arg[rowGuard] = uintptr(unsafe.Pointer(&rows[l.guards[i-joins]]))
			if l.ends[i-joins] == cuCtxPopCurrent {
				r.arg[0] = uintptr(unsafe.Pointer(&popped[0]))
			}
		}
		for range joins {
			l.ends = slices.Insert(l.ends, 0, functionCount)
		}
		l.epilogue = epilogue
		l.walk.stop = e.stop
		l.walk.yield = e.p.lib.yield
		l.walk.setRows(rows)
		l.walk.setEpilogue(epilogue)
	}
	main := e.submitters[0]
	for i, l := range e.submitters[1:] {
		var err error
		if l.walk.start, err = e.memory.word(); err != nil {
			return err
		}
		if l.walk.done, err = e.memory.word(); err != nil {
			return err
		}
		l.walk.patience = e.p.patience
		main.epilogue[i] = row{fn: rowJoin}
		main.epilogue[i].arg[0] = uintptr(unsafe.Pointer(l.walk.done))
	}
	return nil
}

// outcome returns the error of the last walk: the first failure in the order of the commands.
func (e *encoded) outcome(list []checked) error {
	found, index, failed := (*submitter)(nil), int32(0), 0
	for _, l := range e.submitters {
		if i := l.walk.failedRow(); i >= 0 && (found == nil || l.owner[i] < index) {
			found, index, failed = l, l.owner[i], i
		}
	}
	if found != nil {
		return e.rowFailure(list, found, failed, found.walk.code)
	}
	for _, l := range e.submitters {
		if i := l.walk.failedEpilogue(); i >= 0 {
			failure := e.firstDevice(list).fail(e.p.lib, l.ends[i], l.walk.epilogueCode)
			if failure.Code == codeCaptureUnjoined {
				failure.Detail = "a stream that joined the capture was not joined back; every stream must join back into the origin"
			}
			return failure
		}
	}
	return nil
}

func (e *encoded) firstDevice(list []checked) *device {
	for i := range list {
		if list[i].stream != nil {
			return list[i].stream.d
		}
	}
	return e.p.devices[0]
}

func (e *encoded) rowFailure(list []checked, l *submitter, i int, code uint64) error {
	owner := l.owner[i]
	if f := l.calls[i]; f > functionCount {
		return e.p.communicationFailure(&list[owner], owner, f, code)
	}
	if owner < 0 {
		return e.firstDevice(list).fail(e.p.lib, l.calls[i], code)
	}
	c := &list[owner]
	failure := c.stream.d.fail(e.p.lib, l.calls[i], code)
	failure.Label, failure.Node, failure.Index = c.Label, c.Node, int(owner)
	switch {
	case sticky(code):
		failure.Detail = "the fault comes from work submitted earlier; the driver reports it only now"
	case code == codeLaunchResources && c.Kind == cudart.LaunchKernel:
		failure.Detail = fmt.Sprintf("kernel %s with %d registers per thread, %d threads per block and %d bytes of shared memory does not fit on a multiprocessor",
			c.kernel.entry, c.kernel.attributes.Registers, c.Block[0]*c.Block[1]*c.Block[2], c.kernel.attributes.SharedStatic+int(c.Shared))
	}
	return failure
}
