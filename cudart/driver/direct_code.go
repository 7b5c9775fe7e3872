// The kernel of direct all-reduces, as PTX. Each rank combines its part of the elements of all ranks and writes it to all of them.

package driver

import (
	"fmt"
	"math"
	"strings"

	"github.com/dagrun/dagrun/dag"
)

const (
	directEntry   = "allreduce"
	directMost    = 8  // ranks
	directBlocks  = 16 // of the kernel, at most
	directThreads = 512
	directLanes   = 32 // threads of a warp
	directSlot    = 32 // bytes of a slot: a count at 0, and where its writer reads and writes at 8 and 16
)

// directControl is how large the memory is in which other ranks tell a rank how far they are: a slot for each rank and block.
const directControl = directMost * directBlocks * directSlot

// directOperations are the instructions that combine two elements. Types and operations without one are left to NCCL.
var directOperations = map[dag.DType]map[dag.Reduction]string{
	dag.F32: {dag.Sum: "add.rn.f32", dag.Avg: "add.rn.f32", dag.Prod: "mul.rn.f32"},
	dag.F64: {dag.Sum: "add.rn.f64", dag.Avg: "add.rn.f64", dag.Prod: "mul.rn.f64"},
	dag.I32: {dag.Sum: "add.s32", dag.Prod: "mul.lo.s32", dag.Min: "min.s32", dag.Max: "max.s32"},
	dag.U32: {dag.Sum: "add.u32", dag.Prod: "mul.lo.u32", dag.Min: "min.u32", dag.Max: "max.u32"},
	dag.I64: {dag.Sum: "add.s64", dag.Prod: "mul.lo.s64", dag.Min: "min.s64", dag.Max: "max.s64"},
	dag.U64: {dag.Sum: "add.u64", dag.Prod: "mul.lo.u64", dag.Min: "min.u64", dag.Max: "max.u64"},
}

// directCode writes PTX for one rank of several. Block b of a rank goes with block b of the others: it tells them that it has begun and where its
// elements are, combines elements in the order of the ranks, and tells them that it is done. The blocks of a rank share its part between them. The
// arguments are where this rank reads and writes, from the beginning of its shared memory; where in that its part starts, in bytes; how many
// elements the part has; its counts of rounds, one for each block; a word that becomes 1 when communication ends early; and the shared and the
// control memory of each rank.
func directCode(ranks, own int, t dag.DType, op dag.Reduction) string {
	return newDirectWriter(ranks, own, t, op).text()
}

type directWriter struct {
	strings.Builder
	ranks, own int
	size       int    // bytes of an element
	operation  string // combines two elements
	mean       string // makes the mean of the sum, with by; "" for no mean
	by         float64
	labels     int
}

// directPart returns the part of the elements that a rank combines: the first, and how many. Parts begin at whole vectors of 16 bytes.
func directPart(elements int64, ranks, own int) (first, count int64) {
	part := (elements/int64(ranks) + 15) / 16 * 16
	first = min(elements, part*int64(own))
	if own == ranks-1 {
		return first, elements - first
	}
	return first, min(elements, first+part) - first
}

func newDirectWriter(ranks, own int, t dag.DType, op dag.Reduction) *directWriter {
	w := &directWriter{ranks: ranks, own: own, size: int(t.Size()), operation: directOperations[t][op]}
	if op == dag.Avg {
		w.mean, w.by = "div.rn", float64(ranks)
		if ranks&(ranks-1) == 0 { // the same bits, for less
			w.mean, w.by = "mul.rn", 1/float64(ranks)
		}
	}
	return w
}

func (w *directWriter) line(format string, values ...any) {
	fmt.Fprintf(w, "\t"+format+";\n", values...)
}

// open begins the kernel: after where it reads and writes come some parameters, and after them some of each rank.
func (w *directWriter) open(parameters []string, ofRanks ...string) {
	w.WriteString(".version 6.0\n.target sm_70\n.address_size 64\n\n.visible .entry " + directEntry + "(\n")
	w.WriteString("\t.param .u64 from, .param .u64 to, .param .u64 " + strings.Join(parameters, ", .param .u64 "))
	for r := range w.ranks {
		for k, name := range ofRanks {
			fmt.Fprintf(w, "%s.param .u64 %s%d", []string{",\n\t", ", "}[min(k, 1)], name, r)
		}
	}
	w.WriteString("\n)\n{\n")
}

