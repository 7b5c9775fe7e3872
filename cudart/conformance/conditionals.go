// Tests of loops and branches in graphs: what runs, what is counted, and how such a graph is changed.

package conformance

import (
	"context"
	"fmt"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/dag/expr"
	"github.com/dagrun/dagrun/kernels/conditions"
)

// condition is a condition over an element x of type u32.
func (r *rig) condition(text string) *dag.Condition {
	b := dag.New("condition")
	x := b.Device("x", dag.U32, 1)
	b.Init(x, dag.Init{Kind: dag.InitValue, Value: expr.Int(0)})
	b.If("test", text, func() { b.Memset("set", b.Whole(x), 0) }, nil)
	g, err := b.Graph()
	require.NoError(r, err)
	return g.Nodes[0].Control.Condition
}

// What the loop of these tests does: a pass mixes all words, and then once more, in a way that depends on the first word.
const (
	loopSmall = 134217728  // the loop ends when the first word is below
	loopLarge = 2147483648 // the branch goes one way if it is above
)

// looped is the nodes up, loop and down. The counts of the loop, and then of the branch, are at counts.
func (r *rig) looped(test conditions.Test, counts cudart.Ptr) ([]cudart.Command, [][]int32) {
	branch := cudart.Command{Kind: cudart.RunBodies, Stream: r.s[0], Label: "branch", Node: -1, Conditional: &cudart.Conditional{
		Test: conditions.Test{Branch: true, Condition: r.condition(fmt.Sprint("x > ", int64(loopLarge)))}, Operands: []cudart.Ptr{r.d},
		Counts: counts + 8*conditions.CountWords,
		Bodies: []cudart.Body{{Commands: []cudart.Command{r.mix(0, r.d, r.d, 2)}, Deps: [][]int32{nil}},
			{Commands: []cudart.Command{{Kind: cudart.Empty, Stream: r.s[0], Label: "root"}, r.mix(0, r.d, r.d, 3)}, Deps: [][]int32{nil, {0}}}}}}
	loop := cudart.Command{Kind: cudart.RunBodies, Stream: r.s[0], Label: "loop", Node: -1, Conditional: &cudart.Conditional{
		Test: test, Counts: counts, Clear: 2,
		Bodies: []cudart.Body{{Commands: []cudart.Command{r.mix(0, r.d, r.d, 1), branch}, Deps: [][]int32{nil, {0}}}}}}
	if test.Condition != nil {
		loop.Conditional.Operands = []cudart.Ptr{r.d}
	}
	r.decide(loop.Conditional, branch.Conditional)
	return []cudart.Command{r.up(0, r.d, r.h), loop, r.down(0, r.g, r.d)}, [][]int32{nil, {0}, {1}}
}

// decide loads the kernel that decides about loops and branches, if the platform takes one.
func (r *rig) decide(all ...*cudart.Conditional) {
	if !r.p.TakesDeciders() {
		return
	}
	var decider conditions.Decider
	for _, c := range all {
		decider.Add(c.Test)
	}
	m, err := r.p.Load(context.Background(), 0, decider.Module())
	require.NoError(r, err)
	r.Cleanup(func() { require.NoError(r, m.Close()) })
	k, err := m.Kernel(conditions.Entry)
	require.NoError(r, err)
	for _, c := range all {
		c.Decider, c.Number = k, decider.Number(c.Condition)
	}
}

// follow does in Go what the loop does, and returns its counts and those of the branch.
func follow(all []uint32, test conditions.Test) (counts [2 * conditions.CountWords]int64) {
	loop, branch := counts[:conditions.CountWords], counts[conditions.CountWords:]
	mix := func(k uint32) {
		for i, x := range all {
			all[i] = mixed(x, x, k)
		}
	}
	small := func() bool { return all[0] < loopSmall }
	loop[conditions.CountRuns] = 1
	pass := int64(0)
	for {
		if test.Condition != nil && test.While && pass%test.Every == 0 && !small() {
			break
		}
		if pass == test.Times {
			if test.Condition != nil {
				loop[conditions.CountMissed]++
			}
			break
		}
		mix(1)
		branch[conditions.CountRuns]++
		if all[0] > loopLarge {
			branch[conditions.CountHeld]++
			mix(2)
		} else {
			mix(3)
		}
		pass++
		if test.Condition != nil && !test.While && (pass == test.Times || pass%test.Every == 0) && small() {
			break
		}
	}
	loop[conditions.CountPass], loop[conditions.CountPasses] = pass, pass
	return counts
}

