// Tests of what is said of loops and branches after a replay.

package engine

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
)

func TestWhatLoopsAndBranchesDid(t *testing.T) {
	condition, three := &dag.Condition{Text: "x < 3"}, int64(3)
	for _, c := range []struct {
		kind                 dag.Kind
		control              dag.Control
		runs, passes, missed int64
		chosen               [2]int64
		text                 string
		ok                   bool
	}{
		{dag.Branch, dag.Control{Condition: condition}, 1, 0, 0, [2]int64{1, 0}, "the condition held", true},
		{dag.Branch, dag.Control{Condition: condition}, 1, 0, 0, [2]int64{0, 1}, "the condition did not hold", true},
		{dag.Branch, dag.Control{Condition: condition}, 5, 0, 0, [2]int64{1, 4}, "the condition held in 1 of 5 runs", true},
		{dag.Branch, dag.Control{Condition: condition}, 0, 0, 0, [2]int64{}, "the condition held in 0 of 0 runs", true},
		{dag.Repeat, dag.Control{Times: 3}, 1, 3, 0, [2]int64{}, "3 passes", true},
		{dag.Repeat, dag.Control{Times: 1}, 2, 2, 0, [2]int64{}, "2 passes in 2 runs", true},
		{dag.Repeat, dag.Control{Times: 9, Condition: condition}, 1, 1, 0, [2]int64{}, "1 pass of at most 9", true},
		{dag.Repeat, dag.Control{Times: 9, Condition: condition}, 2, 7, 0, [2]int64{}, "7 passes in 2 runs of at most 9", true},
		{dag.Repeat, dag.Control{Times: 9, Condition: condition, Expect: &three}, 1, 3, 0, [2]int64{}, "3 passes of at most 9", true},
		{dag.Repeat, dag.Control{Times: 9, Condition: condition, Expect: &three}, 1, 4, 0, [2]int64{}, "4 passes of at most 9; expected 3", false},
		{dag.Repeat, dag.Control{Times: 9, Condition: condition}, 1, 9, 1, [2]int64{}, "stopped after 9 passes, before its condition (until x < 3) was met", false},
		{dag.Repeat, dag.Control{Times: 9, Condition: condition, While: true}, 2, 12, 1, [2]int64{},
			"stopped after 12 passes in 2 runs, before its condition (while x < 3) was met", false},
		{dag.Repeat, dag.Control{Times: 9, Condition: condition, OrStop: true}, 1, 9, 1, [2]int64{}, "stopped after 9 passes", true},
		{dag.Repeat, dag.Control{Times: 9, Condition: condition, OrStop: true, Expect: &three}, 2, 18, 2, [2]int64{},
			"stopped after 18 passes in 2 runs; expected 3", false},
	} {
		l := (&control{name: "c", node: &dag.Node{Kind: c.kind, Control: &c.control}, runs: c.runs, passes: c.passes, missed: c.missed, chosen: c.chosen}).loop()
		require.Equal(t, c.text, l.Text())
		require.Equal(t, c.ok, l.OK, c.text)
		require.Equal(t, []int64{c.runs, c.passes, c.missed, c.chosen[0], c.chosen[1], c.control.Times},
			[]int64{l.Runs, l.Passes, l.Missed, l.Then, l.Otherwise, l.Most})
		require.Equal(t, "c", l.Node)
	}
}
