// Tests of lowering: a program submits its plan's replay, op by op, and nothing else.

package runtime_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/cudart/host"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/kernels"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/planner/plan"
	"github.com/dagrun/dagrun/planner/proof"
	"github.com/dagrun/dagrun/runtime"
)

// encoding is a platform that remembers what it was given to encode.
type encoding struct {
	cudart.Platform
	lists [][]cudart.Command
}

func (e *encoding) Encode(commands []cudart.Command, options cudart.ListOptions) (cudart.List, error) {
	e.lists = append(e.lists, commands)
	return e.Platform.Encode(commands, options)
}

func TestLoweringIsTheReplayOneToOne(t *testing.T) {
	b := dag.New("lowered")
	const n = 64
	out := b.Host("out", dag.F32, 4*n)
	for i := range int64(4) {
		d, e := b.Device("d"+string(rune('0'+i)), dag.F32, n), b.Device("e"+string(rune('0'+i)), dag.F32, n)
		b.Memset("set"+string(rune('0'+i)), b.Whole(d), 0)
		b.Copy("copy"+string(rune('0'+i)), b.Whole(e), b.Whole(d))
		b.Copy("down"+string(rune('0'+i)), b.Part(out, i, 4), b.Whole(e))
	}
	g, err := b.Graph()
	require.NoError(t, err)
	for _, strategy := range []string{"serial", "roundrobin", "list"} {
		for _, inflight := range []int{1, 3} {
			plan, err := planner.New(context.Background(), g, planner.Options{Strategy: strategy, Streams: 4})
			require.NoError(t, err)
			platform, err := host.Open(host.Options{})
			require.NoError(t, err)
			seen := &encoding{Platform: platform}
			program, err := runtime.New(context.Background(), g, plan, seen, runtime.Options{Inflight: inflight, Mode: runtime.Streams})
			require.NoError(t, err)
			require.Len(t, seen.lists, inflight)
			replay := plan.Replay(inflight)
			require.NoError(t, proof.Replay(g, plan, replay))
			for _, commands := range seen.lists {
				requireOneToOne(t, replay, commands)
			}
			require.NoError(t, program.Close())
			require.NoError(t, platform.Close())
		}
	}
}

// requireOneToOne matches commands with ops; streams and events match if each one always corresponds to the same other one.
func requireOneToOne(t *testing.T, replay *plan.Replay, commands []cudart.Command) {
	t.Helper()
	streams, events := map[int32]cudart.Stream{}, map[int32]cudart.Event{}
	streamOf, eventOf := map[cudart.Stream]int32{}, map[cudart.Event]int32{}
	next := 0
	for _, c := range commands {
		if c.Kind == cudart.RangePush || c.Kind == cudart.RangePop {
			continue
		}
		require.Less(t, next, len(replay.Ops), "%+v", c)
		op := replay.Ops[next]
		next++
		require.Equal(t, int32(op.Node), c.Node, "op %d", next)
		if known, ok := streams[op.Stream]; ok {
			require.True(t, known == c.Stream && op.Stream == streamOf[c.Stream], "op %d is on another stream", next)
		}
		streams[op.Stream], streamOf[c.Stream] = c.Stream, op.Stream
		switch op.Kind {
		case plan.Launch:
			require.NotContains(t, []cudart.CommandKind{cudart.RecordEvent, cudart.WaitEvent}, c.Kind)
			continue
		case plan.Record:
			require.Equal(t, cudart.RecordEvent, c.Kind)
		case plan.Wait:
			require.Equal(t, cudart.WaitEvent, c.Kind)
		}
		if known, ok := events[op.Event]; ok {
			require.True(t, known == c.Event, "op %d is on another event", next)
		} else {
			_, used := eventOf[c.Event]
			require.False(t, used, "op %d: two events in one object", next)
		}
		events[op.Event], eventOf[c.Event] = c.Event, op.Event
	}
	require.Len(t, replay.Ops, next)
}

// Profilers see each node in a range of its name, and each replay in a range of the pipeline's. With DebugProgress, each node is followed on its stream
// by a word of its own.
func TestEveryNodeIsInARangeOfItsName(t *testing.T) {
	for _, progress := range []bool{false, true} {
		g := stages(t)
		plan, err := planner.New(t.Context(), g, planner.Options{Streams: 2})
		require.NoError(t, err)
		seen := &encoding{Platform: cpu(t)}
		program, err := runtime.New(t.Context(), g, plan, seen, runtime.Options{Mode: runtime.Streams, DebugProgress: progress})
		require.NoError(t, err)
		defer program.Close()
		require.Len(t, seen.lists, 1)
		var open []string
		var words []cudart.Ptr // by node, in the order of commands
		var nodes []int32
		var last cudart.Command // that of the last node
		for _, c := range seen.lists[0] {
			switch c.Kind {
			case cudart.RangePush:
				open = append(open, c.Label)
			case cudart.RangePop:
				require.Equal(t, open[len(open)-1], c.Label)
				open = open[:len(open)-1]
			case cudart.RecordEvent, cudart.WaitEvent:
				require.Equal(t, []string{g.Name}, open)
			default:
				if c.Node < 0 {
					require.Equal(t, []string{g.Name}, open)
					require.Equal(t, []any{cudart.SetMemory, last.Stream, last.Label, uint32(1), uint8(4), int64(4)},
						[]any{c.Kind, c.Stream, c.Label, c.Pattern, c.Width, c.Bytes})
					words = append(words, c.Dst)
					continue
				}
				require.Equal(t, []string{g.Name, g.Nodes[c.Node].Name}, open)
				nodes, last = append(nodes, c.Node), c
			}
		}
		require.Empty(t, open)
		require.Len(t, nodes, g.Len())
		if !progress {
			require.Empty(t, words)
			continue
		}
		require.Len(t, words, g.Len())
		require.ElementsMatch(t, []string{"up", "first", "second", "down"}, program.Unfinished())
		require.NoError(t, program.Run(t.Context(), 1))
		require.Empty(t, program.Unfinished())
		for k := range words {
			require.EqualValues(t, 4*(nodes[k]-nodes[0]), int64(words[k])-int64(words[0]))
		}
	}
}