func (w *directWriter) text() string {
	w.open([]string{"start", "count", "rounds", "stop"}, "memory", "control")
	w.line(".reg .pred %%p, %%q")
	w.line(".reg .b32 %%thread, %%threads, %%block, %%blocks, %%round, %%seen, %%polls, %%t, %%lane, %%taken, %%piece, %%e<%d>", 4*w.unroll()*(w.ranks+1))
	w.line(".reg .b64 %%from, %%to, %%start, %%count, %%rounds, %%counter, %%later, %%stop, %%here, %%there, %%x, %%y, %%vectors, %%i, %%step, %%at, %%source<%d>, %%target<%d>, %%d<%d>", w.ranks, w.ranks,
		2*w.unroll()*(w.ranks+1))
	w.line(".reg .b64 %%offset")
	w.line(".reg .pred %%in<%d>", w.unroll())
	w.line(".shared .align 8 .b8 places[%d]", 16*w.ranks)
	w.line(".shared .align 4 .b32 stopped")
	w.begin()
	w.addresses()
	w.vectors()
	w.elements()
	w.end()
	w.line("ret")
	w.WriteString("}\n")
	return w.String()
}

// unroll is how many vectors of 16 bytes a thread reads from each rank at once.
func (w *directWriter) unroll() int { return max(1, 8/w.ranks) }

func (w *directWriter) label() string {
	w.labels++
	return fmt.Sprintf("L%d", w.labels)
}

// begin tells the other ranks where this one reads and writes, and waits until they have begun.
func (w *directWriter) begin() {
	w.line("mov.u32 %%thread, %%tid.x")
	w.line("mov.u32 %%threads, %%ntid.x")
	w.line("mov.u32 %%block, %%ctaid.x")
	w.line("mov.u32 %%blocks, %%nctaid.x")
	w.line("ld.param.u64 %%stop, [stop]")
	w.line("ld.param.u64 %%rounds, [rounds]")
	w.line("mad.wide.u32 %%rounds, %%block, 4, %%rounds")
	w.line("ld.volatile.global.u32 %%round, [%%rounds]")
	w.line("add.u32 %%round, %%round, 1")
	w.line("mov.u32 %%t, 0")
	w.line("st.shared.u32 [stopped], %%t")
	w.line("bar.sync 0")
	w.counters()
	w.line("or.b32 %%polls, %%thread, %%block")
	w.line("setp.eq.u32 %%p, %%polls, 0")
	w.line("@%%p st.global.u32 [%%later], %%t")
	ready, own := w.label(), w.label()
	w.line("setp.ge.u32 %%p, %%thread, %d", w.ranks)
	w.line("@%%p bra %s", ready)
	w.line("ld.param.u64 %%from, [from]")
	w.line("ld.param.u64 %%to, [to]")
	w.line("ld.param.u64 %%there, [control0]")
	for r := 1; r < w.ranks; r++ {
		w.line("ld.param.u64 %%x, [control%d]", r)
		w.line("setp.eq.u32 %%q, %%thread, %d", r)
		w.line("selp.b64 %%there, %%x, %%there, %%q")
	}
	w.line("mad.wide.u32 %%there, %%block, %d, %%there", directSlot)
	w.line("add.u64 %%there, %%there, %d", w.own*directBlocks*directSlot)
	w.line("ld.param.u64 %%here, [control%d]", w.own)
	w.line("mad.wide.u32 %%here, %%block, %d, %%here", directSlot)
	w.line("mad.wide.u32 %%here, %%thread, %d, %%here", directBlocks*directSlot)
	w.line("setp.eq.u32 %%q, %%thread, %d", w.own)
	w.line("@%%q bra %s", own)
	w.line("st.volatile.global.u64 [%%there+8], %%from")
	w.line("st.volatile.global.u64 [%%there+16], %%to")
	w.meet()
	w.line("ld.volatile.global.u64 %%from, [%%here+8]")
	w.line("ld.volatile.global.u64 %%to, [%%here+16]")
	w.WriteString(own + ":\n")
	w.line("mov.u64 %%x, places")
	w.line("mad.wide.u32 %%x, %%thread, 16, %%x")
	w.line("st.shared.u64 [%%x], %%from")
	w.line("st.shared.u64 [%%x+8], %%to")
	w.WriteString(ready + ":\n")
	w.line("bar.sync 0")
	w.line("ld.shared.u32 %%t, [stopped]")
	w.line("setp.ne.u32 %%p, %%t, 0")
	w.line("@%%p ret")
}

