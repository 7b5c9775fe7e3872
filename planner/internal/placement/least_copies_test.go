// The fewest copies that any choice of what leaves a device needs, found by trying all.

package placement

import (
	"math"
	"math/bits"
)

// leastCopies tries every order that keeps the dependencies and every choice of what leaves, and returns the least sum of copies, to the device
// and back to the host counted as up and down say. Blocks that are changed are state: they end in host memory, or stay on the device for good.
func leastCopies(uses [][]int, written []bool, blocks, fit, up, down int) int {
	m := &movingBlocks{fit: fit, up: up, down: down}
	last := make([]int, blocks) // by block: nodes that wrote it last
	since := make([]int, blocks)
	for i, use := range uses {
		before := 0
		for k, b := range use {
			before |= last[b]
			if written[i] && k == 0 {
				before |= since[b]
				last[b], since[b] = 1<<i, 0
			} else {
				since[b] |= 1 << i
			}
		}
		need, change := 0, 0
		for k, b := range use {
			need |= 1 << b
			if written[i] && k == 0 {
				change = 1 << b
			}
		}
		m.need, m.change, m.before = append(m.need, need), append(m.change, change), append(m.before, before)
	}
	best := math.MaxInt
	for stays := range 1 << blocks { // those that never leave
		if bits.OnesCount(uint(stays)) <= fit {
			m.stays = stays
			best = min(best, m.least(best))
		}
	}
	return best
}

// movingBlocks are nodes, as sets of bits, and the blocks that stay.
type movingBlocks struct {
	need, change, before []int // by node
	stays, fit, up, down int
}

// blocksState is what is done and on the device, and which of it has changed.
type blocksState struct{ done, here, changed int }

// least returns the least cost, or most if it is not below.
func (m *movingBlocks) least(most int) int {
	known := map[blocksState]int{}
	byCost := [][]blocksState{{m.close(blocksState{})}}
	for cost := 0; cost < len(byCost) && cost < most; cost++ {
		for k := 0; k < len(byCost[cost]); k++ { // it may grow
			s := byCost[cost][k]
			if old, seen := known[s]; seen && old <= cost {
				continue
			}
			known[s] = cost
			if s.done == 1<<len(m.need)-1 {
				total := cost + m.down*bits.OnesCount(uint(s.changed))
				if most = min(most, total); m.down == 0 {
					return most
				}
				continue
			}
			m.each(s, func(to blocksState, more int) {
				for len(byCost) <= cost+more {
					byCost = append(byCost, nil)
				}
				byCost[cost+more] = append(byCost[cost+more], m.close(to))
			})
		}
	}
	return most
}

// close runs what costs nothing, now or later.
func (m *movingBlocks) close(s blocksState) blocksState {
	for i := 0; i < len(m.need); i++ {
		if free := m.change[i] &^ (s.changed | m.stays); free == 0 && m.can(s, i) {
			s.done |= 1 << i
			i = -1
		}
	}
	return s
}

// can reports whether a node can run.
func (m *movingBlocks) can(s blocksState, i int) bool {
	return s.done>>i&1 == 0 && m.before[i]&^s.done == 0 && m.need[i]&^(s.here|m.stays) == 0
}

// each visits what can come next: a node that changes a block, or a block that is brought.
func (m *movingBlocks) each(s blocksState, visit func(to blocksState, cost int)) {
	wanted := 0
	for i := range m.need {
		switch {
		case s.done>>i&1 != 0 || m.before[i]&^s.done != 0:
		case m.can(s, i):
			visit(blocksState{s.done | 1<<i, s.here, s.changed | m.change[i]&^m.stays}, 0)
		default:
			wanted |= m.need[i] &^ (s.here | m.stays)
		}
	}
	for ; wanted != 0; wanted &= wanted - 1 {
		block := wanted & -wanted
		if bits.OnesCount(uint(s.here|m.stays)) < m.fit {
			visit(blocksState{s.done, s.here | block, s.changed}, m.up)
			continue
		}
		for leave := s.here; leave != 0; leave &= leave - 1 {
			out := leave & -leave
			visit(blocksState{s.done, s.here&^out | block, s.changed &^ out}, m.up+m.down*bits.OnesCount(uint(s.changed&out)))
		}
	}
}
