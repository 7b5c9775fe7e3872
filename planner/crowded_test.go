// Tests of crowded graphs, whose nodes depend on each other by the square of their number: planned, proved and written in bounded time.

package planner

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
)

// everyByte has n writers of a byte each and n readers of all bytes.
func everyByte(b *dag.Builder, n int) {
	x := b.Device("x", dag.U8, int64(n))
	for i := range int64(n) {
		b.Cost(b.Task(fmt.Sprintf("w%d", i), b.Slice(x, i, i+1).Out()), 1)
	}
	for i := range n {
		b.Cost(b.Task(fmt.Sprintf("r%d", i), b.In(x)), 1)
	}
}

// sliceAfterAll has n readers of all bytes, and then n/2 writers and n/2 readers of slices.
func sliceAfterAll(b *dag.Builder, n int) {
	x := b.Device("x", dag.U8, int64(2*n))
	for i := range n {
		b.Cost(b.Task(fmt.Sprintf("r%d", i), b.In(x)), 1)
	}
	for i := range int64(n) {
		slice := b.Slice(x, 2*i, 2*i+2)
		access := slice.Out()
		if i%2 == 1 {
			access = slice.In()
		}
		b.Cost(b.Task(fmt.Sprintf("s%d", i), access), 1)
	}
}

// inTurn has readers of all bytes between writers of a few of them.
func inTurn(b *dag.Builder, n int) {
	x := b.Device("x", dag.U8, int64(n))
	for i := range int64(n) {
		b.Cost(b.Task(fmt.Sprintf("w%d", i), b.Slice(x, i, i+1).Out()), 1)
	}
	for i := range int64(n) / 2 {
		b.Cost(b.Task(fmt.Sprintf("r%d", i), b.In(x)), 1)
		lo := i * 7919 % int64(n-3)
		b.Cost(b.Task(fmt.Sprintf("a%d", i), b.Slice(x, lo, lo+3).Out()), 1)
	}
}

func graphOf(t testing.TB, declare func(b *dag.Builder, n int), n int) *dag.Graph {
	b := dag.New("crowded")
	declare(b, n)
	g, err := b.Graph()
	require.NoError(t, err)
	require.NotEmpty(t, g.Joins())
	return g
}

func TestCrowdedGraphsArePlanned(t *testing.T) {
	for _, shape := range []struct {
		name    string
		declare func(b *dag.Builder, n int)
		n       int
	}{{"every byte", everyByte, 20_000}, {"slices after all", sliceAfterAll, 10_000}, {"in turn", inTurn, 3_000}} {
		t.Run(shape.name, func(t *testing.T) {
			g := graphOf(t, shape.declare, shape.n)
			for _, strategy := range []string{"auto", "list", "roundrobin", "serial"} {
				p, err := New(t.Context(), g, Options{Strategy: strategy})
				require.NoError(t, err) // New has verified the plan
				require.LessOrEqual(t, p.Stats.Waits, 8*g.Len())
				if strategy != "list" {
					continue
				}
				require.NoError(t, p.WriteDOT(io.Discard, g))
				require.NoError(t, p.WriteText(io.Discard, g, nil))
				var file bytes.Buffer
				require.NoError(t, p.EncodeJSON(&file, g))
				back, err := DecodePlan(&file, g)
				require.NoError(t, err)
				require.Equal(t, p.Streams, back.Streams)
				explained, err := Explain(g, p)
				require.NoError(t, err)
				for _, e := range explained {
					require.NotEqual(t, NotEnforced, e.How)
				}
				edges, err := GraphEdges(g, p)
				require.NoError(t, err)
				require.NoError(t, VerifyEdges(g, p, edges))
			}
			_, err := New(t.Context(), g, Options{Strategy: "cover"})
			require.Error(t, err)
			require.True(t, isAny(err, ErrTooManyStreams, ErrGraphTooLarge), "%v", err)
		})
	}
}

func isAny(err error, targets ...error) bool {
	for _, target := range targets {
		if errors.Is(err, target) {
			return true
		}
	}
	return false
}
