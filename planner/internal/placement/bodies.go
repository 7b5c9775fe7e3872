// Placements of the nodes of loops and branches: a body is placed like a pipeline of its own.

package placement

import (
	"context"
	"slices"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/effort"
	"github.com/dagrun/dagrun/planner/model"
)

// Divider places the nodes of bodies.
type Divider struct {
	p       *Problem
	m       *model.Machine
	profile *model.Profile
	streams int
	effort  effort.Effort
}

// NewDivider returns a Divider for a problem.
func NewDivider(p *Problem, m *model.Machine, profile *model.Profile, streams int, how effort.Effort) *Divider {
	return &Divider{p, m, profile, streams, how}
}

// Divisible lists the loops and branches of the graph itself that have nodes to place.
func (d *Divider) Divisible() []dag.NodeID {
	var list []dag.NodeID
	for i := range d.p.unit {
		free := false
		d.p.within(int32(i), func(l *level, k dag.NodeID) { free = free || d.p.Fixed[l.first+int32(k)] == Free })
		if free {
			list = append(list, dag.NodeID(i))
		}
	}
	return list
}

// Divide returns placements in which the nodes of a loop or branch are placed on their own, the most promising first; the rest is as in at. For a
// policy other than auto it is the one that the policy makes.
func (d *Divider) Divide(ctx context.Context, at []int32, i dag.NodeID, policy string) ([][]int32, error) {
	return d.divide(ctx, at, int32(i), policy)
}

// mostDivided is how many placements of one body are worth judging.
const mostDivided = 5

func (d *Divider) divide(ctx context.Context, at []int32, number int32, policy string) ([][]int32, error) {
	list := [][]int32{slices.Clone(at)}
	for _, k := range d.p.inner[number] {
		placed, err := d.body(ctx, at, &d.p.levels[k], policy)
		if err != nil {
			return nil, err
		}
		// The bodies of a branch never run together, so the best of one go with the best of the other.
		for len(list) < len(placed) {
			list = append(list, slices.Clone(list[len(list)-1]))
		}
		for j := range list {
			d.take(list[j], placed[min(j, len(placed)-1)], k)
		}
	}
	for j := range list {
		d.test(list[j], number)
	}
	return list, nil
}

// test lets a condition be read where its first element is written, if a body does so.
func (d *Divider) test(at []int32, number int32) {
	l := d.p.levelOf(number)
	condition := l.graph.Nodes[number-l.first].Control.Condition
	if condition == nil || d.p.Fixed[number] != Free {
		return
	}
	r := condition.Operands[0]
	d.p.within(number, func(l *level, i dag.NodeID) {
		if l.graph.Nodes[i].Control != nil {
			return
		}
		for _, a := range l.graph.Accesses(i) {
			if a.Buffer == r.Buffer && a.Mode&dag.Write != 0 && a.Lo < r.Hi && r.Lo < a.Hi {
				at[number] = at[l.first+int32(i)]
			}
		}
	})
}

// take copies where the nodes of a body and of all in it are.
func (d *Divider) take(at, from []int32, k int32) {
	l := &d.p.levels[k]
	for i := range l.graph.Nodes {
		number := l.first + int32(i)
		at[number] = from[number]
		for _, inner := range d.p.inner[number] {
			d.take(at, from, inner)
		}
	}
}

// body places the nodes of a body.
func (d *Divider) body(ctx context.Context, at []int32, l *level, policy string) ([][]int32, error) {
	p, err := NewProblem(l.graph, d.p.Devices, nil)
	if err != nil {
		return nil, err
	}
	p.around = true
	copy(p.stays, d.p.stays) // a node elsewhere may be why a buffer stays
	copy(p.Fixed, d.p.Fixed[l.first:])
	p.findUnits()
	candidates, err := Candidates(ctx, p, d.m, model.Durations(l.graph, d.m, d.profile), d.streams, policy, d.effort)
	if err != nil {
		return nil, err
	}
	var list [][]int32
	for _, c := range candidates[:min(mostDivided, len(candidates))] {
		placed := slices.Clone(at)
		copy(placed[l.first:], p.Expand(c.At))
		list = append(list, placed)
	}
	// Loops and branches within it are divided in turn: in the best of these, or everywhere if a policy asks for it.
	best := list[0]
	for i := range l.graph.Nodes {
		number := l.first + int32(i)
		if d.p.inner[number] == nil {
			continue
		}
		divided, err := d.divide(ctx, best, number, policy)
		if err != nil {
			return nil, err
		}
		if policy != Auto {
			best = divided[0]
			list[0] = best
			continue
		}
		list = append(list, divided[:min(2, len(divided))]...)
	}
	return list, nil
}