func conditionals(r *rig) {
	const countBytes = 2 * 8 * conditions.CountWords
	counts, err := r.p.Alloc(0, countBytes)
	require.NoError(r, err)
	defer func() { require.NoError(r, r.p.Free(counts)) }()
	there, err := r.p.AllocHost(countBytes, false)
	require.NoError(r, err)
	defer func() { require.NoError(r, r.p.Free(there)) }()
	counted := (*[2 * conditions.CountWords]int64)(unsafe.Pointer(unsafe.SliceData(r.p.HostBytes(there, countBytes))))
	fetch := cudart.Command{Kind: cudart.CopyMemory, Stream: r.s[0], Label: "counts", Node: -1, Dst: there, DstDevice: -1, Src: counts, Bytes: countBytes}
	until := r.condition(fmt.Sprint("x < ", loopSmall))
	for _, test := range []conditions.Test{
		{Times: 0, Every: 1}, {Times: 7, Every: 1}, {Condition: until, Times: 1000, Every: 1}, {Condition: until, Times: 1000, Every: 3},
		{Condition: until, Times: 2, Every: 1}, {Condition: until, While: true, Times: 1000, Every: 1}, {Condition: until, While: true, Times: 1, Every: 1},
	} {
		commands, deps := r.looped(test, counts)
		g := r.graph(r.p.BuildGraph(append(commands, fetch), append(deps, []int32{1}), cudart.GraphOptions{Origin: r.s[0], Priorities: true}))
		require.NoError(r, g.Upload(r.s[1]))
		check := func(round uint32) {
			for i := range r.host {
				r.host[i] = uint32(i) + 7*round
			}
			require.NoError(r, g.Launch(r.s[1]))
			require.NoError(r, r.s[1].Synchronize(context.Background()))
			want := append([]uint32(nil), r.host...)
			counts := follow(want, test)
			require.Equal(r, want, r.back, "%+v", test)
			require.Equal(r, counts, *counted, "%+v", test)
		}
		for round := range uint32(5) {
			check(round)
		}
		// A change of a node beside the loop.
		other, back := r.pinned()
		copy(back, r.host)
		require.NoError(r, g.SetCopy(0, r.d, other))
		back[0] = 12345
		require.NoError(r, g.Launch(r.s[1]))
		require.NoError(r, r.s[1].Synchronize(context.Background()))
		want := append([]uint32(nil), back...)
		follow(want, test)
		require.Equal(r, want, r.back, "moved, %+v", test)
		require.Error(r, g.SetCopy(1, r.d, r.d), "a loop has no addresses")
	}
	commands, _ := r.looped(conditions.Test{Times: 1, Every: 1}, counts)
	_, err = r.p.Encode(commands, cudart.ListOptions{Origin: r.s[0]})
	require.Error(r, err, "a loop is part of a graph")
	for _, spoil := range []func(*cudart.Conditional){
		func(c *cudart.Conditional) { c.Bodies = nil },
		func(c *cudart.Conditional) { c.Bodies = append(c.Bodies, c.Bodies[0]) },
		func(c *cudart.Conditional) { c.Operands = []cudart.Ptr{r.d} },
		func(c *cudart.Conditional) { c.Bodies[0].Deps = nil },
		func(c *cudart.Conditional) {
			c.Bodies[0].Commands = append(c.Bodies[0].Commands, r.record(0, r.event(false)))
			c.Bodies[0].Deps = append(c.Bodies[0].Deps, nil)
		},
	} {
		commands, deps := r.looped(conditions.Test{Times: 1, Every: 1}, counts)
		spoil(commands[1].Conditional)
		_, err := r.p.BuildGraph(commands, deps, cudart.GraphOptions{Origin: r.s[0]})
		require.Error(r, err)
	}
}
