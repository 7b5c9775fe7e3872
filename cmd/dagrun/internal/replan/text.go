// What is known of a graph and what binds it, in words.

package replan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/dagrun/dagrun/internal/recording"
	"github.com/dagrun/dagrun/internal/words"
)

// Text tells what was found out about a graph.
func (k *Known) Text() string {
	var out strings.Builder
	own, stays := 0, map[string]int{}
	for _, v := range k.Values {
		if v.Pool {
			own++
			if v.Pinned != "" {
				stays[v.Pinned]++
			}
		}
	}
	kernels, opaque := 0, map[string]int{}
	for _, n := range k.Nodes {
		if n.Type == kernelNode {
			kernels++
		}
		if n.Opaque != "" {
			opaque[n.Opaque]++
		}
	}
	can := own
	for _, n := range stays {
		can -= n
	}
	fmt.Fprintf(&out, "a graph of %s, %d of them kernels, and %d values in its own memory, of which %d can be moved\n",
		words.Count(len(k.Nodes), "node", "nodes"), kernels, own, can)
	for _, why := range byCount(stays) {
		fmt.Fprintf(&out, "  %d stay: %s\n", stays[why], why)
	}
	for _, why := range byCount(opaque) {
		fmt.Fprintf(&out, "  %d kernels may touch whatever their arguments point into: %s\n", opaque[why], why)
	}
	return out.String()
}

func byCount(counts map[string]int) []string {
	var keys []string
	for k := range counts {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b string) int { return cmp.Or(counts[b]-counts[a], cmp.Compare(a, b)) })
	return keys
}

// longestName is how many columns of a kernel's name are shown.
const longestName = 40

// name is what a node is called: its number, and what it does.
func (s *Seen) name(k int) string {
	switch s.Type {
	case kernelNode:
		return fmt.Sprintf("%d %s", k, words.Cut(recording.PlainName(s.Function), longestName))
	case copyNode:
		return fmt.Sprintf("%d copy", k)
	case setNode:
		return fmt.Sprintf("%d set", k)
	}
	return fmt.Sprintf("%d empty", k)
}

// Bounds are times that no plan of a graph is faster than, in microseconds.
type Bounds struct {
	ChainUS    float64 // its nodes one after the other, which is no bound
	CriticalUS float64 // its longest path
	FilledUS   float64 // all nodes, each counted by how much of the GPU its blocks fill
}

// Text says what binds a graph, in a line.
func (b Bounds) Text() string {
	bound := max(b.CriticalUS, b.FilledUS)
	if bound <= 0 {
		return "nothing in it takes time"
	}
	faster := fmt.Sprintf("no plan is more than %.2f times as fast as one stream", max(1, b.ChainUS/bound))
	part := min(100, 100*bound/max(b.ChainUS, bound))
	switch {
	case b.FilledUS > b.CriticalUS:
		return fmt.Sprintf("its kernels fill the GPU for %.0f%% of its time: %s", part, faster)
	case part > 90:
		return fmt.Sprintf("a chain: its critical path is %.0f%% of its time", part)
	}
	return fmt.Sprintf("its critical path is %.0f%% of its time: %s", part, faster)
}
