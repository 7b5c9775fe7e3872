// Traces of loops and branches: what is measured of them in a traced replay, as streams or as a graph.

package engine

import (
	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/kernels/conditions"
	"github.com/dagrun/dagrun/runtime/internal/spans"
)

// What a trace shows of the passes of one loop or branch in one replay is bounded: so many passes and nodes of its body in streams, and so
// many stamps in a graph. All loops and branches together share tracedInAll.
const (
	tracedOfLoop = 4096
	tracedInAll  = 1 << 18
	fewestTraced = 16
	// partOfRun is the part of this that one run of a loop in the body of another one may take, so that several runs are shown.
	partOfRun = 16
)

// What Trace.Bodies says.
const (
	TracedNodes  = "nodes"
	tracedPasses = "passes"
)

// tracedRoom is the room for each of so many loops and branches.
func tracedRoom(loops int) int64 {
	return max(fewestTraced, min(tracedOfLoop, tracedInAll/int64(max(1, loops))))
}

// BodiesTraced is what a trace measures of loops and branches.
func (p *Program) BodiesTraced() string {
	switch {
	case p.bodies == nil:
		return ""
	case p.mode == Streams:
		return TracedNodes
	}
	return tracedPasses
}

// nests lists the loops and branches of an instance, each list being one that is in no other and all in its bodies, outer ones first.
func (in *instance) nests() [][]*control {
	var nests [][]*control
	for _, c := range in.controls {
		if c != nil {
			nests = append(nests, c.nested(nil))
		}
	}
	return nests
}

// allStreams adds the streams of an instance and of all bodies in it to a list.
func (in *instance) allStreams(list []cudart.Stream) []cudart.Stream {
	list = append(list, in.streams...)
	for _, c := range in.controls {
		if c == nil {
			continue
		}
		for _, body := range c.bodies {
			list = body.in.allStreams(list)
		}
	}
	return list
}

// passList is what is shown of one loop or branch in one replay.
type passList struct {
	control *control
	outer   *passList          // of the loop or branch around it, nil for none
	body    int                // of that one, that it is in
	node    int                // its number in that body, or in the whole pipeline
	passes  []spans.TracedPass // Within is the place in the list of outer
	shown   int64
	logged  []spans.TracedPass // of stamps: all that were written
	kept    []int              // the place of each of these in passes, or -1
}

// newPassLists makes a list for each loop or branch of a nest, outer ones first.
func newPassLists(nest []*control) []*passList {
	lists := make([]*passList, len(nest))
	of := map[*control]*passList{}
	for k, c := range nest {
		if lists[k] = of[c]; lists[k] == nil {
			lists[k] = &passList{control: c, node: c.place}
		}
		for b, body := range c.bodies {
			for _, inner := range body.in.controls {
				if inner != nil {
					of[inner] = &passList{control: inner, outer: lists[k], body: b, node: inner.place}
				}
			}
		}
	}
	return lists
}

// joinPasses makes one list of all.
func joinPasses(lists []*passList) ([]spans.TracedLoop, []spans.TracedPass) {
	var loops []spans.TracedLoop
	var passes []spans.TracedPass
	begins := map[*passList]int{}
	for _, l := range lists {
		begins[l] = len(passes)
		for _, p := range l.passes {
			if l.outer != nil {
				p.Within += begins[l.outer]
			} else {
				p.Within = -1
			}
			passes = append(passes, p)
		}
		loops = append(loops, spans.TracedLoop{Loop: l.control.loop(), Shown: l.shown})
	}
	return loops, passes
}

// stampLog is where the kernels of one loop or branch of a graph, and of all in its bodies, write when they ran: so much room for each.
type stampLog struct {
	nest     []*control
	room     int64
	platform cudart.Platform
	device   cudart.Ptr
	host     cudart.Ptr
	words    []int64 // at host
	fetch    cudart.List
}

const stampBytes = 8 * conditions.StampWords
