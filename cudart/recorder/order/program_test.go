// Programs of the transcripts: a small language for what a program did, one call a line. See the transcripts for how it reads.

package order

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/dagrun/dagrun/internal/recording"
)

// program makes a recording from lines.
type program struct {
	process  *recording.Process
	sequence uint64
	line     int
	open     map[string]int // calls that have begun and not ended
	streams  map[string]uint64
	events   map[string]uint64
	memory   map[string][2]uint64
	kernels  map[string]uint64
	next     uint64
	launches uint64
	node     uint64
}

func newProgram() *program {
	return &program{open: map[string]int{}, streams: map[string]uint64{"default": 0, "thread": 2}, events: map[string]uint64{}, memory: map[string][2]uint64{},
		kernels: map[string]uint64{}, next: 0x1000_0000, process: &recording.Process{Measured: true, Places: map[uint64][]recording.Frame{},
			Functions: map[uint64][]recording.FunctionInfo{}, Accesses: map[uint64]*recording.AccessInfo{}}}
}

// read returns the recording that a text describes.
func read(text string) *recording.Process {
	p := newProgram()
	for i, line := range strings.Split(text, "\n") {
		p.line = i + 1
		if line, _, _ = strings.Cut(line, "#"); strings.TrimSpace(line) != "" {
			p.read(strings.Fields(line))
		}
	}
	if len(p.open) > 0 {
		p.fail("a call does not end")
	}
	slices.SortStableFunc(p.process.Calls, func(a, b recording.Call) int { return int(a.Begin) - int(b.Begin) })
	return p.process
}

func (p *program) fail(format string, args ...any) {
	panic(fmt.Sprintf("line %d: ", p.line) + fmt.Sprintf(format, args...))
}

func (p *program) tick() uint64 {
	p.sequence++
	return p.sequence
}

// fields is what is left of a line.
type fields []string

func (w *fields) take() string {
	if len(*w) == 0 {
		return ""
	}
	first := (*w)[0]
	*w = (*w)[1:]
	return first
}

// cut removes a word, and says whether it was there.
func (w *fields) cut(word string) bool {
	at := slices.Index(*w, word)
	if at < 0 {
		return false
	}
	*w = slices.Delete(slices.Clone(*w), at, at+1)
	return true
}

// after removes a word and the one behind it, and returns that.
func (w *fields) after(word string) string {
	at := slices.Index(*w, word)
	if at < 0 || at+1 == len(*w) {
		return ""
	}
	value := (*w)[at+1]
	*w = slices.Delete(slices.Clone(*w), at, at+2)
	return value
}

// all removes a word wherever it is, with the one behind it, and returns those.
func (w *fields) all(word string) []string {
	var out []string
	for value := w.after(word); value != ""; value = w.after(word) {
		out = append(out, value)
	}
	return out
}

// region returns the bytes that A or A[4:8] means.
func (p *program) region(text string) (low, high uint64) {
	name, rest, part := strings.Cut(strings.TrimSuffix(text, "]"), "[")
	is, found := p.memory[name]
	if !found {
		p.fail("there is no memory %q", name)
	}
	if !part {
		return is[0], is[0] + is[1]
	}
	from, to, _ := strings.Cut(rest, ":")
	return is[0] + p.number(from), is[0] + p.number(to)
}

func (p *program) number(text string) uint64 {
	n, err := strconv.ParseUint(text, 0, 64)
	if err != nil {
		p.fail("%q is no number", text)
	}
	return n
}

func (p *program) named(of map[string]uint64, name string) uint64 {
	if _, found := of[name]; !found {
		p.next += 0x1000
		of[name] = p.next
	}
	return of[name]
}

func (p *program) stream(w *fields) uint64 {
	name := w.after("on")
	if name == "" {
		return 0
	}
	handle, found := p.streams[name]
	if !found {
		p.fail("there is no stream %q", name)
	}
	return handle
}

func bit(set bool) uint64 {
	if set {
		return 1
	}
	return 0
}

