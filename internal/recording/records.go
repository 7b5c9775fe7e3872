// Decoding records. Numbers in the file are compared with the bytes that are there before they are used, so that memory grows with the file only.

package recording

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"unsafe"
)

// piece is a row of records, one after the other.
type piece struct {
	bytes []byte
	at    int64 // offset of the first byte, for errors
	cut   bool  // the last record may be incomplete
}

// decoder collects what must be known of all records before it can be put together.
type decoder struct {
	p      *Process
	pieces []piece
	fail   func(at int64, text string) error

	calls  []callAt
	images map[uint64]image
	codes  map[uint64]*code
	places map[uint64][]uint64
	mixed  map[uint64][]Run  // further runs of a launch, which may overlap others
	first  map[uint32]uint64 // by thread that wrote them: the first of the launches that are being told and were measured together
	again  map[uint64]uint64 // the first of those, by the other ones
}

// callAt is where a call's record is. There are millions, so they are sorted before they are decoded.
type callAt struct {
	begin     uint64
	piece, at uint32 // the second in units of 8 bytes
}

type image struct {
	path, build string
	base        uint64
}

func decode(p *Process, pieces []piece, fail func(at int64, text string) error) error {
	p.fail = fail
	d := &decoder{p: p, pieces: pieces, fail: fail, images: map[uint64]image{}, codes: map[uint64]*code{}, places: map[uint64][]uint64{},
		mixed: map[uint64][]Run{}, first: map[uint32]uint64{}, again: map[uint64]uint64{}}
	p.Places, p.Functions, p.Accesses, p.Facts = map[uint64][]Frame{}, map[uint64][]FunctionInfo{}, map[uint64]*AccessInfo{}, map[string]string{}
	for k, piece := range pieces {
		if err := d.scan(uint32(k), piece); err != nil {
			return err
		}
	}
	slices.SortFunc(d.calls, func(a, b callAt) int {
		return cmp.Or(cmp.Compare(a.begin, b.begin), cmp.Compare(a.piece, b.piece), cmp.Compare(a.at, b.at))
	})
	p.Calls = make([]Call, len(d.calls))
	for k, c := range d.calls {
		p.Calls[k] = d.call(c)
	}
	for id, words := range d.places {
		p.Places[id] = d.frames(words)
	}
	d.order()
	return nil
}

// scan reads a piece: calls are only noted, everything else is decoded.
func (d *decoder) scan(number uint32, piece piece) error {
	for at := 0; at < len(piece.bytes); {
		rest := piece.bytes[at:]
		f, short, wrong := frameOf(rest)
		offset := piece.at + int64(at)
		switch {
		case short && piece.cut:
			return nil
		case wrong != "":
			return d.fail(offset, wrong)
		}
		if f.kind.known() {
			least := shapes[f.kind].words
			if f.kind.call() {
				least += commonWords
			}
			if int(f.words) < least {
				return d.fail(offset, fmt.Sprintf("a record (%s) with %d words, where at least %d belong", f.kind, f.words, least))
			}
		}
		switch {
		case !f.kind.known():
			d.p.Unknown++
		case f.kind.call():
			if f.kind == TensorMap {
				rank := word(rest, 2+commonWords+2)
				if rank > 64 || commonWords+3+2*rank > uint64(f.words)+1 {
					return d.fail(offset, fmt.Sprintf("a tensor map of rank %d in %d words", rank, f.words))
				}
			}
			d.calls = append(d.calls, callAt{word(rest, 2), number, uint32(at / 8)})
		default:
			if wrong := d.record(recordOf(rest, f, offset)); wrong != "" {
				return d.fail(offset, wrong)
			}
		}
		at += int(f.size)
	}
	return nil
}

func recordOf(b []byte, f frame, offset int64) Record {
	end := frameBytes + 8*int(f.words)
	return Record{f.kind, f.thread, wordsOf(b[frameBytes:end:end]), b[end : end+int(f.tail) : end+int(f.tail)], offset}
}

