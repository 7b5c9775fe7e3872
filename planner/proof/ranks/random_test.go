// Random programs of several ranks: the proof agrees with a simulation that lets ranks go on in any order, as NCCL defines their calls.

package ranks

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
)

// action is a call of one rank, with absolute ranks.
type action struct {
	collective bool
	kind       int // of a collective: what must agree
	group      dag.Among
	transfers  []message
	// A loop is a collective of all ranks with a body: of kind passes, or if that is tested, of as many passes as rank 0 says in a broadcast
	// after each of them.
	body   []action
	tested bool
}

// loopKind is the kind of a loop of no passes; those of collectives are less.
const loopKind = 100

type message struct {
	receive bool
	peer    int
	bytes   int
}

// allFinish takes loops as collectives of all ranks, and runs a pass of each body by itself.
func allFinish(rng *rand.Rand, programs [][]action) bool {
	if !finishes(rng, programs) {
		return false
	}
	var loops [][][]action // by place: each rank's body
	for r := range programs {
		k := 0
		for _, a := range programs[r] {
			if a.body == nil {
				continue
			}
			if k == len(loops) {
				loops = append(loops, make([][]action, len(programs)))
			}
			loops[k][r] = a.body
			k++
		}
	}
	for _, bodies := range loops {
		if !allFinish(rng, bodies) {
			return false
		}
	}
	return true
}

// unrolled writes out all passes of one rank's loops, with the broadcasts of rank 0's decisions.
func unrolled(program []action, ranks int) (list []action) {
	for _, a := range program {
		if a.body == nil {
			list = append(list, a)
			continue
		}
		for range a.kind - loopKind {
			list = append(list, unrolled(a.body, ranks)...)
			if a.tested {
				list = append(list, action{collective: true, kind: loopKind, group: dag.Among{Count: int32(ranks), Step: 1}})
			}
		}
	}
	return list
}

// finishes runs programs call by call, in random order, without looking ahead. A call begins when its rank reaches it. A collective ends
// when all members have begun one with the same kind, an exchange when each transfer has met the oldest one of the other side that has begun.
func finishes(rng *rand.Rand, programs [][]action) bool {
	n := len(programs)
	at, begun := make([]int, n), make([]bool, n)
	left := make([][]message, n) // of the exchange that has begun
	for {
		var can []int
		for r := range n {
			if at[r] < len(programs[r]) && !begun[r] {
				can = append(can, r)
			}
		}
		if len(can) > 0 {
			r := can[rng.IntN(len(can))]
			begun[r] = true
			left[r] = append([]message(nil), programs[r][at[r]].transfers...)
			continue
		}
		moved := false
		for r := range n { // everybody has begun; see what ends
			if at[r] >= len(programs[r]) {
				continue
			}
			a := programs[r][at[r]]
			if a.collective {
				ends := true
				for m := range a.group.Count {
					q := int(a.group.First + m*a.group.Step)
					ends = ends && at[q] < len(programs[q]) && programs[q][at[q]].collective && programs[q][at[q]].group == a.group
				}
				if !ends {
					continue
				}
				for m := range a.group.Count {
					q := int(a.group.First + m*a.group.Step)
					if other := &programs[q][at[q]]; other.kind != a.kind || other.tested != a.tested {
						return false
					}
				}
				for m := range a.group.Count {
					q := int(a.group.First + m*a.group.Step)
					at[q]++
					begun[q] = false
				}
				moved = true
				break
			}
			for len(left[r]) > 0 {
				met := false
				for k, m := range left[r] {
					if k != firstTo(left[r], m.peer, m.receive) {
						continue
					}
					if m.peer >= n || at[m.peer] >= len(programs[m.peer]) || programs[m.peer][at[m.peer]].collective {
						continue
					}
					other := firstTo(left[m.peer], r, !m.receive)
					if other < 0 || m.peer == r && other == k {
						continue
					}
					if left[m.peer][other].bytes != m.bytes {
						return false
					}
					if m.peer == r {
						high, low := max(k, other), min(k, other)
						left[r] = append(left[r][:high:high], left[r][high+1:]...)
						left[r] = append(left[r][:low:low], left[r][low+1:]...)
					} else {
						left[r] = append(left[r][:k:k], left[r][k+1:]...)
						left[m.peer] = append(left[m.peer][:other:other], left[m.peer][other+1:]...)
					}
					met, moved = true, true
					break
				}
				if !met {
					break
				}
			}
			if len(left[r]) == 0 {
				at[r]++
				begun[r] = false
				moved = true
			}
			if moved {
				break
			}
		}
		if !moved {
			for r := range n {
				if at[r] < len(programs[r]) {
					return false
				}
			}
			return true
		}
	}
}

func firstTo(list []message, peer int, receive bool) int {
	for k, m := range list {
		if m.peer == peer && m.receive == receive {
			return k
		}
	}
	return -1
}