// counters are where this all-reduce counts the pieces that its warps have taken, and where the next one does, which is set to 0 meanwhile: in the
// slot in which the rank would tell itself something.
func (w *directWriter) counters() {
	w.line("ld.param.u64 %%x, [control%d]", w.own)
	w.line("add.u64 %%x, %%x, %d", w.own*directBlocks*directSlot)
	w.line("and.b32 %%polls, %%round, 2") // 0 and 2 in turn: an all-reduce is two steps
	w.line("mad.wide.u32 %%counter, %%polls, 2, %%x")
	w.line("xor.b32 %%polls, %%polls, 2")
	w.line("mad.wide.u32 %%later, %%polls, 2, %%x")
}

// meet tells the rank of this thread the round, and waits until that rank has told the same.
func (w *directWriter) meet() {
	again, met := w.label(), w.label()
	w.line("st.release.sys.global.u32 [%%there], %%round")
	w.line("mov.u32 %%polls, 0")
	w.WriteString(again + ":\n")
	w.line("ld.acquire.sys.global.u32 %%seen, [%%here]")
	w.line("sub.s32 %%t, %%seen, %%round")
	w.line("setp.ge.s32 %%q, %%t, 0")
	w.line("@%%q bra %s", met)
	w.waitOn("%q", again)
	w.line("st.shared.u32 [stopped], %%t")
	w.WriteString(met + ":\n")
}

// waitOn goes back to a label unless communication ends early. It looks at the word that says so now and then only, because that is in the host's
// memory.
func (w *directWriter) waitOn(predicate, again string) {
	w.line("add.u32 %%polls, %%polls, 1")
	w.line("and.b32 %%t, %%polls, 1023")
	w.line("setp.ne.u32 %s, %%t, 0", predicate)
	w.line("@%s bra %s", predicate, again)
	w.line("ld.volatile.global.u32 %%t, [%%stop]")
	w.line("setp.eq.u32 %s, %%t, 0", predicate)
	w.line("@%s bra %s", predicate, again)
}

// addresses computes where the part starts on each rank. Unless it starts at whole vectors everywhere, there are none.
func (w *directWriter) addresses() {
	w.line("ld.param.u64 %%start, [start]")
	w.line("ld.param.u64 %%count, [count]")
	w.line("mov.u64 %%y, 0")
	for r := range w.ranks {
		w.line("ld.param.u64 %%x, [memory%d]", r)
		w.line("add.u64 %%x, %%x, %%start")
		w.line("ld.shared.u64 %%source%d, [places+%d]", r, 16*r)
		w.line("ld.shared.u64 %%target%d, [places+%d]", r, 16*r+8)
		w.line("add.u64 %%source%d, %%source%d, %%x", r, r)
		w.line("add.u64 %%target%d, %%target%d, %%x", r, r)
		w.line("or.b64 %%y, %%y, %%source%d", r)
		w.line("or.b64 %%y, %%y, %%target%d", r)
	}
	w.line("and.b64 %%y, %%y, 15")
	w.line("setp.eq.u64 %%p, %%y, 0")
	shift := 2
	if w.size == 8 {
		shift = 1
	}
	w.line("shr.u64 %%x, %%count, %d", shift)
	w.line("selp.b64 %%vectors, %%x, 0, %%p")
}

// vector names the registers of a vector: those of a rank, or, as the rank after the last, of the result.
func (w *directWriter) vector(rank, u int) []string {
	names, letter := make([]string, 16/w.size), "e"
	if w.size == 8 {
		letter = "d"
	}
	for k := range names {
		names[k] = fmt.Sprintf("%%%s%d", letter, (rank*w.unroll()+u)*len(names)+k)
	}
	return names
}

// load is how elements of a rank are read: those of other ranks from their memory each time.
func (w *directWriter) load(rank int) string {
	if rank == w.own {
		return "ld.global"
	}
	return "ld.volatile.global"
}

// combine puts the combination of some registers of all ranks, in their order, into those of the first.
func (w *directWriter) combine(of func(rank int) []string) {
	result := of(0)
	for r := 1; r < w.ranks; r++ {
		for k, more := range of(r) {
			w.line("%s %s, %s, %s", w.operation, result[k], result[k], more)
		}
	}
	if w.mean != "" {
		by := fmt.Sprintf("0f%08X", math.Float32bits(float32(w.by)))
		if w.size == 8 {
			by = fmt.Sprintf("0d%016X", math.Float64bits(w.by))
		}
		for _, name := range result {
			w.line("%s.f%d %s, %s, %s", w.mean, 8*w.size, name, name, by)
		}
	}
}

