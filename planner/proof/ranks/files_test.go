// Random files that all ranks read: what the parser makes of expressions with rank, the folding of ranks into classes and the proof together
// agree with the simulation of what each rank does.

package ranks

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/dag/file"
)

// term is an expression of a file with its value on a rank.
type term struct {
	text string
	of   func(rank int) int
}

// which picks the ranks that a node is for.
func which(rng *rand.Rand, n int) term {
	j, m := rng.IntN(n+1), 2+rng.IntN(2)
	as := func(text string, holds func(rank int) bool) term {
		return term{text, func(rank int) int {
			if holds(rank) {
				return 1
			}
			return 0
		}}
	}
	switch rng.IntN(8) {
	case 0:
		return as(fmt.Sprintf("rank %% %d == %d", m, j%m), func(rank int) bool { return rank%m == j%m })
	case 1:
		return as(fmt.Sprintf("rank < %d", j), func(rank int) bool { return rank < j })
	case 2:
		return as(fmt.Sprintf("rank != %d", j), func(rank int) bool { return rank != j })
	}
	return as("true", func(int) bool { return true })
}

// partner is the other side of a transfer, and back the one that meets it.
func partner(rng *rand.Rand, n int) (to, back term) {
	d := 1 + rng.IntN(2)
	switch rng.IntN(5) {
	case 0:
		to = term{fmt.Sprintf("(rank + %d) %% ranks", d), func(rank int) int { return (rank + d) % n }}
		back = term{fmt.Sprintf("(rank - %d) %% ranks", d), func(rank int) int { return ((rank-d)%n + n) % n }}
		return to, back
	case 1:
		to = term{"select(rank % 2 == 0, rank + 1, rank - 1)", func(rank int) int { return rank ^ 1 }}
		return to, to
	case 2:
		to = term{"ranks - 1 - rank", func(rank int) int { return n - 1 - rank }}
		return to, to
	}
	return term{fmt.Sprintf("rank + %d", d), func(rank int) int { return rank + d }}, term{fmt.Sprintf("rank - %d", d), func(rank int) int { return rank - d }}
}

