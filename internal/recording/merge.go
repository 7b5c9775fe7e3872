// Merging: two recordings of one program, of which each saw what its own inputs made kernels touch. Addresses differ from run to run, so
// accesses are carried over from
// one to the other by the pointers that both gave to the same launch.

package recording

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"sort"
	"strings"
)

// Merged says how much of two processes was the same.
type Merged struct {
	Both    int `json:"both"`    // launches that were measured in both
	Widened int `json:"widened"` // of these, those that touched other bytes in the other, or in other ways: they count as touching both
	Opaque  int `json:"opaque"`  // of these, those that touched bytes in the other that cannot be found here: what their arguments point into counts too
	Alone   int `json:"alone"`   // launches that were measured here, and have no counterpart
}

// Merge widens what the launches of p were measured to touch by what the same launches of q touched. A launch is the same if its
// kernel, its shape, its place and its
// stream are, and its number among such launches, if both have as many of them.
func (p *Process) Merge(q *Process) Merged {
	var m Merged
	other := q.measuredLaunches()
	for key, mine := range p.measuredLaunches() {
		theirs := other[key]
		if len(mine) != len(theirs) {
			m.Alone += len(mine)
			continue
		}
		for k := range mine {
			m.Both++
			merged, widened, opaque := mergeLaunch(&mine[k], &theirs[k])
			p.Accesses[mine[k].number] = merged
			if widened {
				m.Widened++
			}
			if opaque {
				m.Opaque++
			}
		}
	}
	return m
}

// measuredLaunch is a launch with what it was given and what it touched.
type measuredLaunch struct {
	number   uint64
	access   *AccessInfo
	pointers []pointer
	loose    []Run   // what it touched of memory that no pointer leads to
	placed   []place // the rest
}

// pointer is a word of a launch's parameters that points into memory.
type pointer struct {
	word int // its number among the words
	at   uint64
	in   stretch
}

// place is a run as it is seen from a pointer.
type place struct {
	pointer int // of measuredLaunch.pointers
	offset  int64
	run     Run
}

// stretch is an allocation, or a tensor.
type stretch struct{ low, high uint64 }

// stretches are disjoint, in order.
type stretches []stretch

func (s *stretches) put(low, high uint64) {
	if high <= low {
		return
	}
	from := sort.Search(len(*s), func(k int) bool { return (*s)[k].high > low })
	to := sort.Search(len(*s), func(k int) bool { return (*s)[k].low >= high })
	*s = slices.Replace(*s, from, max(from, to), stretch{low, high})
}

func (s stretches) at(address uint64) (stretch, bool) {
	k := sort.Search(len(s), func(k int) bool { return s[k].high > address })
	if k == len(s) || address < s[k].low {
		return stretch{}, false
	}
	return s[k], true
}

// measuredLaunches lists the launches that were measured, and the nodes of graphs, by what makes two launches the same. What lay at an
// address last counts as lying there.
func (p *Process) measuredLaunches() map[string][]measuredLaunch {
	all := map[string][]measuredLaunch{}
	var allocations, tensors stretches
	memory := func(address uint64) (stretch, bool) {
		if is, found := tensors.at(address); found {
			return is, true
		}
		return allocations.at(address)
	}
	streams, created := map[uint64]int{}, 0
	stream := func(handle uint64) string {
		if handle <= 2 { // default streams
			return fmt.Sprint("default ", max(handle, 1))
		}
		return fmt.Sprint(streams[handle])
	}
	places := map[uint64]string{}
	where := func(place uint64) string {
		text, known := places[place]
		if !known {
			text = framesText(p.Places[place])
			places[place] = text
		}
		return text
	}
	nodes := map[uint64][]*Call{} // of graphs, by the beginning of the launch
	for k := range p.Calls {
		if call := &p.Calls[k]; call.Kind == NodeAccess {
			nodes[call.Args[1]] = append(nodes[call.Args[1]], call)
		}
	}
	add := func(key string, number uint64, parameters []byte) {
		if access := p.Accesses[number]; number != 0 && access != nil && !access.Unmeasured {
			all[key] = append(all[key], newMeasured(number, access, parameters, memory))
		}
	}
	tensor := 0
	for k := range p.Calls {
		call := &p.Calls[k]
		for ; tensor < len(p.Tensors) && p.Tensors[tensor].Sequence < call.Begin; tensor++ {
			if event := &p.Tensors[tensor]; event.Action == TensorAlloc {
				tensors.put(event.Address, event.Address+event.Bytes)
			}
		}
		if call.Result != 0 {
			continue
		}
		switch call.Kind {
		case Alloc:
			allocations.put(call.Args[0], call.Args[0]+call.Args[1])
		case StreamCreate:
			created++
			streams[call.Args[0]] = created
		case Launch:
			add(launchKey(p.FunctionName(call.Args[2], call.Begin), call.Args[4:11], stream(call.Args[0]), where(call.Place)), call.Args[3], call.Tail)
		case GraphLaunch:
			given := p.parametersOfNodes(call)
			list := nodes[call.Begin]
			slices.SortStableFunc(list, func(a, b *Call) int { return cmp.Compare(a.Args[2], b.Args[2]) })
			seen := map[string]int{}
			for _, node := range list {
				launched := nodeText(p.FunctionName(node.Args[4], call.Begin), node.Args[5:11])
				var parameters []byte
				if of := given[launched]; seen[launched] < len(of) {
					parameters = of[seen[launched]]
				}
				seen[launched]++
				add(launchKey(launched, nil, "graph on "+stream(call.Args[0]), where(call.Place)), node.Args[3], parameters)
			}
		}
	}
	return all
}