func (d *decoder) call(c callAt) Call {
	piece := d.pieces[c.piece]
	b := piece.bytes[8*int(c.at):]
	f, _, _ := frameOf(b)
	r := recordOf(b, f, piece.at+8*int64(c.at))
	w := r.Words
	return Call{Record: r, Begin: w[0], End: w[1], Time: int64(w[2]), API: uint32(w[3]), Result: int32(w[3] >> 32), Context: w[4], Place: w[5],
		Args: w[commonWords:]}
}

// record decodes a record that is no call.
func (d *decoder) record(r Record) (wrong string) {
	p, w := d.p, r.Words
	switch r.Kind {
	case Thread:
		p.Threads = append(p.Threads, ThreadInfo{uint32(w[0]), uint32(w[1]), string(r.Tail)})
	case Note:
		d.note(NoteInfo{w[0], w[1], string(r.Tail)})
	case Place:
		if len(w)%2 == 0 {
			return fmt.Sprintf("a place with %d words: each frame has two", len(w))
		}
		if d.places[w[0]] == nil {
			d.places[w[0]] = w[1:]
		}
	case Image:
		path, build, _ := bytes.Cut(r.Tail, []byte{0})
		d.images[w[0]] = image{string(path), hex.EncodeToString(build), w[1]}
	case Code:
		file, rest, _ := bytes.Cut(r.Tail, []byte{0})
		function, table, _ := bytes.Cut(rest, []byte{0})
		d.codes[w[0]] = &code{string(file), string(function), int(int32(w[1])), w[2], table}
	case Module:
		p.Modules = append(p.Modules, ModuleInfo{Handle: w[0], Library: w[1], Bytes: w[2], Hash: w[3], Sequence: w[4], Code: kept(r.Tail), Offset: r.Offset})
	case Function:
		return d.function(r)
	case Graph:
		return d.graph(r)
	case Access:
		return d.access(r)
	case Tensor:
		if w[1] < uint64(TensorAlloc) || w[1] > uint64(TensorFreeCompleted) {
			p.Unknown++
			return ""
		}
		p.Tensors = append(p.Tensors, TensorEvent{Sequence: w[0], Action: TensorAction(w[1]), Address: w[2], Bytes: w[3], Stream: w[4], Pool: w[5],
			Place: w[6], Thread: r.Thread})
	case TensorTrace:
		p.Traces = append(p.Traces, TraceInfo{w[0], r.Tail, r.Offset})
	case ProcessInfo:
		d.process(r.Tail)
	case Contents:
		c := ContentsInfo{Sequence: w[0], Address: w[1], Bytes: w[2], Hash: w[3], Data: kept(r.Tail), Offset: r.Offset, Buffer: NoBuffer}
		if len(w) > 4 {
			c.Buffer = w[4]
		}
		p.Contents = append(p.Contents, c)
	case Buffer, Node, Pointer, Use:
		return d.planned(r)
	}
	return ""
}

// planned decodes what is said of a planned graph. Whether it fits together is for the reader of such files to check.
func (d *decoder) planned(r Record) string {
	p, w := &d.p.Planned, r.Words
	switch r.Kind {
	case Buffer:
		if w[3] > uint64(len(w)-4) {
			return fmt.Sprintf("a buffer of %d dimensions in %d words", w[3], len(w))
		}
		name, dtype, _ := bytes.Cut(r.Tail, []byte{0})
		p.Buffers = append(p.Buffers, BufferInfo{w[0], w[1], w[2], w[4 : 4+w[3]], string(name), string(dtype), r.Offset})
	case Node:
		p.Nodes = append(p.Nodes, NodeInfo{w[0], int64(w[1]), string(r.Tail), r.Offset})
	case Pointer:
		p.Pointers = append(p.Pointers, PointerInfo{w[0], w[1], w[2], w[3], w[4], r.Offset})
	case Use:
		p.Uses = append(p.Uses, UseInfo{w[0], w[1], w[2], w[3], w[4], w[5], w[6], r.Offset})
	}
	return ""
}

func kept(tail []byte) []byte {
	if len(tail) == 0 {
		return nil
	}
	return tail
}