// randomFile makes a file, and what it makes each rank do.
func randomFile(rng *rand.Rand) (file string, programs [][]action) {
	n := 1 + rng.IntN(8)
	programs = make([][]action, n)
	received := 0
	var nodes strings.Builder
	transfer := func(receive bool, bytes int) string {
		if !receive {
			return fmt.Sprintf("send: x(0..%d)", bytes/4)
		}
		received += 2
		return fmt.Sprintf("recv: y(%d..%d)", received-2, received-2+bytes/4)
	}
	does := func(when term, act func(rank int) action) {
		for rank := range n {
			if when.of(rank) != 0 {
				programs[rank] = append(programs[rank], act(rank))
			}
		}
	}
	meets := func(list []message) (some []message) {
		for _, m := range list {
			if m.peer >= 0 && m.peer < n {
				some = append(some, m)
			}
		}
		return some
	}
	for k := range 1 + rng.IntN(4) {
		switch rng.IntN(5) {
		case 4: // a loop, which some ranks may lack or go through more often, and in which some may do less
			when, more, inner := which(rng, n), which(rng, n), which(rng, n)
			to, back := partner(rng, n)
			fmt.Fprintf(&nodes, "  - name: n%d\n    repeat: {times: \"1 + (%s)\"}\n    when: %s\n    nodes:\n", k, more.text, when.text)
			fmt.Fprintf(&nodes, "      - {name: n%d.a, exchange: [{%s, rank: \"%s\"}, {%s, rank: \"%s\"}], when: %s}\n", k, transfer(false, 4), to.text, transfer(true, 4), back.text, inner.text)
			fmt.Fprintf(&nodes, "      - {name: n%d.b, allreduce: {inout: x(0..1), op: max}}\n", k)
			does(when, func(rank int) action {
				all := dag.Among{Count: int32(n), Step: 1}
				body := []action{{collective: true, kind: 0, group: all}}
				if inner.of(rank) != 0 {
					body = append([]action{{transfers: meets([]message{{false, to.of(rank), 4}, {true, back.of(rank), 4}})}}, body...)
				}
				return action{collective: true, kind: loopKind + 1 + more.of(rank), group: all, body: body}
			})
		case 0:
			size, step := n, 1
			among, first := "", func(int) int { return 0 }
			if cut := 1 + rng.IntN(3); n%cut == 0 && rng.IntN(2) == 0 { // blocks of ranks, or every so many of them
				size = n / cut
				among, first = fmt.Sprintf(", among: [floor(rank/%d)*%d, %d, 1]", size, size, size), func(rank int) int { return rank / size * size }
				if rng.IntN(2) == 0 {
					step = cut
					among, first = fmt.Sprintf(", among: [rank %% %d, %d, %d]", cut, size, cut), func(rank int) int { return rank % cut }
				}
			}
			when, kind := which(rng, n), 1+rng.IntN(2)
			fmt.Fprintf(&nodes, "  - {name: n%d, allreduce: {inout: x(0..%d), op: sum%s}, when: %s}\n", k, kind, among, when.text)
			does(when, func(rank int) action {
				group := dag.Among{First: int32(first(rank)), Count: int32(size), Step: int32(step)}
				return action{collective: true, kind: kind, group: group}
			})
		case 1: // a send here, and its receive in another node
			to, back := partner(rng, n)
			bytes, first, second := 4*(1+rng.IntN(2)), which(rng, n), which(rng, n)
			sends := rng.IntN(2) == 0
			fmt.Fprintf(&nodes, "  - {name: n%d.a, %s, rank: \"%s\", when: %s}\n", k, transfer(!sends, bytes), to.text, first.text)
			fmt.Fprintf(&nodes, "  - {name: n%d.b, %s, rank: \"%s\", when: %s}\n", k, transfer(sends, bytes), back.text, second.text)
			does(first, func(rank int) action { return action{transfers: meets([]message{{!sends, to.of(rank), bytes}})} })
			does(second, func(rank int) action { return action{transfers: meets([]message{{sends, back.of(rank), bytes}})} })
		default:
			when := which(rng, n)
			var items []string
			lists := make([][]message, n)
			for range 1 + rng.IntN(2) {
				to, back := partner(rng, n)
				there, here := 4*(1+rng.IntN(2)), 0
				if here = there; rng.IntN(8) == 0 {
					here = 8
				}
				items = append(items, fmt.Sprintf("{%s, rank: \"%s\"}, {%s, rank: \"%s\"}", transfer(false, there), to.text, transfer(true, here), back.text))
				for rank := range n {
					lists[rank] = append(lists[rank], meets([]message{{false, to.of(rank), there}, {true, back.of(rank), here}})...)
				}
			}
			fmt.Fprintf(&nodes, "  - {name: n%d, exchange: [%s], when: %s}\n", k, strings.Join(items, ", "), when.text)
			does(when, func(rank int) action { return action{transfers: lists[rank]} })
		}
	}
	return fmt.Sprintf("version: 1\nbuffers:\n  x: {place: device, dtype: f32, shape: [2]}\n  y: {place: device, dtype: f32, shape: [%d]}\nnodes:\n%s", max(received, 1), nodes.String()), programs
}

func TestTheProofOfFilesAgreesWithSimulation(t *testing.T) {
	cases := 20_000
	if testing.Short() || os.Getenv("DAGRUN_LONG") == "" {
		cases = 2_000
	}
	good, bad, folded := 0, 0, 0
	for seed := range cases {
		rng := rand.New(rand.NewPCG(uint64(seed), 81))
		source, programs := randomFile(rng)
		family, err := file.ParseFamily([]byte(source), file.Options{}, len(programs))
		require.NoError(t, err, "seed %d: %s", seed, source)
		found, err := Prove(family)
		require.NoError(t, err, "seed %d: %s", seed, source)
		want := allFinish(rng, programs)
		require.Equal(t, want, len(found) == 0, "seed %d, %d ranks: %s%v", seed, len(programs), source, found)
		if len(family.Classes) < len(programs) {
			folded++
		}
		if want {
			good++
		} else {
			bad++
		}
	}
	require.Greater(t, good, cases/10)
	require.Greater(t, bad, cases/10)
	require.Greater(t, folded, cases/10)
}