func (p *program) read(w fields) {
	c := recording.Call{Record: recording.Record{Thread: 1}, Context: 1}
	if name := w.after("end"); name != "" {
		p.process.Calls[p.open[name]].End = p.tick()
		delete(p.open, name)
		return
	}
	begins := w.after("begin")
	if thread := w.after("thread:"); thread != "" {
		c.Thread = uint32(p.number(thread))
	}
	if context := w.after("context:"); context != "" {
		c.Context = p.number(context)
	}
	if at := slices.IndexFunc(w, func(s string) bool { return strings.HasPrefix(s, "@") }); at >= 0 {
		c.Place = p.place(w[at][1:])
		w = slices.Delete(w, at, at+1)
	}
	if w.cut("fails") {
		c.Result = 600
	}
	c.Begin = p.tick()
	if node := w.after("node"); node != "" {
		p.node = p.number(node)
	} else {
		p.node = 0
	}
	if !p.call(&c, w.take(), &w) {
		return
	}
	if len(w) > 0 {
		p.fail("words left: %s", strings.Join(w, " "))
	}
	if begins != "" {
		p.open[begins] = len(p.process.Calls)
	} else {
		c.End = p.tick()
	}
	p.process.Calls = append(p.process.Calls, c)
}

func (p *program) place(text string) uint64 {
	file, line, _ := strings.Cut(text, ":")
	for id, frames := range p.process.Places {
		if frames[0].File == file && uint64(frames[0].Line) == p.number(line) {
			return id
		}
	}
	id := uint64(len(p.process.Places) + 1)
	p.process.Places[id] = []recording.Frame{{Python: true, File: file, Line: int(p.number(line))}}
	return id
}

// call fills in a call. It returns false if the line was no call.
func (p *program) call(c *recording.Call, verb string, w *fields) bool {
	set := func(kind recording.Kind, args ...uint64) { c.Kind, c.Args = kind, args }
	switch verb {
	case "stream":
		blocking := !w.cut("nonblocking")
		name := w.take()
		p.next += 0x1000
		p.streams[name] = p.next
		set(recording.StreamCreate, p.next, bit(!blocking), 0)
	case "destroy":
		if w.cut("event") {
			set(recording.EventDestroy, p.named(p.events, w.take()))
			break
		}
		set(recording.StreamDestroy, p.streams[w.take()])
	case "alloc":
		p.alloc(c, w)
	case "free":
		async := w.cut("async")
		stream := p.stream(w)
		low, _ := p.region(w.take())
		kind := uint64(1)
		if async {
			kind = allocAsync
		}
		set(recording.Free, low, kind, stream, p.node)
	case "tensor", "taken":
		p.tensor(c, verb, w)
		return false
	case "launch":
		p.launch(c, w)
	case "copy":
		async := w.cut("async")
		stream := p.stream(w)
		to, low, high := p.side(w.take())
		w.cut("from")
		from, source, end := p.side(w.take())
		if to == memoryHost {
			low, high = 0x10, 0x10+end-source
		}
		if from == memoryHost {
			source = 0x10
		}
		set(recording.Copy, stream, p.node, bit(!async), low, source, high-low, 1, 1, 0, 0, 0, 0, to, from, 0, 0)
	case "memset":
		async := w.cut("async")
		stream := p.stream(w)
		low, high := p.region(w.take())
		set(recording.Set, stream, p.node, bit(!async), low, high-low, 1, 0, 0, 1)
	case "record":
		set(recording.EventRecord, p.stream(w), p.node, p.named(p.events, w.take()), 0)
	case "wait":
		set(recording.StreamWait, p.stream(w), p.node, p.named(p.events, w.take()), 0)
	case "synchronize":
		p.synchronize(c, w, recording.EventSync, recording.StreamSync)
	case "query":
		p.synchronize(c, w, recording.EventQuery, recording.StreamQuery)
	case "function":
		set(recording.HostFunction, p.stream(w), p.node, 1, 2)
	case "capture":
		set(recording.CaptureBegin, p.stream(w), 0)
	case "captured":
		set(recording.CaptureEnd, p.stream(w), 0)
	case "unmeasured":
		p.process.Measured = false
		return false
	case "uncovered":
		set(recording.Uncovered)
		c.Tail = []byte(w.take())
	default:
		p.fail("what is %q?", verb)
	}
	return true
}