func (d *decoder) note(n NoteInfo) {
	d.p.Notes = append(d.p.Notes, n)
	d.p.Cut = d.p.Cut || n.Code == NoteCut
	if n.Code == NoteAllocator {
		d.fact(n.Text)
	}
}

// fact keeps a text "key=value".
func (d *decoder) fact(text string) {
	if key, value, ok := strings.Cut(text, "="); ok && !strings.ContainsAny(key, " \t\n") {
		d.p.Facts[key] = value
	}
}

// process reads the command line and the facts. Arguments may be empty, facts may not, so the last two zeros in a row lie between them.
func (d *decoder) process(tail []byte) {
	line, facts := string(tail), ""
	if at := strings.LastIndex(line, "\x00\x00"); at >= 0 {
		line, facts = line[:at], line[at+2:]
	}
	if len(d.p.Command) == 0 && line != "" {
		d.p.Command = strings.Split(line, "\x00")
	}
	for text := range strings.SplitSeq(facts, "\x00") {
		d.fact(text)
	}
}

func (d *decoder) function(r Record) string {
	w := r.Words
	n := w[6]
	if n > uint64(len(w)-7)/2 {
		return fmt.Sprintf("a function with %d parameters in %d words", n, len(w))
	}
	f := FunctionInfo{Handle: w[0], Sequence: w[1], Module: w[2], Opaque: w[3]&1 != 0, Unpatched: w[3]&2 != 0, Registers: uint32(w[4]), Shared: uint32(w[5]),
		Name: string(r.Tail), Parameters: make([]Parameter, n), Offset: r.Offset}
	if rest := w[7+2*n:]; len(rest) > 0 {
		f.Library = rest[0]
	}
	for k := range f.Parameters {
		f.Parameters[k] = Parameter{uint32(w[7+2*k]), uint32(w[8+2*k])}
	}
	d.p.Functions[f.Handle] = append(d.p.Functions[f.Handle], f)
	return ""
}

// Conditional returns what a conditional node is (0 if, 1 while, 2 switch) and the handles of its bodies, each a graph of
// Process.Graphs; false if that is not known.
func (n *GraphNode) Conditional() (kind uint64, bodies []uint64, known bool) {
	words := wordsOf(n.Body)
	if n.Type != conditionalNode || len(words) < 2 || words[1] > uint64(len(words)-2) {
		return 0, nil, false
	}
	return words[0], words[2 : 2+words[1]], true
}

// bodyWords are the words of which the body of a node consists, by type, where a body was written.
var bodyWords = map[uint32]int{0: 10, 1: 13, 2: 6, 3: 2, 4: 1, 6: 1, 7: 1, 10: 2, 11: 1, 13: 2}

// changed adds the states of executable graphs in which a kernel node was given other parameters.
func (d *decoder) changed() {
	p := d.p
	for k := range p.Calls {
		c := &p.Calls[k]
		if c.Kind != Update || len(c.Args) < 3 || c.Args[2] == 0 || len(c.Tail) < 8*bodyWords[0] {
			continue
		}
		latest := -1
		for i := range p.Graphs {
			if g := &p.Graphs[i]; g.Execution == c.Args[0] && g.Sequence <= c.End && (latest < 0 || g.Sequence >= p.Graphs[latest].Sequence) {
				latest = i
			}
		}
		if latest < 0 {
			continue
		}
		nodes := slices.Clone(p.Graphs[latest].Nodes)
		if at := slices.IndexFunc(nodes, func(n GraphNode) bool { return n.Node == c.Args[2] && n.Type == 0 }); at >= 0 {
			nodes[at].Body = c.Tail
			next := p.Graphs[latest]
			next.Sequence, next.Nodes = c.End, nodes
			p.Graphs = append(p.Graphs, next)
		}
	}
}

