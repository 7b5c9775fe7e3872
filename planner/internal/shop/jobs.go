// Jobs: which operations belong together, because they depend on each other and on few others.

package shop

import (
	"slices"

	"github.com/dagrun/dagrun/planner/internal/sets"
)

// Grouping says which job each operation belongs to.
type Grouping struct {
	Count int
	Of    []int32 // by operation: its job, -1 for operations that belong to none
}

// members returns the operations of each job, in the order of the places given.
func (g *Grouping) members(order []int32) [][]int32 {
	members := make([][]int32, g.Count)
	for _, i := range order {
		if j := g.Of[i]; j >= 0 {
			members[j] = append(members[j], i)
		}
	}
	return members
}

// hubs are limits that are tried: an operation with at least this many neighbours counts as shared by many jobs, not as part of one.
var hubs = []int32{1 << 30, 64, 32, 16, 8, 5, 4, 3}

// Jobs finds the jobs. Without the operations that many jobs share (an upload of weights, a final sum), jobs do not depend on each other: a
// job is a connected part of the rest that needs at least two machines. The limit for shared operations is chosen so that there are as many
// jobs as possible.
func Jobs(w *Work) Grouping {
	n := w.Len()
	if len(w.Room) < 2 {
		return Grouping{}
	}
	degree, after := make([]int32, n), make([]int32, n)
	for i := range int32(n) {
		degree[i] = int32(len(w.preds(i)))
		for _, q := range w.preds(i) {
			after[q]++
		}
	}
	most := int32(0)
	for i := range degree {
		degree[i] = max(degree[i], after[i])
		most = max(most, degree[i])
	}
	best := Grouping{}
	for k, hub := range hubs {
		if k > 0 && hub > most {
			continue // this limit leaves out the same operations as the one before
		}
		if g := w.group(degree, hub); g.Count > best.Count {
			best = g
		}
	}
	return best
}

// group joins operations that depend on each other and have fewer neighbours than hub.
func (w *Work) group(degree []int32, hub int32) Grouping {
	n := int32(w.Len())
	joined := sets.New(int(n))
	for i := range n {
		if degree[i] >= hub {
			continue
		}
		for _, q := range w.preds(i) {
			if degree[q] < hub {
				joined.Join(i, q)
			}
		}
	}
	// A job needs several machines: some operation is on another machine than the root.
	several := make([]bool, n)
	for i := range n {
		if r := joined.Least(i); w.Machine[i] != w.Machine[r] {
			several[r] = true
		}
	}
	g := Grouping{Of: slices.Repeat([]int32{-1}, int(n))}
	for i := range n {
		r := joined.Least(i)
		if !several[r] {
			continue
		}
		if r == i {
			g.Of[i] = int32(g.Count)
			g.Count++
		}
		g.Of[i] = g.Of[r]
	}
	return g
}
