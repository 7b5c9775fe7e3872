// Tests of what programs decide by what they have measured, alone and with other ranks.

package engine

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
)

func TestTheFasterModeIsTaken(t *testing.T) {
	require.Equal(t, Streams, fasterMode(1, 2))
	require.Equal(t, Captured, fasterMode(2, 1))
	require.Equal(t, Streams, fasterMode(2, 2), "a graph must be faster to be worth its memory")
}

// Ranks that replay together take the number of rank 0, whatever each has measured.
func TestRanksAgree(t *testing.T) {
	asked := ""
	agree := func(_ context.Context, own string) (string, error) { asked = own; return "5", nil }
	number := func(ranks int, agree func(context.Context, string) (string, error)) (int, error) {
		asked = ""
		b := dag.New("ranks")
		if ranks > 0 {
			b.Ranks(0, ranks)
		}
		g, err := b.Graph()
		require.NoError(t, err)
		p := &Program{graph: g, options: Options{Agree: agree}}
		return p.agreed(t.Context(), 7)
	}
	for _, c := range []struct {
		ranks int
		agree func(context.Context, string) (string, error)
		want  int
		asked string
	}{{0, agree, 7, ""}, {1, agree, 7, ""}, {2, nil, 7, ""}, {2, agree, 5, "7"}} {
		got, err := number(c.ranks, c.agree)
		require.NoError(t, err)
		require.Equal(t, c.want, got, "%d ranks", c.ranks)
		require.Equal(t, c.asked, asked, "%d ranks", c.ranks)
	}
	gone := errors.New("rank 0 has gone")
	_, err := number(2, func(context.Context, string) (string, error) { return "", gone })
	require.ErrorIs(t, err, gone)
	_, err = number(2, func(context.Context, string) (string, error) { return "graph", nil })
	require.Error(t, err)
}