// vectors combines whole vectors in pieces. A warp takes the next piece when it has time, because some get on faster than others, with other
// kernels beside them and without.
func (w *directWriter) vectors() {
	again, last, done := w.label(), w.label(), w.label()
	piece := directLanes * w.unroll()
	w.line("and.b32 %%lane, %%thread, %d", directLanes-1)
	w.take()
	w.WriteString(again + ":\n")
	w.line("shfl.sync.idx.b32 %%piece, %%taken, 0, 31, -1")
	w.line("mul.wide.u32 %%i, %%piece, %d", piece)
	w.line("setp.ge.u64 %%p, %%i, %%vectors")
	w.line("@%%p bra %s", done)
	w.take()
	w.line("add.u64 %%at, %%i, %d", piece)
	w.line("setp.gt.u64 %%p, %%at, %%vectors")
	w.line("cvt.u64.u32 %%x, %%lane")
	w.line("add.u64 %%i, %%i, %%x")
	w.line("@%%p bra %s", last)
	w.piece(true)
	w.line("bra %s", again)
	w.WriteString(last + ":\n")
	for u := range w.unroll() {
		w.line("add.u64 %%at, %%i, %d", directLanes*u)
		w.line("setp.lt.u64 %%in%d, %%at, %%vectors", u)
	}
	w.piece(false)
	w.line("bra %s", again)
	w.WriteString(done + ":\n")
}

// take lets the first lane of a warp take the number of its next piece, long before that is needed.
func (w *directWriter) take() {
	w.line("setp.eq.u32 %%q, %%lane, 0")
	w.line("@%%q atom.global.add.u32 %%taken, [%%counter], 1")
}

// piece combines a thread's vectors of a piece: all of them, or those that the predicates say.
func (w *directWriter) piece(whole bool) {
	kind := fmt.Sprintf("v%d.b%d", 16/w.size, 8*w.size)
	where := func(u int) string {
		if whole {
			return ""
		}
		return fmt.Sprintf("@%%in%d ", u)
	}
	w.line("shl.b64 %%offset, %%i, 4")
	for k := range w.ranks {
		r := (w.own + 1 + k) % w.ranks // its own elements last: they are near
		w.line("add.u64 %%at, %%source%d, %%offset", r)
		for u := range w.unroll() {
			w.line("%s%s.%s {%s}, [%%at+%d]", where(u), w.load(r), kind, strings.Join(w.vector(r, u), ", "), 16*directLanes*u)
		}
	}
	for u := range w.unroll() {
		w.combine(func(rank int) []string { return w.vector(rank, u) })
	}
	for r := range w.ranks {
		w.line("add.u64 %%at, %%target%d, %%offset", r)
		for u := range w.unroll() {
			w.line("%sst.global.%s [%%at+%d], {%s}", where(u), kind, 16*directLanes*u, strings.Join(w.vector(0, u), ", "))
		}
	}
}

// elements does what is left after the vectors, one by one.
func (w *directWriter) elements() {
	again, done := w.label(), w.label()
	w.line("mad.lo.u32 %%t, %%block, %%threads, %%thread")
	w.line("cvt.u64.u32 %%i, %%t")
	w.line("mul.wide.u32 %%step, %%blocks, %%threads")
	shift := 2
	if w.size == 8 {
		shift = 1
	}
	w.line("shl.b64 %%x, %%vectors, %d", shift)
	w.line("add.u64 %%i, %%i, %%x")
	w.WriteString(again + ":\n")
	w.line("setp.ge.u64 %%p, %%i, %%count")
	w.line("@%%p bra %s", done)
	w.line("mul.lo.u64 %%offset, %%i, %d", w.size)
	for r := range w.ranks {
		w.line("add.u64 %%at, %%source%d, %%offset", r)
		w.line("%s.b%d %s, [%%at]", w.load(r), 8*w.size, w.vector(r, 0)[0])
	}
	w.combine(func(rank int) []string { return w.vector(rank, 0)[:1] })
	for r := range w.ranks {
		w.line("add.u64 %%at, %%target%d, %%offset", r)
		w.line("st.global.b%d [%%at], %s", 8*w.size, w.vector(0, 0)[0])
	}
	w.line("add.u64 %%i, %%i, %%step")
	w.line("bra %s", again)
	w.WriteString(done + ":\n")
}

// end waits until all ranks have written what this rank is to get.
func (w *directWriter) end() {
	over := w.label()
	w.line("membar.sys")
	w.line("bar.sync 0")
	w.line("add.u32 %%round, %%round, 1")
	w.line("setp.ge.u32 %%p, %%thread, %d", w.ranks)
	w.line("@%%p bra %s", over)
	w.line("setp.eq.u32 %%p, %%thread, %d", w.own)
	w.line("@%%p bra %s", over)
	w.meet()
	w.WriteString(over + ":\n")
	w.line("bar.sync 0")
	w.line("st.volatile.global.u32 [%%rounds], %%round")
}