func (d *decoder) graph(r Record) string {
	n, m, room := r.Words[3], r.Words[4], uint64(len(r.Tail))
	if n > room/nodeBytes || m > (room-n*nodeBytes)/edgeBytes {
		return fmt.Sprintf("a graph of %d nodes and %d edges in %d bytes", n, m, room)
	}
	nodes, rest := r.Tail[:n*nodeBytes], r.Tail[n*nodeBytes:]
	edges, bodies := rest[:m*edgeBytes], rest[m*edgeBytes:]
	g := GraphInfo{Sequence: r.Words[0], Graph: r.Words[1], Execution: r.Words[2], Nodes: make([]GraphNode, n), Edges: make([]GraphEdge, m), Offset: r.Offset}
	for k := range g.Nodes {
		b := nodes[k*nodeBytes:]
		kind, size, at := half(b, 2), uint64(half(b, 3)), word(b, 2)
		if at > uint64(len(bodies)) || size > uint64(len(bodies))-at {
			return fmt.Sprintf("node %d has bytes %d to %d of %d", k, at, at+size, len(bodies))
		}
		if least := 8 * bodyWords[kind]; size > 0 && size < uint64(least) {
			return fmt.Sprintf("node %d, of type %d, has %d bytes, where at least %d belong", k, kind, size, least)
		}
		g.Nodes[k] = GraphNode{word(b, 0), kind, bodies[at : at+size : at+size]}
	}
	for k := range g.Edges {
		b := edges[k*edgeBytes:]
		e := GraphEdge{From: half(b, 0), To: half(b, 1), Programmatic: half(b, 2) != 0, Ports: half(b, 3)}
		if uint64(max(e.From, e.To)) >= n {
			return fmt.Sprintf("edge %d leads from node %d to node %d of %d", k, e.From, e.To, n)
		}
		g.Edges[k] = e
	}
	d.p.Graphs = append(d.p.Graphs, g)
	return ""
}

func (d *decoder) access(r Record) string {
	w := r.Words
	if w[3] > uint64(len(r.Tail))/runBytes {
		return fmt.Sprintf("%d runs in %d bytes", w[3], len(r.Tail))
	}
	a := d.p.Accesses[w[0]]
	if a == nil {
		a = &AccessInfo{}
		d.p.Accesses[w[0]] = a
	}
	a.Lost = a.Lost || w[2] > 0
	a.Together = a.Together || w[1]&1 != 0 && w[2] == 0
	d.together(r)
	a.Opaque = a.Opaque || w[1]&2 != 0
	a.Unmeasured = a.Unmeasured || w[1]&4 != 0
	runs := runsOf(r.Tail[:w[3]*runBytes])
	for k, run := range runs {
		if run.Address+uint64(run.Bytes) < run.Address {
			return fmt.Sprintf("run %d, of %d bytes, begins at 0x%x", k, run.Bytes, run.Address)
		}
	}
	if _, several := d.mixed[w[0]]; a.Runs == nil && !several && inOrder(runs) {
		a.Runs = runs
	} else {
		d.mixed[w[0]] = append(d.mixed[w[0]], runs...)
	}
	return ""
}

// together finds out which launches were measured together. Launches of one node of a graph have one number on the device, so what they touched cannot
// be told apart if the program did not wait between them. The recorder then writes their records one after the other, with all runs in the first.
func (d *decoder) together(r Record) {
	w := r.Words
	first, told := d.first[r.Thread]
	switch {
	case w[1]&1 == 0 || w[2] > 0:
		delete(d.first, r.Thread)
	case w[3] > 0:
		d.first[r.Thread] = w[0]
	case told && first != w[0]:
		d.again[w[0]] = first
	}
}

// runsOf returns the runs in b: b itself where the machine allows that.
func runsOf(b []byte) []Run {
	n := len(b) / runBytes
	if n == 0 {
		return nil
	}
	if at := unsafe.Pointer(unsafe.SliceData(b)); hostOrder && uintptr(at)%8 == 0 {
		return unsafe.Slice((*Run)(at), n)
	}
	runs := make([]Run, n)
	for k := range runs {
		runs[k] = Run{word(b, 2*k), half(b, 4*k+2), half(b, 4*k+3)}
	}
	return runs
}

func inOrder(runs []Run) bool {
	end := uint64(0)
	for _, r := range runs {
		if r.Address < end || r.Bytes == 0 {
			return false
		}
		end = r.Address + uint64(r.Bytes)
	}
	return true
}

