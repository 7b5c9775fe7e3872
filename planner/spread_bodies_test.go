// Tests of spreading loops and branches: the proof agrees with brute force on random nests, and mistakes in bodies are refused.

package planner

import (
	"context"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/planner/internal/planted"
	"github.com/dagrun/dagrun/planner/internal/spread"
	spreadproof "github.com/dagrun/dagrun/planner/proof/spread"
)

func TestSpreadNestsAgreeWithBruteForce(t *testing.T) {
	cases, inside := uint64(120), 0
	if os.Getenv("DAGRUN_LONG") != "" {
		cases = 10_000
	}
	for k := range cases + 1 {
		seed := (k + 1397) % 10_000 // the first one needs bytes that come to a device and go on to another
		random := rand.New(rand.NewPCG(seed, 31))
		devices := 1 + random.IntN(4)
		g := drawNested(t, random, devices, 1+random.IntN(3))
		p, err := spread.NewProblem(g, devices, nil)
		require.NoError(t, err)
		s, err := spread.Transform(p, drawPlacement(random, p))
		require.NoError(t, err, "seed %d", seed)
		require.NoError(t, spreadproof.Verify(g, s), "seed %d", seed)
		require.True(t, plainlyEqual(g, s), "seed %d: the spread is wrong, but was proved", seed)
		for _, body := range s.Bodies {
			for _, from := range body {
				if from == Inserted {
					inside++
				}
			}
		}
	}
	require.Greater(t, inside, int(cases), "copies in bodies")
}

func TestPlantedFaultsInBodiesAreRefused(t *testing.T) {
	for _, c := range []struct {
		name  string
		fault planted.Fault
	}{{"a missing copy", planted.Missing}, {"a stale replica", planted.Stale}, {"a late copy", planted.Late}, {"a wrong source", planted.Source}} {
		t.Run(c.name, func(t *testing.T) {
			refused, harmless := 0, 0
			for seed := range uint64(80) {
				random := rand.New(rand.NewPCG(seed, 37))
				g := drawNested(t, random, 3, 2)
				p, err := spread.NewProblem(g, 3, nil)
				require.NoError(t, err)
				at := drawPlacement(random, p)
				remove := planted.Plant(c.fault)
				s, err := spread.Transform(p, at)
				remove()
				require.NoError(t, err)
				err = spreadproof.Verify(g, s)
				switch {
				case err == nil:
					require.True(t, plainlyEqual(g, s), "seed %d: the spread is wrong, but was proved", seed)
				case plainlyEqual(g, s): // wrong in runs that the dice did not make
					harmless++
				default:
					refused++
				}
			}
			require.Greater(t, refused, 5)
			require.Less(t, harmless, refused/4, "the proof must not refuse what is right")
		})
	}
}

func TestEveryPolicyPlacesBodies(t *testing.T) {
	for seed := range uint64(8) {
		random := rand.New(rand.NewPCG(seed, 41))
		g := drawNested(t, random, 3, 2)
		least := 0.0
		for _, policy := range SpreadPolicies() {
			s, err := SpreadGraph(context.Background(), g, Options{Devices: 3, Spread: policy, Machine: Unit()})
			require.NoError(t, err, "seed %d, %s", seed, policy)
			require.Len(t, s.At, SpreadNodes(g))
			again, err := SpreadAt(g, Options{Devices: 3}, s.At)
			require.NoError(t, err)
			require.Equal(t, s.Graph.Hash(), again.Graph.Hash())
			p, err := New(context.Background(), s.Graph, Options{Machine: Unit()})
			require.NoError(t, err)
			if policy == spread.Auto {
				least = p.Stats.MakespanUS
			}
			require.LessOrEqual(t, least, p.Stats.MakespanUS+1e-9, "seed %d: %s is better than auto", seed, policy)
		}
	}
}
