// Which launches of each stream have finished before given launches start: for the lifetimes of buffers.

package order

import (
	"math"

	"github.com/dagrun/dagrun/planner/internal/scratch"
	"github.com/dagrun/dagrun/planner/plan"
)

// never is the position of a launch that does not exist.
const never = math.MaxInt32

// widest is the most streams that one pass looks ahead on. Rows as wide as all streams would take gigabytes for thousands of streams.
const widest = 64

// Entries bounds the memory that tables of positions take, to 64 MiB.
const Entries = 1 << 24

// passWidth returns how many of the streams one pass looks ahead on if it keeps this many rows.
func passWidth(streams, rows int) int {
	return max(1, min(streams, widest, max(8, Entries/max(1, rows))))
}

// Asked is a launch whose past is asked for, and the row of the answer.
type Asked struct{ Node, Row int32 }

// Finished fills a table with a row for each group of launches and a column for each stream that has one: the last launch of
// that stream which has finished before any launch of the group starts, 0 for none. column is by stream, -1 for those left out.
//
// It walks backwards and keeps, for each stream and event, the first launch of every stream that starts after this point. When that
// becomes an earlier launch, the last launch that precedes the asked launches from there on has just been found.
func (s *Schedule) Finished(p *plan.Plan, asked []Asked, rows int, column []int32, columns int) []int32 {
	f := &finished{p: p, s: s, column: column, columns: columns, table: make([]int32, rows*columns)}
	for i := range f.table {
		f.table[i] = never
	}
	f.group(asked)
	width := passWidth(len(f.streams), len(p.Streams)+int(p.Events))
	for low := 0; low < len(f.streams); low += width {
		f.pass(f.streams[low:min(low+width, len(f.streams))])
	}
	return f.table
}

// finished is a walk against the submission order.
type finished struct {
	p       *plan.Plan
	s       *Schedule
	column  []int32
	columns int
	table   []int32

	streams []int32 // those of the asked launches
	start   []int32 // by stream, into asked
	asked   []Asked // by stream, the last launch first

	next   []int32 // by stream and looked-ahead stream: the first launch there that starts after this point
	events []int32 // by event and looked-ahead stream: the same for what waits for the event's record
	waited []bool  // by event: its row is in use
	cursor []int32 // by stream and looked-ahead stream, into asked: the first one not yet answered
	left   []int32 // by stream, launches before this point
}

// group sorts the asked launches by stream, and those of one stream from the last to the first.
func (f *finished) group(asked []Asked) {
	most := int32(0)
	for _, count := range f.s.counts {
		most = max(most, count)
	}
	spot := func(k int32) Spot { return f.s.Spots[asked[k].Node] }
	sorted := scratch.CountingSort(len(asked), int(most)+1, nil, func(k int32) int32 { return most - spot(k).Pos })
	sorted = scratch.CountingSort(len(asked), len(f.s.counts), sorted, func(k int32) int32 { return spot(k).Stream })
	f.start = make([]int32, len(f.s.counts)+1)
	f.asked = make([]Asked, len(asked))
	for i, k := range sorted {
		f.asked[i] = asked[k]
		f.start[spot(k).Stream+1]++
	}
	for stream := range f.s.counts {
		if f.start[stream+1] > 0 {
			f.streams = append(f.streams, int32(stream))
		}
		f.start[stream+1] += f.start[stream]
	}
}

// pass looks ahead on some streams and answers what is asked about them.
func (f *finished) pass(ahead []int32) {
	n, width := len(f.p.Streams), len(ahead)
	f.next, f.cursor = scratch.Sized(f.next, n*width), scratch.Sized(f.cursor, n*width)
	f.events, f.waited = scratch.Sized(f.events, int(f.p.Events)*width), scratch.Zeroed(f.waited, int(f.p.Events))
	f.left = append(f.left[:0], f.s.counts...)
	for i := range f.next {
		f.next[i], f.cursor[i] = never, f.start[ahead[i%width]]
	}
	own := make([]int32, n) // by stream, its place in ahead, plus 1
	for k, stream := range ahead {
		own[stream] = int32(k) + 1
	}
	forEachOpBackward(f.p, func(stream int32, op *plan.Op) {
		row := f.next[int(stream)*width:][:width]
		switch op.Kind {
		case plan.Launch:
			if k := own[stream]; k > 0 {
				row[k-1] = f.left[stream]
			}
			f.left[stream]--
		case plan.Wait:
			event := f.events[int(op.Event)*width:][:width]
			if f.waited[op.Event] {
				lower(event, row)
			} else {
				copy(event, row)
				f.waited[op.Event] = true
			}
		case plan.Record:
			if f.waited[op.Event] {
				f.waited[op.Event] = false
				f.meet(stream, ahead, row, f.events[int(op.Event)*width:][:width])
			}
		}
	})
	for stream := range int32(n) {
		f.close(stream, ahead)
	}
}

// meet notes that what waits for a record starts after the launches of its stream up to here.
func (f *finished) meet(stream int32, ahead, row, waiting []int32) {
	pos, column := f.left[stream], f.column[stream]
	cursor := f.cursor[int(stream)*len(ahead):]
	for k, first := range waiting {
		if first >= row[k] {
			continue
		}
		row[k] = first
		if column >= 0 && ahead[k] != stream {
			cursor[k] = f.answer(cursor[k], f.start[ahead[k]+1], first, column, pos)
		}
	}
}

// answer notes what has finished before the asked launches from a position on. It returns the first asked launch that is not among them.
func (f *finished) answer(from, to, first, column, pos int32) int32 {
	for ; from < to && f.s.Spots[f.asked[from].Node].Pos >= first; from++ {
		cell := &f.table[int(f.asked[from].Row)*f.columns+int(column)]
		*cell = min(*cell, pos)
	}
	return from
}

// close answers the rest: no launch of the stream has finished before them, or, on the same stream, the launch before.
func (f *finished) close(stream int32, ahead []int32) {
	column := f.column[stream]
	if column < 0 {
		return
	}
	for k, target := range ahead {
		from, to := f.cursor[int(stream)*len(ahead)+k], f.start[target+1]
		if target != stream {
			f.answer(from, to, 0, column, 0)
			continue
		}
		for ; from < to; from++ {
			f.answer(from, from+1, 0, column, f.s.Spots[f.asked[from].Node].Pos-1)
		}
	}
}

// lower makes a row start as early as another.
func lower(row, other []int32) {
	row = row[:len(other)]
	for k, first := range other {
		row[k] = min(row[k], first)
	}
}