// disjoint puts runs in order and cuts those that overlap, so that each byte has all modes in which it was accessed.
func disjoint(runs []Run) []Run {
	type border struct {
		address uint64
		modes   uint32
		change  int
	}
	borders := make([]border, 0, 2*len(runs))
	for _, r := range runs {
		if r.Bytes > 0 {
			borders = append(borders, border{r.Address, r.Modes, 1}, border{r.Address + uint64(r.Bytes), r.Modes, -1})
		}
	}
	slices.SortFunc(borders, func(a, b border) int { return cmp.Compare(a.address, b.address) })
	var out []Run
	var open [32]int // runs that cover the address, by mode
	covered := 0
	for k, b := range borders {
		if k > 0 && covered > 0 && borders[k-1].address < b.address {
			run := Run{Address: borders[k-1].address, Bytes: uint32(b.address - borders[k-1].address)}
			for mode, count := range open {
				if count > 0 {
					run.Modes |= 1 << mode
				}
			}
			out = append(out, run)
		}
		covered += b.change
		for mode := range open {
			if b.modes>>mode&1 != 0 {
				open[mode] += b.change
			}
		}
	}
	return out
}

const (
	frameMachine = 0
	framePython  = 1
)

// frames puts together the frames of a place. What they refer to is in the file, perhaps behind the place.
func (d *decoder) frames(words []uint64) []Frame {
	frames := make([]Frame, 0, len(words)/2)
	for k := 0; k+1 < len(words); k += 2 {
		f, which := Frame{Offset: words[k+1]}, words[k]&(1<<56-1)
		switch words[k] >> 56 {
		case framePython:
			f.Python = true
			if c := d.codes[which]; c != nil {
				f.File, f.Function, f.Line = c.file, c.function, c.line(f.Offset)
			}
		case frameMachine:
			if i, ok := d.images[which]; ok {
				f.File, f.BuildID = i.path, i.build
				f.Offset -= i.base
			}
		}
		f.Package = packaged(f.File)
		frames = append(frames, f)
	}
	return frames
}

// order sorts what has a sequence, and completes what the file holds once and names by hash afterwards.
func (d *decoder) order() {
	p := d.p
	for launch, runs := range d.mixed {
		a := p.Accesses[launch]
		a.Runs = disjoint(append(runs, a.Runs...))
	}
	for launch, first := range d.again {
		a := p.Accesses[launch]
		a.Again, a.Runs = true, p.Accesses[first].Runs
	}
	slices.SortStableFunc(p.Threads, func(a, b ThreadInfo) int { return cmp.Compare(a.Index, b.Index) })
	d.changed()
	slices.SortStableFunc(p.Graphs, func(a, b GraphInfo) int { return cmp.Compare(a.Sequence, b.Sequence) })
	slices.SortStableFunc(p.Tensors, func(a, b TensorEvent) int { return cmp.Compare(a.Sequence, b.Sequence) })
	p.joinTensors()
	slices.SortStableFunc(p.Contents, func(a, b ContentsInfo) int { return cmp.Compare(a.Sequence, b.Sequence) })
	for _, list := range p.Functions {
		slices.SortStableFunc(list, func(a, b FunctionInfo) int { return cmp.Compare(a.Sequence, b.Sequence) })
	}
	kept := map[[2]uint64][]byte{}
	for _, m := range p.Modules {
		if m.Code != nil {
			kept[[2]uint64{m.Hash, m.Bytes}] = m.Code
		}
	}
	for k := range p.Modules {
		if m := &p.Modules[k]; m.Code == nil && m.Hash != 0 {
			m.Code = kept[[2]uint64{m.Hash, m.Bytes}]
		}
	}
	clear(kept)
	for _, c := range p.Contents {
		if c.Data != nil {
			kept[[2]uint64{c.Hash, c.Bytes}] = c.Data
		}
	}
	for k := range p.Contents {
		if c := &p.Contents[k]; c.Data == nil && c.Hash != 0 {
			c.Data = kept[[2]uint64{c.Hash, c.Bytes}]
		}
	}
}
