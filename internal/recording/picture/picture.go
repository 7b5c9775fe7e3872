// Package picture draws a recording: a row for each stream and one for the host, boxes in the order in which the program submitted them, waits as arrows, races
// in red, and in grey the waits that no conflict needs.
package picture

import (
	"fmt"
	"strings"

	"github.com/dagrun/dagrun/internal/recording"
	"github.com/dagrun/dagrun/internal/recording/order"
)

// DefaultBoxes is about how many boxes a picture has at most.
const DefaultBoxes = 400

// Picture is what is drawn.
type Picture struct {
	title   string
	verdict string
	rows    []string
	boxes   []box
	arrows  []arrow
	races   []arrow
}

// box is one call, or several of a row that follow each other.
type box struct {
	row         int
	first, last int // positions in the order of submission
	count       int
	name        string // of the first
	places      []string
	kept        bool // something leads to it or from it: it is not merged first
	racy        bool
	host        bool
	needless    bool // all its calls are waits that no conflict needs
}

// arrow leads from one box to another.
type arrow struct {
	from, to int
	count    int
	text     string
	needless bool // all of them
}

// New prepares the picture of a process. report is what order.Check found: with Options.Strict, waits that no conflict needs are grey. most is about how many
// boxes there may be, 0 for DefaultBoxes.
func New(p *recording.Process, report *order.Report, most int) (*Picture, error) {
	steps, err := order.Steps(p)
	if err != nil {
		return nil, err
	}
	if most <= 0 {
		most = DefaultBoxes
	}
	x := &Picture{title: strings.Join(p.Command, " "), verdict: report.Verdict()}
	if len([]rune(x.title)) > 80 {
		x.title = string([]rune(x.title)[:79]) + "…"
	}
	needless := map[*recording.Call]bool{}
	if report.Strict != nil {
		for _, list := range [][]order.Needless{report.Strict.Waits, report.Strict.Synchronizations} {
			for _, place := range list {
				for _, call := range place.Calls {
					needless[call] = true
				}
			}
		}
	}
	rows := map[string]int{}
	at := map[int32]int{} // the box of a call
	for k, step := range steps {
		row, seen := rows[step.Stream]
		if !seen {
			row = len(x.rows)
			rows[step.Stream] = row
			x.rows = append(x.rows, step.Stream)
		}
		call := &p.Calls[step.Call]
		if _, drawn := at[step.Call]; drawn && step.Stream != HostRow {
			continue // it is drawn where it is work
		}
		at[step.Call] = len(x.boxes)
		x.boxes = append(x.boxes, box{row: row, first: k, last: k, count: 1, name: CallName(p, call), places: []string{p.PlaceText(call.Place)},
			host: step.Stream == HostRow, needless: needless[call]})
		for _, record := range step.For {
			if from, known := at[record]; known {
				x.arrows = append(x.arrows, arrow{from: from, to: len(x.boxes) - 1, count: 1, needless: needless[call]})
				x.boxes[from].kept, x.boxes[len(x.boxes)-1].kept = true, true
			}
		}
	}
	calls := map[*recording.Call]int{}
	for call, box := range at {
		calls[&p.Calls[call]] = box
	}
	for _, list := range [][]order.Race{report.Races, report.Possible} {
		for _, race := range list {
			from, known := calls[race.First.Call]
			to, also := calls[race.Second.Call]
			if known && also {
				x.races = append(x.races, arrow{from: from, to: to, count: race.Count, text: fmt.Sprintf("%s on %d bytes", race.Kinds, race.Bytes)})
				x.boxes[from].racy, x.boxes[to].racy = true, true
			}
		}
	}
	x.merge(most)
	return x, nil
}

// HostRow is the row of calls in which the host waits.
const HostRow = "the host"

// merge joins neighbours of a row until there are few enough boxes: first those that nothing leads to or from, then what events connect, last what races.
func (x *Picture) merge(most int) {
	for _, may := range []func(a, b *box) bool{
		func(a, b *box) bool { return !a.kept && !b.kept && !a.racy && !b.racy },
		func(a, b *box) bool { return !a.racy && !b.racy },
		func(a, b *box) bool { return true },
	} {
		for room := 2; len(x.boxes) > most && room <= 1<<20; room *= 2 {
			before := -1
			for before != len(x.boxes) && len(x.boxes) > most {
				before = len(x.boxes)
				x.mergeOnce(may, room)
			}
		}
	}
}

// mergeOnce joins pairs of neighbours that together hold at most so many calls.
func (x *Picture) mergeOnce(may func(a, b *box) bool, room int) {
	last := map[int]int{} // of each row: the box before, in the new list
	into := make([]int, len(x.boxes))
	var boxes []box
	for k := range x.boxes {
		b := x.boxes[k]
		if at, ok := last[b.row]; ok && may(&boxes[at], &b) && boxes[at].count+b.count <= room {
			a := &boxes[at]
			a.last, a.count = b.last, a.count+b.count
			a.kept, a.racy, a.needless = a.kept || b.kept, a.racy || b.racy, a.needless && b.needless
			if len(a.places) < 8 {
				a.places = append(a.places, b.places...)
			}
			into[k] = at
			continue
		}
		last[b.row] = len(boxes)
		into[k] = len(boxes)
		boxes = append(boxes, b)
	}
	x.boxes = boxes
	x.arrows = redirected(x.arrows, into)
	x.races = redirected(x.races, into)
}

func redirected(arrows []arrow, into []int) []arrow {
	var list []arrow
	known := map[[2]int]int{}
	for _, a := range arrows {
		a.from, a.to = into[a.from], into[a.to]
		if a.from == a.to {
			continue
		}
		if at, ok := known[[2]int{a.from, a.to}]; ok {
			list[at].count += a.count
			list[at].needless = list[at].needless && a.needless
			continue
		}
		known[[2]int{a.from, a.to}] = len(list)
		list = append(list, a)
	}
	return list
}

var names = map[recording.Kind]string{
	recording.Copy: "copy", recording.Set: "memset", recording.EventRecord: "record", recording.StreamWait: "wait", recording.EventSync: "waits for an event",
	recording.EventQuery: "finds an event complete", recording.StreamSync: "waits for a stream", recording.StreamQuery: "finds a stream complete",
	recording.ContextSync: "waits for the device", recording.Alloc: "allocation", recording.Free: "free",
	recording.HostFunction: "host function", recording.MemoryWait: "wait for a value", recording.MemoryWrite: "write of a value", recording.GraphLaunch: "graph",
	recording.Prefetch: "prefetch",
}

// CallName says in a few words what a call is.
func CallName(p *recording.Process, call *recording.Call) string {
	switch name := names[call.Kind]; {
	case call.Kind == recording.Launch:
		return recording.PlainName(p.FunctionName(call.Args[2], call.Begin))
	case name != "":
		return name
	}
	return call.Kind.String()
}
