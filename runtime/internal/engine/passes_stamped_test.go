// Tests of passes that the device has stamped: what the stamps of loops and branches say, and which passes hold those of inner ones.

package engine

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/kernels/conditions"
)

// stamped makes the list of a loop or branch from stamps at 2, 4, 6 ... us by the clock of the log, of what they say.
func stamped(outer *passList, body int, kind dag.Kind, bodies int, what ...int64) *passList {
	c := &control{name: "c", node: &dag.Node{Kind: kind, Control: &dag.Control{}}, bodies: make([]*controlBody, bodies)}
	l := &passList{outer: outer, body: body, control: c}
	var words []int64
	for k, w := range what {
		words = append(words, 7_000+2_000*int64(k+1), w)
	}
	l.fromStamps(words, 7_000)
	l.findOuter()
	return l
}

// shownPasses describes what is shown: the run, its passes, the body, from when to when, and in which pass around.
func shownPasses(l *passList) string {
	var list []string
	for _, p := range l.passes {
		text := fmt.Sprintf("%d:%d", p.Run, p.First)
		if p.Last != p.First {
			text += fmt.Sprintf("-%d", p.Last)
		}
		text += fmt.Sprintf(" %s %g-%g", p.Body, p.Start, p.End)
		if p.LeftOut {
			text += " left out"
		}
		if l.outer != nil {
			text += fmt.Sprintf(" in %d", p.Within)
		}
		list = append(list, text)
	}
	return strings.Join(list, ", ")
}

func TestStampsOfLoopsAndBranches(t *testing.T) {
	const begun, held, otherwise = conditions.StampBegun, conditions.StampHeld, conditions.StampOtherwise
	for _, c := range []struct {
		name   string
		kind   dag.Kind
		bodies int
		stamps []int64
		want   string
		shown  int64
	}{
		{"nothing", dag.Repeat, 1, nil, "", 0},
		{"three passes", dag.Repeat, 1, []int64{begun, 1, 2, 3}, "1:1 repeat 2-4, 1:2 repeat 4-6, 1:3 repeat 6-8", 3},
		{"two runs", dag.Repeat, 1, []int64{begun, 1, begun, begun, 1}, "1:1 repeat 2-4, 3:1 repeat 8-10", 2},
		{"some are not stamped", dag.Repeat, 1, []int64{begun, 1, 9, 10}, "1:1 repeat 2-4, 1:2-9 repeat 4-6 left out, 1:10 repeat 6-8", 2},
		{"branches", dag.Branch, 2, []int64{held, 1, otherwise, 1}, "1:1 then 2-4, 2:1 else 6-8", 2},
		{"a branch without another body", dag.Branch, 1, []int64{otherwise, held, 1}, "1:1 none 2-2, 2:1 then 4-6", 2},
	} {
		l := stamped(nil, 0, c.kind, c.bodies, c.stamps...)
		require.Equal(t, c.want, shownPasses(l), c.name)
		require.Equal(t, c.shown, l.shown, c.name)
		for _, p := range l.passes {
			require.Equal(t, "c", p.Node)
		}
	}
}

// An inner loop or branch runs once in each pass of its body. Where that pass is not shown, neither are its own.
func TestStampsOfInnerLoops(t *testing.T) {
	const begun, held, otherwise = conditions.StampBegun, conditions.StampHeld, conditions.StampOtherwise
	loop := stamped(nil, 0, dag.Repeat, 1, begun, 1, 2, 5, 6)
	require.Equal(t, "1:1 repeat 2-4, 1:2 repeat 4-6, 1:3-5 repeat 6-8 left out, 1:6 repeat 8-10", shownPasses(loop))
	inner := stamped(loop, 0, dag.Repeat, 1, begun, 1, 2, begun, begun, 1, begun, 1, begun, 1, begun, 1)
	require.Equal(t, "1:1 repeat 2-4 in 0, 1:2 repeat 4-6 in 0, 6:1 repeat 22-24 in 3", shownPasses(inner), "the second run has no pass, and three are not shown")
	require.Equal(t, "1:1 repeat 2-4 in 0, 6:1 repeat 14-16 in 2", shownPasses(stamped(inner, 0, dag.Repeat, 1, begun, 1, begun, begun, begun, begun, begun, 1)))

	branch := stamped(loop, 0, dag.Branch, 2, held, 1, otherwise, 1, held, 1, held, 1, otherwise, 1, held, 1)
	require.Equal(t, "1:1 then 2-4 in 0, 2:1 else 6-8 in 1, 6:1 then 22-24 in 3", shownPasses(branch))
	require.Equal(t, "1:1 repeat 2-4 in 0, 4:1 repeat 14-16 in 2", shownPasses(stamped(branch, 0, dag.Repeat, 1, begun, 1, begun, 1, begun, 1, begun, 1)),
		"it runs where the condition held: in the passes 1, 3, 4 and 6")
	require.Equal(t, "1:1 repeat 2-4 in 1", shownPasses(stamped(branch, 1, dag.Repeat, 1, begun, 1, begun, 1)), "and otherwise in 2 and 5")
}

// Passes are listed behind one another, each with the number in that list of the one that it is in.
func TestPassesAreJoined(t *testing.T) {
	const begun = conditions.StampBegun
	loop := stamped(nil, 0, dag.Repeat, 1, begun, 1, 2)
	other := stamped(nil, 0, dag.Repeat, 1, begun, 1)
	inner := stamped(other, 0, dag.Repeat, 1, begun, 1, 2)
	loops, passes := joinPasses([]*passList{loop, other, inner})
	require.Len(t, loops, 3)
	var within []int
	for _, p := range passes {
		within = append(within, p.Within)
	}
	require.Equal(t, []int{-1, -1, -1, 2, 2}, within)
	require.Equal(t, []int64{2, 1, 2}, []int64{loops[0].Shown, loops[1].Shown, loops[2].Shown})
}
