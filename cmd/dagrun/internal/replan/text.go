// What is known of a graph, in words.

package replan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
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
	fmt.Fprintf(&out, "a graph of %d nodes, %d of them kernels, and %d values in its own memory, of which %d can be moved\n", len(k.Nodes), kernels, own, can)
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