func launchKey(parts string, shape []uint64, stream, where string) string {
	return strings.Join([]string{parts, fmt.Sprint(shape), stream, where}, "\x00")
}

func nodeText(kernel string, shape []uint64) string { return fmt.Sprint(kernel, shape) }

// parametersOfNodes returns what the kernels of a launched graph are given, by kernel and shape, in the order of the graph. The driver makes
// the nodes that run in that order.
func (p *Process) parametersOfNodes(launch *Call) map[string][][]byte {
	const words, kernel = 10, 0 // before the parameters, and the type of such a node, see format.h
	given := map[string][][]byte{}
	k := len(p.Graphs) - 1
	for k >= 0 && (p.Graphs[k].Execution != launch.Args[2] || p.Graphs[k].Sequence > launch.Begin) {
		k--
	}
	if k < 0 {
		return given
	}
	for _, node := range p.Graphs[k].Nodes {
		if node.Type != kernel || len(node.Body) < 8*words {
			continue
		}
		shape := make([]uint64, 6)
		for w := range shape {
			shape[w] = binary.LittleEndian.Uint64(node.Body[8*(w+1):])
		}
		text := nodeText(p.FunctionName(binary.LittleEndian.Uint64(node.Body), launch.Begin), shape)
		given[text] = append(given[text], node.Body[8*words:])
	}
	return given
}

// framesText is a call stack as every run of the program has it.
func framesText(frames []Frame) string {
	var text strings.Builder
	for _, f := range frames {
		if f.Python {
			fmt.Fprintf(&text, "%s:%d %s\n", f.File, f.Line, f.Function)
		} else if f.File != "" {
			fmt.Fprintf(&text, "%s+%d\n", f.File, f.Offset)
		}
	}
	return text.String()
}

func newMeasured(number uint64, access *AccessInfo, parameters []byte, memory func(address uint64) (stretch, bool)) measuredLaunch {
	l := measuredLaunch{number: number, access: access}
	for at := 0; at+8 <= len(parameters); at += 8 {
		address := binary.LittleEndian.Uint64(parameters[at:])
		if in, found := memory(address); found {
			l.pointers = append(l.pointers, pointer{at / 8, address, in})
		}
	}
	for _, run := range access.Runs {
		for run.Bytes > 0 {
			piece := run
			in, found := memory(run.Address)
			if found {
				piece.Bytes = uint32(min(uint64(run.Bytes), in.high-run.Address))
			}
			k := -1
			if found {
				k = slices.IndexFunc(l.pointers, func(p pointer) bool { return p.in == in })
			}
			if k < 0 {
				l.loose = append(l.loose, piece)
			} else {
				l.placed = append(l.placed, place{k, int64(piece.Address - l.pointers[k].at), piece})
			}
			run.Address, run.Bytes = run.Address+uint64(piece.Bytes), run.Bytes-piece.Bytes
		}
	}
	return l
}

// mergeLaunch returns what a launch touches if it may touch what it did in either run. Widened tells that the other run says more than
// this one, and opaque that some of
// that cannot be found in this one: the two gave pointers in other places or to memory of other sizes, or touched other memory that no pointer leads to.
func mergeLaunch(mine, theirs *measuredLaunch) (merged *AccessInfo, widened, opaque bool) {
	whole := *mine.access
	merged = &whole
	merged.Lost, merged.Opaque, merged.Together = merged.Lost || theirs.access.Lost, merged.Opaque || theirs.access.Opaque, merged.Together ||
		theirs.access.Together
	same := func(a, b pointer) bool {
		return a.word == b.word && a.in.high-a.in.low == b.in.high-b.in.low && a.at-a.in.low == b.at-b.in.low
	}
	if !slices.EqualFunc(mine.pointers, theirs.pointers, same) || !sameLoose(mine.loose, theirs.loose) {
		merged.Opaque = true
		return merged, true, true
	}
	runs := slices.Clone(mine.access.Runs)
	for _, p := range theirs.placed {
		at := mine.pointers[p.pointer].at + uint64(p.offset)
		runs = append(runs, Run{at, p.run.Bytes, p.run.Modes})
	}
	runs = joined(disjoint(runs))
	if slices.Equal(runs, joined(disjoint(mine.access.Runs))) {
		return merged, whole.Lost != mine.access.Lost || whole.Opaque != mine.access.Opaque || whole.Together != mine.access.Together, false
	}
	merged.Runs = runs
	return merged, true, false
}

// sameLoose compares memory that no pointer leads to: its addresses differ from run to run.
func sameLoose(a, b []Run) bool {
	order := func(list []Run) []Run {
		list = slices.Clone(list)
		slices.SortFunc(list, func(x, y Run) int { return cmp.Or(cmp.Compare(x.Bytes, y.Bytes), cmp.Compare(x.Modes, y.Modes)) })
		return list
	}
	return slices.EqualFunc(order(a), order(b), func(x, y Run) bool { return x.Bytes == y.Bytes && x.Modes == y.Modes })
}

// joined joins runs that follow each other and were accessed in the same ways.
func joined(runs []Run) []Run {
	var out []Run
	for _, r := range runs {
		if n := len(out); n > 0 && out[n-1].Address+uint64(out[n-1].Bytes) == r.Address && out[n-1].Modes == r.Modes &&
			uint64(out[n-1].Bytes)+uint64(r.Bytes) < 1<<32 {
			out[n-1].Bytes += r.Bytes
			continue
		}
		out = append(out, r)
	}
	return out
}
