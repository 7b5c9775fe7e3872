// Following all ranks to their ends: what each may begin once what it waits for has been reached, until nobody can go on.

package ranks

import (
	"fmt"
	"slices"
	"strings"
)

// follow proves that every rank gets to its end. Who can go on does not depend on who goes first, so one order stands for all.
func (w *world) follow() {
	at := make([]int32, w.ranks)      // by rank: the communication that it has reached
	missing := make([]int32, w.ranks) // of an exchange that has begun: transfers whose other side has not been reached
	arrived := make([]int32, len(w.members))
	present := make([][]int32, len(w.members))
	reached := make([]bool, w.ranks) // whether at has been begun
	ready := make([]int32, w.ranks)
	for rank := range ready {
		ready[rank] = int32(rank)
	}
	advance := func(rank int32) {
		at[rank]++
		reached[rank] = false
		ready = append(ready, rank)
	}
	for len(ready) > 0 {
		rank := ready[len(ready)-1]
		ready = ready[:len(ready)-1]
		k := at[rank]
		if int(k) >= len(w.ops(rank)) || reached[rank] {
			continue
		}
		reached[rank] = true
		o := &w.ops(rank)[k]
		if !o.exchanges() {
			id := w.instance[rank][k]
			present[id] = append(present[id], rank)
			if arrived[id]++; arrived[id] == w.members[id] {
				for _, member := range present[id] {
					advance(member)
				}
				present[id] = nil
			}
			continue
		}
		var freed []int32
		for t := range o.transfers {
			peer, there := rank+o.transfers[t].peer, w.partners[rank][k][t]
			switch {
			case peer == rank && there == k:
			case at[peer] == there && reached[peer]:
				if missing[peer]--; missing[peer] == 0 {
					freed = append(freed, peer)
				}
			case at[peer] <= there:
				missing[rank]++
			}
		}
		for _, peer := range freed {
			advance(peer)
		}
		if missing[rank] == 0 {
			advance(rank)
		}
	}
	for rank := range w.ranks {
		if int(at[rank]) < len(w.ops(rank)) {
			w.stuck(rank, at, present)
			return
		}
	}
}

// stuck follows who waits for whom from a rank that does not get on, until a rank comes up again.
func (w *world) stuck(rank int32, at []int32, present [][]int32) {
	var path []int32
	for !slices.Contains(path, rank) {
		path = append(path, rank)
		rank = w.awaited(rank, at, present)
	}
	circle := path[slices.Index(path, rank):]
	var parts []string
	for k, r := range circle {
		next := circle[(k+1)%len(circle)]
		o := &w.ops(r)[at[r]]
		if next == r {
			parts = append(parts, fmt.Sprintf("rank %d waits in %s for what it does later itself", r, o.at()))
			continue
		}
		parts = append(parts, fmt.Sprintf("rank %d waits in %s for rank %d", r, o.at(), next))
	}
	slices.Sort(circle)
	w.wrong(circle, "ranks wait for each other forever: %s", strings.Join(parts, ", "))
}

// awaited is a rank that has not reached what a stuck rank waits for.
func (w *world) awaited(rank int32, at []int32, present [][]int32) int32 {
	k := at[rank]
	o := &w.ops(rank)[k]
	if !o.exchanges() {
		first := int32(0)
		if o.group >= 0 {
			first = w.firsts[rank][o.group]
		}
		for m := range o.count {
			if member := first + m*o.step; !slices.Contains(present[w.instance[rank][k]], member) {
				return member
			}
		}
	}
	for t := range o.transfers {
		peer, there := rank+o.transfers[t].peer, w.partners[rank][k][t]
		if at[peer] < there {
			return peer
		}
	}
	return rank
}
