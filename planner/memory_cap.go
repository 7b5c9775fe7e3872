// The memory cap: plans that need more are made again with fewer things at once, or refused with what is missing. Inserts no waits and places no
// buffer itself.

package planner

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/internal/words"
	"github.com/dagrun/dagrun/planner/internal/layout"
	"github.com/dagrun/dagrun/planner/internal/place"
	"github.com/dagrun/dagrun/planner/plan"
)

// ErrMemoryCap is what a *MemoryCapError matches.
var ErrMemoryCap = errors.New("memory cap exceeded")

// MemoryCapError says that no plan was found that fits Options.MemoryCap.
type MemoryCapError struct {
	Device   int32
	Cap      int64
	Needed   int64 // bytes of the device in the plan that came closest
	Node     int32 // where the most bytes are alive in that plan; -1 where all of them are kept
	NodeName string
	Live     []layout.LiveBuffer // what is alive there, the largest first
}

// mostListed is how many buffers the message names; Live has them all.
const mostListed = 8

// Error names the device, what is missing and what is alive at the peak.
func (e *MemoryCapError) Error() string {
	var text strings.Builder
	fmt.Fprintf(&text, "device %d needs %s, %s more than the memory cap of %s; alive at once", e.Device, words.Bytes(e.Needed), words.Bytes(e.Needed-e.Cap), words.Bytes(e.Cap))
	if e.Node >= 0 {
		fmt.Fprintf(&text, " at %q", e.NodeName)
	}
	for k, b := range e.Live {
		if k == mostListed {
			fmt.Fprintf(&text, " and %d more", len(e.Live)-k)
			break
		}
		fmt.Fprintf(&text, "%s %q (%s", map[bool]string{true: ":", false: ","}[k == 0], b.Name, words.Bytes(b.Bytes))
		if b.Kept {
			text.WriteString(", kept throughout")
		}
		text.WriteString(")")
	}
	return text.String()
}

// Is makes errors.Is(err, ErrMemoryCap) true.
func (e *MemoryCapError) Is(target error) bool { return target == ErrMemoryCap }

// cappedSearch bounds the graphs for which every way to fit is tried and the fastest taken; larger ones take the first that fits.
const cappedSearch = 20_000

// fitMemory returns the plan if it fits the cap, else the best plan found that does: with fewer streams, or with nodes submitted in
// an order that keeps few bytes alive, on as many streams as fit. replan makes a plan as the options say, but with so many
// compute streams; finish makes a plan of an assignment, memory layout and predictions included.
func fitMemory(g *dag.Graph, p *place.Problem, o Options, plan *Plan, replan func(streams int) (*Plan, error), finish func(*place.Assignment) (*Plan, error)) (*Plan, error) {
	if o.MemoryCap <= 0 || overCap(plan, o.MemoryCap) == 0 {
		return plan, nil
	}
	closest := plan
	if kept, err := keptBytes(g, o); err != nil {
		return nil, err
	} else if kept > o.MemoryCap {
		return nil, capError(g, o, closest)
	}
	var best *Plan
	consider := func(made *Plan) bool {
		if over := overCap(made, o.MemoryCap); over > 0 {
			if over < overCap(closest, o.MemoryCap) {
				closest = made
			}
			return false
		}
		if best == nil || made.Stats.MakespanUS < best.Stats.MakespanUS {
			best = made
		}
		return true
	}
	for streams := o.Streams / 2; streams >= 1; streams /= 2 {
		made, err := replan(streams)
		if errors.Is(err, place.ErrTooManyStreams) {
			break
		}
		if err != nil {
			return nil, err
		}
		if consider(made) {
			break
		}
	}
	if best != nil && g.Len() > cappedSearch {
		return best, nil
	}
	order := place.FrugalOrder(p, tightBuffers(g, plan, o.MemoryCap))
	for streams := o.Streams; streams >= 1; streams /= 2 {
		made, err := finish(place.InOrder(p, order, streams))
		if err != nil {
			return nil, err
		}
		if consider(made) {
			break
		}
	}
	if best == nil {
		return nil, capError(g, o, closest)
	}
	return best, nil
}

// overCap is by how much the fullest device misses the cap.
func overCap(p *Plan, limit int64) int64 {
	over := int64(0)
	for _, end := range layout.ArenaEnds(p) {
		over = max(over, end-limit)
	}
	return over
}

// keptBytes is what the fullest device needs for buffers that never share.
func keptBytes(g *dag.Graph, o Options) (int64, error) {
	kept, err := keptBy(g, o)
	if err != nil {
		return 0, err
	}
	devices := map[int32]int64{}
	most := int64(0)
	for i := range g.Buffers {
		if b := &g.Buffers[i]; b.Place == dag.Device && kept[i] {
			devices[b.Device] += plan.AlignUp(b.Bytes)
			most = max(most, devices[b.Device])
		}
	}
	return most, nil
}

// tightBuffers are the device buffers of the devices on which a plan misses the cap.
func tightBuffers(g *dag.Graph, p *Plan, limit int64) []int32 {
	ends := layout.ArenaEnds(p)
	var tight []int32
	for i := range g.Buffers {
		if b := &g.Buffers[i]; b.Place == dag.Device && ends[b.Device] > limit {
			tight = append(tight, int32(i))
		}
	}
	return tight
}

// capError describes the fullest device of the plan that came closest.
func capError(g *dag.Graph, o Options, closest *Plan) error {
	kept, err := keptBy(g, o)
	if err != nil {
		return err
	}
	peaks, err := layout.PeakBuffers(g, closest, kept)
	if err != nil {
		return err
	}
	full := slices.MaxFunc(peaks, func(a, b layout.Peak) int {
		return cmp.Or(cmp.Compare(a.Arena, b.Arena), cmp.Compare(b.Device, a.Device))
	})
	e := &MemoryCapError{Device: full.Device, Cap: o.MemoryCap, Needed: full.Arena, Node: full.Node, Live: full.Buffers}
	if e.Node >= 0 {
		e.NodeName = plan.NodeName(g, e.Node)
	}
	return e
}
