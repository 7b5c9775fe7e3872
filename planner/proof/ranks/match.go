// Matching: which collective of one rank is which of another, and which send meets which receive.

package ranks

import (
	"fmt"

	"github.com/dagrun/dagrun/dag"
)

// group is a group of ranks with the collectives that its first rank does.
type group struct {
	of    dag.Among
	first int32 // the rank that the others are compared with
	ops   []int32
	ids   []int32 // by collective: its instance
	at    map[int32]int
	bad   bool
}

// match fills partners and instance.
func (w *world) match() {
	w.partners, w.instance = make([][][]int32, w.ranks), make([][]int32, w.ranks)
	groups := map[dag.Among]*group{}
	var inOrder []*group
	for rank := range w.ranks {
		ops := w.ops(rank)
		w.instance[rank], w.partners[rank] = make([]int32, len(ops)), make([][]int32, len(ops))
		for k := range ops {
			o := &ops[k]
			w.instance[rank][k] = -1
			if o.exchanges() {
				continue
			}
			of := dag.Among{First: 0, Count: o.count, Step: o.step}
			if o.group >= 0 {
				of.First = w.firsts[rank][o.group]
			}
			g := groups[of]
			if g == nil {
				g = &group{of: of, first: rank, at: map[int32]int{}}
				groups[of] = g
				inOrder = append(inOrder, g)
			}
			w.collective(g, rank, int32(k))
		}
	}
	for _, g := range inOrder {
		w.complete(g)
	}
	w.pairs()
}

// collective compares a collective with that of the group's first rank in the same place.
func (w *world) collective(g *group, rank, k int32) {
	at := g.at[rank]
	g.at[rank]++
	if rank == g.first {
		g.ops, g.ids = append(g.ops, k), append(g.ids, int32(len(w.members)))
		w.instance[rank][k] = int32(len(w.members))
		w.members = append(w.members, g.of.Count)
		return
	}
	o := &w.ops(rank)[k]
	if at >= len(g.ops) {
		if !g.bad {
			g.bad = true
			w.wrong([]int32{g.first, rank}, "rank %d does %s, %s, together with %s, and rank %d has no such %s there%s", rank, o.at(), o.what(),
				groupText(g.of, w.ranks), g.first, o.kind(), o.allNeed())
		}
		return
	}
	w.instance[rank][k] = g.ids[at]
	want := &w.ops(g.first)[g.ops[at]]
	if g.bad || o.alike(want) {
		return
	}
	g.bad = true
	text := ""
	if len(o.more)+len(want.more) > 0 {
		text = "; ranks whose files differ may need to run without --bucket"
	}
	switch {
	case o.what() != want.what():
	case o.control != nil:
		text = fmt.Sprintf(": with its numbers, the condition is %s on rank %d and %s on rank %d", want.control.condition, g.first, o.control.condition, rank)
	case o.root != want.root:
		text = fmt.Sprintf(": the roots are rank %d and rank %d", g.of.First+o.root*g.of.Step, g.of.First+want.root*g.of.Step)
	}
	w.wrong([]int32{g.first, rank}, "rank %d does %s, %s, where rank %d does %s, %s%s", rank, o.at(), o.what(), g.first, want.at(), want.what(), text)
}

// complete finds ranks of a group that lack collectives of its first rank.
func (w *world) complete(g *group) {
	if g.bad {
		return
	}
	for k := range g.of.Count {
		rank := g.of.First + k*g.of.Step
		if done := g.at[rank]; done < len(g.ops) {
			o := &w.ops(g.first)[g.ops[done]]
			w.wrong([]int32{g.first, rank}, "rank %d does %s, %s, together with %s, and rank %d has no such %s%s", g.first, o.at(), o.what(),
				groupText(g.of, w.ranks), rank, o.kind(), o.allNeed())
			return
		}
	}
}

func groupText(of dag.Among, ranks int32) string {
	switch {
	case of == dag.Among{First: 0, Count: ranks, Step: 1}:
		return "all ranks"
	case of.Count == 1:
		return fmt.Sprintf("rank %d alone", of.First)
	case of.Count == 2:
		return fmt.Sprintf("ranks %d and %d", of.First, of.First+of.Step)
	case of.Step == 1:
		return fmt.Sprintf("ranks %d to %d", of.First, of.First+of.Count-1)
	}
	return fmt.Sprintf("ranks %d, %d to %d", of.First, of.First+of.Step, of.First+(of.Count-1)*of.Step)
}

// side is one side of a transfer.
type side struct{ op, transfer int32 }

// pairs matches the k-th send from one rank to another with the k-th receive there.
func (w *world) pairs() {
	type pair struct{ from, to int32 }
	sends, receives := map[pair][]side{}, map[pair][]side{}
	var inOrder []pair
	for rank := range w.ranks {
		ops := w.ops(rank)
		for k := range ops {
			list := ops[k].transfers
			if len(list) > 0 {
				w.partners[rank][k] = make([]int32, len(list))
			}
			for t := range list {
				into, p := sends, pair{rank, rank + list[t].peer}
				if list[t].receive {
					into, p = receives, pair{rank + list[t].peer, rank}
				}
				if len(sends[p])+len(receives[p]) == 0 {
					inOrder = append(inOrder, p)
				}
				into[p] = append(into[p], side{int32(k), int32(t)})
			}
		}
	}
	for _, p := range inOrder {
		out, in := sends[p], receives[p]
		for k := range min(len(out), len(in)) {
			a, b := &w.ops(p.from)[out[k].op], &w.ops(p.to)[in[k].op]
			w.partners[p.from][out[k].op][out[k].transfer] = in[k].op
			w.partners[p.to][in[k].op][in[k].transfer] = out[k].op
			s, r := &a.transfers[out[k].transfer], &b.transfers[in[k].transfer]
			if s.bytes != r.bytes || s.dtype != r.dtype {
				w.wrong([]int32{p.from, p.to}, "rank %d sends %d bytes of %s (%s) with %s, and rank %d receives %d of %s (%s) with %s", p.from, s.bytes, s.buffer,
					s.dtype, a.at(), p.to, r.bytes, r.buffer, r.dtype, b.at())
				break
			}
		}
		switch {
		case len(out) > len(in):
			a := &w.ops(p.from)[out[len(in)].op]
			w.wrong([]int32{p.from, p.to}, "rank %d sends %s to rank %d with %s, and rank %d has no receive for it", p.from,
				a.transfers[out[len(in)].transfer].buffer, p.to, a.at(), p.to)
		case len(in) > len(out):
			b := &w.ops(p.to)[in[len(out)].op]
			w.wrong([]int32{p.from, p.to}, "rank %d receives %s from rank %d with %s, and rank %d has no send for it", p.to,
				b.transfers[in[len(out)].transfer].buffer, p.from, b.at(), p.from)
		}
	}
}
