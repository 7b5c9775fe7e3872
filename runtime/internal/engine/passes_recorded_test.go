// Tests of which passes of loops and branches a trace shows.

package engine

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/runtime/internal/spans"
)

// A branch that runs no body is a pass of its own, where there is room, unless it is in a pass that is not shown.
func TestBranchesThatChooseNothing(t *testing.T) {
	c := &control{name: "if", runs: 3}
	l := &passList{control: c}
	r := &passRecorder{room: 2, of: map[*control]*passList{c: l}, within: 5}
	none := spans.TracedPass{Node: "if", Within: 5, Run: 3, First: 1, Last: 1, Body: spans.BodyNone}
	for _, muted := range []int{1, 2, 0} {
		r.muted = muted
		r.chosenNone(c)
	}
	require.Equal(t, []spans.TracedPass{none}, l.passes)
	r.chosenNone(c)
	r.chosenNone(c)
	require.Equal(t, []spans.TracedPass{none, none}, l.passes, "there is room for two")
}

// Passes that are left out one after the other are one entry, if some of their run are shown.
func TestPassesThatAreLeftOut(t *testing.T) {
	pass := func(run, first, last int64, leftOut bool) spans.TracedPass {
		return spans.TracedPass{Node: "loop", Within: -1, Run: run, First: first, Last: last, Body: spans.BodyRepeat, LeftOut: leftOut}
	}
	l := &passList{}
	l.leaveOut(pass(1, 1, 1, false))
	require.Empty(t, l.passes, "nothing of the run is shown")
	l.passes = append(l.passes, pass(1, 1, 1, false))
	l.leaveOut(pass(1, 2, 2, false))
	l.leaveOut(pass(1, 3, 3, false))
	l.leaveOut(pass(2, 1, 1, false))
	within := pass(1, 4, 4, false)
	within.Within = 0
	l.leaveOut(within)
	branch := pass(1, 4, 4, false)
	branch.Body = spans.BodyNone
	l.leaveOut(branch)
	require.Equal(t, []spans.TracedPass{pass(1, 1, 1, false), pass(1, 2, 3, true)}, l.passes)
}

// A loop in another one shows no more than a part of what there is room for in each of its runs, but always the first pass.
func TestWhichPassesFit(t *testing.T) {
	b := dag.New("body")
	for _, name := range []string{"a", "b", "c"} {
		b.Task(name)
	}
	g, err := b.Graph()
	require.NoError(t, err)
	c := &control{bodies: []*controlBody{{program: &Program{graph: g}}}}
	for _, k := range []struct {
		room  int64
		shown int64
		inner bool
		pass  int64
		muted int
		want  bool
	}{
		{40, 0, false, 1, 0, true}, {40, 9, false, 10, 0, true}, {40, 10, false, 11, 0, false}, {40, 0, false, 1, 1, false},
		{0, 0, false, 1, 0, true}, {0, 1, false, 2, 0, false},
		{40 * partOfRun, 0, true, 10, 0, true}, {40 * partOfRun, 0, true, 11, 0, false}, {4, 0, true, 1, 0, true}, {4, 0, true, 2, 0, false},
	} {
		l := &passList{control: c, shown: k.shown}
		if k.inner {
			l.outer = &passList{}
		}
		require.Equal(t, k.want, (&passRecorder{room: k.room, muted: k.muted}).fits(l, 0, k.pass), "%+v", k)
	}
}
