// Spreads and spills of a few graphs as they were reviewed: a change of a search that places, orders or moves anything otherwise shows here.
// -rewrite writes them anew.

package spread

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/planner/internal/plantest"
	"github.com/dagrun/dagrun/planner/plan"
	"github.com/dagrun/dagrun/tests/nests"
)

// described says how much is moved, and a sum over where nodes run and what they access.
func described(s *plan.Spread, err error) string {
	if err != nil {
		return err.Error()
	}
	if s == nil {
		return "all of it fits"
	}
	sum := fnv.New32a()
	fmt.Fprintln(sum, s.At, s.Nodes, s.Bodies, s.Buffers, s.Order, s.Spilled, s.Offsets)
	s.Graph.EachGraph(func(g *dag.Graph, _ []string) {
		for i := range g.Nodes {
			fmt.Fprintln(sum, g.Nodes[i].Name, g.Nodes[i].Device, g.Accesses(dag.NodeID(i)))
		}
	})
	text := fmt.Sprintf("%d nodes, %d copies of %d bytes", len(s.Nodes), s.Stats.Copies, s.Stats.Bytes)
	if s.Stats.Spills+s.Stats.Reloads > 0 {
		text += fmt.Sprintf(", %d spills and %d reloads of %d bytes", s.Stats.Spills, s.Stats.Reloads, s.Stats.SpilledBytes)
	}
	return fmt.Sprintf("%s, by %s, %08x", text, s.Policy, sum.Sum32())
}

func TestSpreadsAreThoseThatWereReviewed(t *testing.T) {
	var text strings.Builder
	machines := []*planner.Machine{planner.Unit(), planner.H200()}
	spreads := func(name string, g *dag.Graph, devices int, m *planner.Machine, policies ...string) {
		for _, policy := range policies {
			s, err := New(context.Background(), g, Options{Options: planner.Options{Machine: m, Effort: planner.Quick}, Devices: devices, Policy: policy})
			fmt.Fprintf(&text, "%s over %d by %s: %s\n", name, devices, policy, described(s, err))
		}
	}
	spills := func(name string, g *dag.Graph, limit int64, devices int) {
		s, err := Spill(context.Background(), g, Options{Options: planner.Options{MemoryCap: limit, Effort: planner.Quick}})
		fmt.Fprintf(&text, "%s in %d bytes: %s\n", name, limit, described(s, err))
		if devices > 1 {
			s, err := New(context.Background(), g, Options{Options: planner.Options{MemoryCap: limit, Effort: planner.Quick}, Devices: devices})
			fmt.Fprintf(&text, "%s over %d in %d bytes: %s\n", name, devices, limit, described(s, err))
		}
	}
	for k, family := range spillFamilies() {
		in := spillInstance{Family: family, Size: 4 + k%3, US: 20, Seed: uint64(k % 2)}
		if family == "random" {
			in.Size = 30
		}
		g := in.Graph(t)
		spreads(family, g, 2+k%2, machines[1], Policies()...)
		for tiles := range int64(4) {
			spills(family, g, (3+tiles)*plantest.BlockBytes, 1+int(tiles)%2)
		}
	}
	for seed := range uint64(10) {
		g, err := nests.New(rand.New(rand.NewPCG(seed, 17))).Graph()
		require.NoError(t, err)
		spreads(fmt.Sprintf("nest %d", seed), g, 2, machines[seed%2], Policies()[1:]...)
		spills(fmt.Sprintf("nest %d", seed), g, 512, 1)
	}
	for family := range plantest.Families {
		s := plantest.RandomShape(family, 24, 4)
		spreads(s.Name, s.Graph(t), 3, machines[family%2], Policies()...)
	}
	for seed := range uint64(3) {
		spreads(fmt.Sprintf("mixed %d", seed), plantest.MixedGraph(t, seed, 30, false), 2, machines[1], Policies()...)
	}
	const file = "testdata/spreads.txt"
	if *rewrite {
		require.NoError(t, os.WriteFile(file, []byte(text.String()), 0o644))
		return
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), text.String(), "%s is out of date; if the change is meant: go test ./planner/spread -run %s -rewrite, and review the diff", file, t.Name())
}
