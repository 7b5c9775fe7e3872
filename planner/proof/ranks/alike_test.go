// Tests of what two ranks can do together: communications and loops that differ in one thing cannot.

package ranks

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
)

func TestWhatDiffersInOneThingIsNotDoneTogether(t *testing.T) {
	loop := func(l dag.Loop, branch bool) op {
		b := dag.New("alike")
		x := b.Device("x", dag.F32, 4)
		body := func() { b.Task("step", b.InOut(x)) }
		if branch {
			b.If("control", "x(0..1) > 0", body, nil)
		} else {
			b.Repeat("control", l, body)
		}
		g, err := b.Graph()
		require.NoError(t, err)
		return op{control: newControl(&g.Nodes[0])}
	}
	all := []op{
		{},
		{verb: dag.Broadcast}, {reduction: 1}, {dtype: dag.F64}, {from: 4}, {to: 4}, {root: 1}, {more: []int64{4}},
		loop(dag.Loop{While: "x(0..1) > 0", Most: 3}, false),
		loop(dag.Loop{Until: "x(0..1) > 0", Most: 3}, false),
		loop(dag.Loop{Until: "x(0..1) > 0", Most: 4}, false),
		loop(dag.Loop{Until: "x(0..1) > 0", Most: 3, Every: 2}, false),
		loop(dag.Loop{Until: "x(0..1) > 1", Most: 3}, false),
		loop(dag.Loop{Times: 3}, false),
		loop(dag.Loop{}, true),
	}
	for i := range all {
		for j := range all {
			require.Equal(t, i == j, all[i].alike(&all[j]), "%d and %d", i, j)
		}
	}
	two := loop(dag.Loop{Times: 3}, false)
	two.control.bodies = make([][]op, 1)
	require.False(t, two.alike(&all[len(all)-2]), "one has a body more")
}

func TestOneViolationTooManyIsCounted(t *testing.T) {
	var found []Violation
	for k := range most + 1 {
		found = append(found, Violation{nil, fmt.Sprint(k)})
	}
	w := &world{}
	w.add(found[:most])
	require.Equal(t, found[:most], w.told())
	w = &world{}
	w.add(found)
	require.Equal(t, append(found[:most:most], Violation{nil, "and 1 more"}), w.told())
}
