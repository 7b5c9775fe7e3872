// Tests of spreading loops and branches: the proof agrees with brute force on random nests, and mistakes in bodies are refused.

package spread

import (
	"context"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/planner/internal/placement"
	"github.com/dagrun/dagrun/planner/internal/planted"
	"github.com/dagrun/dagrun/planner/plan"
	proof "github.com/dagrun/dagrun/planner/proof/spread"
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
		p, err := placement.NewProblem(g, devices, nil)
		require.NoError(t, err)
		s, err := placement.Transform(p, drawPlacement(random, p))
		require.NoError(t, err, "seed %d", seed)
		require.NoError(t, proof.Verify(g, s), "seed %d", seed)
		require.True(t, plainlyEqual(g, s), "seed %d: the spread is wrong, but was proved", seed)
		for _, body := range s.Bodies {
			for _, from := range body {
				if from == plan.Inserted {
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
				p, err := placement.NewProblem(g, 3, nil)
				require.NoError(t, err)
				at := drawPlacement(random, p)
				remove := planted.Plant(c.fault)
				s, err := placement.Transform(p, at)
				remove()
				require.NoError(t, err)
				err = proof.Verify(g, s)
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
		for _, policy := range Policies() {
			s, err := New(context.Background(), g, Options{Devices: 3, Policy: policy, Options: planner.Options{Machine: planner.Unit()}})
			require.NoError(t, err, "seed %d, %s", seed, policy)
			require.Len(t, s.At, Nodes(g))
			again, err := At(g, Options{Devices: 3}, s.At)
			require.NoError(t, err)
			require.Equal(t, s.Graph.Hash(), again.Graph.Hash())
			p, err := planner.New(context.Background(), s.Graph, planner.Options{Machine: planner.Unit()})
			require.NoError(t, err)
			if policy == placement.Auto {
				least = p.Stats.MakespanUS
			}
			require.LessOrEqual(t, least, p.Stats.MakespanUS+1e-9, "seed %d: %s is better than auto", seed, policy)
		}
	}
}