func (p *program) synchronize(c *recording.Call, w *fields, event, stream recording.Kind) {
	switch {
	case w.cut("context"):
		c.Kind = recording.ContextSync
	case w.cut("event"):
		c.Kind, c.Args = event, []uint64{p.named(p.events, w.take())}
	default:
		c.Kind, c.Args = stream, []uint64{p.streams[w.take()]}
	}
}

func (p *program) side(text string) (kind, low, high uint64) {
	if text == "host" {
		return memoryHost, 0, 0
	}
	low, high = p.region(text)
	return 4, low, high
}

func (p *program) alloc(c *recording.Call, w *fields) {
	kind := uint64(1)
	for name, number := range map[string]uint64{"pinned": allocPinned, "managed": allocManaged, "async": allocAsync} {
		if w.cut(name) {
			kind = number
		}
	}
	stream, at := p.stream(w), w.after("over")
	name := w.take()
	bytes := p.number(w.take())
	p.next += 0x1000
	low := p.next
	if at != "" {
		low, _ = p.region(at)
	}
	p.next += bytes &^ 0xfff
	p.memory[name] = [2]uint64{low, bytes}
	c.Kind, c.Args = recording.Alloc, []uint64{low, bytes, kind, stream, 0, 0, p.node}
}

// tensor makes an event of the framework's allocator.
func (p *program) tensor(c *recording.Call, verb string, w *fields) {
	stream := p.stream(w)
	event := recording.TensorEvent{Sequence: c.Begin, Stream: stream, Thread: c.Thread, Place: c.Place, Action: recording.TensorFreeCompleted}
	name := w.take()
	if verb == "tensor" {
		event.Action = recording.TensorAlloc
		w.cut("=")
		low, high := p.region(w.take())
		p.memory[name] = [2]uint64{low, high - low}
	}
	event.Address, event.Bytes = p.memory[name][0], p.memory[name][1]
	p.process.Tensors = append(p.process.Tensors, event)
}

func (p *program) launch(c *recording.Call, w *fields) {
	stream := p.stream(w)
	info := &recording.AccessInfo{Opaque: w.cut("opaque"), Unmeasured: w.cut("unmeasured"), Lost: w.cut("overflowed")}
	var flags uint64
	if w.cut("programmatic") {
		flags |= flagProgrammatic
	}
	for mode, verb := range map[uint32]string{recording.Read: "reads", recording.Write: "writes", recording.Atomic: "updates"} {
		for _, name := range w.all(verb) {
			low, high := p.region(name)
			info.Runs = append(info.Runs, recording.Run{Address: low, Bytes: uint32(high - low), Modes: mode})
		}
	}
	arguments := w.all("argument")
	for _, name := range arguments {
		low, _ := p.region(name)
		c.Tail = binary.LittleEndian.AppendUint64(c.Tail, low)
	}
	lost := w.cut("lost")
	name := w.take()
	function := p.named(p.kernels, name)
	var parameters []recording.Parameter
	for i := range arguments {
		parameters = append(parameters, recording.Parameter{Offset: uint32(8 * i), Bytes: 8})
	}
	p.process.Functions[function] = []recording.FunctionInfo{{Handle: function, Name: name, Parameters: parameters}}
	number := uint64(0)
	if lost || len(info.Runs) > 0 || len(arguments) == 0 || info.Unmeasured {
		p.launches++
		number = p.launches
		if !lost {
			p.process.Accesses[number] = info
		}
	}
	c.Kind, c.Args = recording.Launch, []uint64{stream, p.node, function, number, 1, 1, 1, 1, 1, 1, 0, flags, 0}
}