// A kernel whose file gives no block has one that keeps the device busy.
func TestBlocksAreChosen(t *testing.T) {
	module, err := kernels.OpenModule("m", "m.ptx", []byte(counterPTX), kernels.OpenOptions{})
	require.NoError(t, err)
	b := dag.New("blocks")
	b.Module("m", "m.ptx", module)
	b.Kernel("chosen", "m.bump", dag.Args{}, dag.Grid(1))
	b.Kernel("given", "m.bump", dag.Args{}, dag.Grid(1), dag.Block(2, 3))
	g, err := b.Graph()
	require.NoError(t, err)
	plan, err := planner.New(t.Context(), g, planner.Options{})
	require.NoError(t, err)
	seen := &encoding{Platform: cpu(t)}
	program, err := runtime.New(t.Context(), g, plan, seen, runtime.Options{Mode: runtime.Streams})
	require.NoError(t, err)
	defer program.Close()
	var blocks [][3]uint32
	for _, c := range seen.lists[0] {
		if c.Kind == cudart.LaunchKernel {
			blocks = append(blocks, c.Block)
			best, _, err := c.Kernel.Occupancy(c.Shared)
			require.NoError(t, err)
			require.Positive(t, best)
			if c.Node == 0 {
				require.Equal(t, [3]uint32{best, 1, 1}, c.Block)
			} else {
				require.Equal(t, [3]uint32{2, 3, 1}, c.Block)
			}
		}
	}
	require.Len(t, blocks, 2)
}

// A platform is told which bytes a command touches, and which of them it overwrites without having read any: then it does not matter what was there.
func TestAccessesSayWhatIsOverwritten(t *testing.T) {
	b := dag.New("accesses")
	b.Use(kernels.Library())
	const n = 4096
	x, y, sums := b.Device("x", dag.F32, n), b.Device("y", dag.F32, n), b.Device("sums", dag.F32, n)
	b.Kernel("apart", "square", dag.Args{n, b.Whole(x), b.Whole(y)})
	b.Kernel("in place", "square", dag.Args{n, b.Whole(x), b.Whole(x)})
	b.Kernel("change", "scale", dag.Args{n, 2, b.Whole(x)})
	b.Kernel("scan", "exclusive_scan", dag.Args{n, b.Whole(x), b.Whole(sums)})
	b.Copy("part", b.Slice(y, 8, 16), b.Slice(x, 0, 8))
	g, err := b.Graph()
	require.NoError(t, err)
	plan, err := planner.New(t.Context(), g, planner.Options{})
	require.NoError(t, err)
	seen := &encoding{Platform: cpu(t)}
	program, err := runtime.New(t.Context(), g, plan, seen, runtime.Options{Mode: runtime.Streams})
	require.NoError(t, err)
	defer program.Close()
	told := map[string]bool{}
	for _, c := range seen.lists[0] {
		for _, a := range c.Accesses {
			mode := "reads"
			switch {
			case a.Whole:
				require.True(t, a.Write)
				mode = "overwrites"
			case a.Write:
				mode = "writes"
			}
			told[fmt.Sprintf("%s %s %d bytes of %s from %d", c.Label, mode, a.Bytes, a.Name, a.Offset)] = true
		}
	}
	for _, want := range []string{"apart reads 16384 bytes of x from 0", "apart overwrites 16384 bytes of y from 0", "in place writes 16384 bytes of x from 0",
		"in place reads 16384 bytes of x from 0", "change writes 16384 bytes of x from 0", "scan overwrites 16384 bytes of sums from 0",
		"part reads 32 bytes of x from 0", "part overwrites 32 bytes of y from 32"} {
		require.True(t, told[want], "%s: %v", want, told)
	}
	for text := range told {
		require.NotContains(t, text, "overwrites 16384 bytes of x")
		require.False(t, strings.Contains(text, "scratch") && strings.Contains(text, "overwrites"), "%s: what a kernel leaves there has no meaning", text)
	}
}