// randomPrograms makes programs of n ranks that agree, and then may spoil one of them. Some have loops, up to so deep in each other.
func randomPrograms(rng *rand.Rand, n, deep int, spoil bool) [][]action {
	programs := make([][]action, n)
	for range rng.IntN(7) {
		if deep > 0 && rng.IntN(4) == 0 {
			kind, tested := loopKind+rng.IntN(3), rng.IntN(2) == 0
			for r, body := range randomPrograms(rng, n, deep-1, spoil && rng.IntN(4) == 0) {
				body = append(body, action{collective: true, group: dag.Among{Count: int32(n), Step: 1}})
				programs[r] = append(programs[r], action{collective: true, kind: kind, tested: tested, group: dag.Among{Count: int32(n), Step: 1}, body: body})
			}
			continue
		}
		if rng.IntN(2) == 0 {
			group := dag.Among{First: 0, Count: int32(n), Step: 1}
			if rng.IntN(2) == 0 {
				step := 1 + rng.IntN(2)
				first := rng.IntN(n)
				group = dag.Among{First: int32(first), Step: int32(step), Count: int32(1 + rng.IntN((n-1-first)/step+1))}
			}
			kind := rng.IntN(3)
			for m := range group.Count {
				r := group.First + m*group.Step
				programs[r] = append(programs[r], action{collective: true, kind: kind, group: group})
			}
			continue
		}
		lists := make([][]message, n)
		for range 1 + rng.IntN(3) {
			from, to, bytes := rng.IntN(n), rng.IntN(n), 4*(1+rng.IntN(2))
			lists[from] = append(lists[from], message{false, to, bytes})
			lists[to] = append(lists[to], message{true, from, bytes})
		}
		split := rng.IntN(3) == 0 // one call for each transfer
		for r, list := range lists {
			if len(list) == 0 {
				continue
			}
			if !split {
				programs[r] = append(programs[r], action{transfers: list})
				continue
			}
			for _, m := range list {
				programs[r] = append(programs[r], action{transfers: []message{m}})
			}
		}
	}
	r := rng.IntN(n)
	program := programs[r]
	if len(program) == 0 || !spoil {
		return programs
	}
	k := rng.IntN(len(program))
	switch rng.IntN(6) {
	case 0:
		programs[r] = append(program[:k:k], program[k+1:]...)
	case 1:
		other := rng.IntN(len(program))
		program[k], program[other] = program[other], program[k]
	case 2:
		program[k].kind++
	case 3:
		if len(program[k].transfers) > 0 {
			program[k].transfers = append([]message(nil), program[k].transfers...)
			program[k].transfers[0].bytes += 4
		}
	}
	return programs
}

// worldOf writes programs as the proof has them: every rank is a class of its own.
func worldOf(programs [][]action) *world {
	w := &world{ranks: int32(len(programs))}
	for r, program := range programs {
		w.class = append(w.class, int32(r))
		var firsts []int32
		w.classes = append(w.classes, opsOf(program, r, &firsts))
		w.firsts = append(w.firsts, firsts)
	}
	return w
}

func opsOf(program []action, rank int, firsts *[]int32) (ops []op) {
	for k, a := range program {
		o := op{name: fmt.Sprintf("n%d", k), line: int32(k + 1), verb: dag.Exchange, group: -1, count: a.group.Count, step: a.group.Step}
		switch {
		case a.body != nil:
			o.control = &control{facts: [4]int64{0, int64(a.kind)}, bodies: [][]op{opsOf(a.body, rank, firsts)}}
			if a.tested {
				o.control.condition = "x < 1"
			}
		case a.collective:
			o.verb, o.reduction, o.dtype, o.from, o.to = dag.AllReduce, dag.Sum, dag.F32, int64(4*a.kind), int64(4*a.kind)
			o.group = len(*firsts)
			*firsts = append(*firsts, a.group.First)
		}
		for _, m := range a.transfers {
			o.transfers = append(o.transfers, transfer{m.receive, int32(m.peer - rank), int64(m.bytes), dag.F32, "x"})
		}
		ops = append(ops, o)
	}
	return ops
}

func TestTheProofAgreesWithSimulation(t *testing.T) {
	cases := 100_000
	if testing.Short() || os.Getenv("DAGRUN_LONG") == "" {
		cases = 10_000
	}
	good, bad, loops := 0, 0, 0
	for seed := range cases {
		rng := rand.New(rand.NewPCG(uint64(seed), 18))
		n := 1 + rng.IntN(5)
		programs := randomPrograms(rng, n, 2, true)
		w := worldOf(programs)
		w.together()
		want := allFinish(rng, programs)
		require.Equal(t, want, len(w.found) == 0, "seed %d: %+v\n%v", seed, programs, w.found)
		if !want {
			bad++
			continue
		}
		good++
		// What is proved pass by pass also ends without anybody waiting for all others at a loop.
		written := make([][]action, n)
		for r := range programs {
			written[r] = unrolled(programs[r], n)
		}
		require.True(t, finishes(rng, written), "seed %d: %+v", seed, programs)
		if slices.ContainsFunc(programs[0], func(a action) bool { return a.body != nil }) {
			loops++
		}
	}
	require.Greater(t, good, cases/10)
	require.Greater(t, bad, cases/10)
	require.Greater(t, loops, cases/10)
}
