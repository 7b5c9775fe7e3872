// Tests of learning with several ranks: they take the same way, and what fails on one ends all.

package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart/world"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/runtime"
)

func TestRanksLearnTheSameWay(t *testing.T) {
	var mu sync.Mutex
	ways := map[int][]string{}
	replays := map[int]uint64{}
	onRanks(t, runtime.Options{}, func(rank int, p *runtime.Program, w *world.World) error {
		learned, err := p.Learn(t.Context(), runtime.LearnOptions{Plan: planner.Options{}, Replays: 120})
		if err != nil {
			return err
		}
		mu.Lock()
		for _, way := range learned.Ways {
			ways[rank] = append(ways[rank], fmt.Sprintf("%s %d %v %v", way.Plan.Strategy, len(way.Plan.Streams), way.Mode, way.Each))
		}
		replays[rank] = p.Replays()
		mu.Unlock()
		require.Equal(t, p.Mode(), learned.Ways[0].Mode)
		require.Equal(t, learned.Ways[0].Plan, p.Plan())
		return p.Run(t.Context(), 120-learned.Replays)
	})
	require.NotEmpty(t, ways[0])
	require.Equal(t, ways[0], ways[1])
	require.Equal(t, replays[0], replays[1])
}

func TestARankThatFailsWhileLearningEndsTheOther(t *testing.T) {
	over := errors.New("over")
	ends := make([]error, 2)
	endsOfRanks(t, runtime.Options{}, false, func(rank int, p *runtime.Program, w *world.World) error {
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		count := 0
		_, err := p.Learn(ctx, runtime.LearnOptions{Replays: 120, Progress: func(stage string, done, total int) {
			if count++; rank == 1 && count == 9 {
				cancel(over)
			}
		}})
		ends[rank] = err
		return w.Leave(err)
	})
	require.Error(t, ends[0])
	require.ErrorContains(t, ends[0], "rank 1 of 2")
	require.ErrorContains(t, ends[0], "over")
	require.Error(t, ends[1])
}

func TestSeveralRanksNeedAnExchangeToLearn(t *testing.T) {
	require.Equal(t, []error{nil, nil}, endsOfRanks(t, runtime.Options{}, true, func(_ int, p *runtime.Program, _ *world.World) error {
		require.EqualError(t, p.CanLearn(), "several ranks learn together, and Options.Exchange is not set")
		return p.Run(t.Context(), 1)
	}))
}
