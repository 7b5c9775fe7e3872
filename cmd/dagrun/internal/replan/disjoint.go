// A check of layouts that shares nothing with what makes them: it walks the edges of the new graph from node to node.

package replan

import (
	"cmp"
	"fmt"
	"slices"
)

// disjoint returns an error if two values share bytes and one of them is to lie alone, or the edges do not order every user of one and every user of the other.
func disjoint(nodes int, edges [][2]int, users [][]int, values []*lying) error {
	past, err := pastOf(nodes, edges)
	if err != nil {
		return err
	}
	ended := make([][]uint64, len(users)) // for each value, what has ended before any of its users begins
	for _, v := range values {
		for k, y := range users[v.value] {
			if k == 0 {
				ended[v.value] = slices.Clone(past[y])
			}
			for w := range ended[v.value] {
				ended[v.value][w] &= past[y][w]
			}
		}
	}
	all := func(early, late int) bool {
		return !slices.ContainsFunc(users[early], func(x int) bool { return len(ended[late]) > 0 && ended[late][x/64]>>(x%64)&1 == 0 })
	}
	sorted := slices.SortedFunc(slices.Values(values), func(a, b *lying) int { return cmp.Compare(a.at, b.at) })
	for k, a := range sorted {
		for _, b := range sorted[k+1:] {
			if b.at >= a.at+a.size {
				break
			}
			if a.alone || b.alone {
				return fmt.Errorf("values %d and %d share bytes, and one of them is to lie alone", a.value, b.value)
			}
			if !all(a.value, b.value) && !all(b.value, a.value) {
				return fmt.Errorf("values %d and %d share bytes, and nothing orders their users", a.value, b.value)
			}
		}
	}
	return nil
}

// pastOf returns for each node the set of those that have ended before it begins.
func pastOf(nodes int, edges [][2]int) ([][]uint64, error) {
	before, after, open := make([][]int, nodes), make([][]int, nodes), make([]int, nodes)
	for _, e := range edges {
		before[e[1]] = append(before[e[1]], e[0])
		after[e[0]] = append(after[e[0]], e[1])
		open[e[1]]++
	}
	past, done := make([][]uint64, nodes), 0
	var stack []int
	for k, n := range open {
		if n == 0 {
			stack = append(stack, k)
		}
	}
	for len(stack) > 0 {
		k := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		done++
		past[k] = make([]uint64, (nodes+63)/64)
		for _, other := range before[k] {
			for w, bits := range past[other] {
				past[k][w] |= bits
			}
			past[k][other/64] |= 1 << (other % 64)
		}
		for _, next := range after[k] {
			if open[next]--; open[next] == 0 {
				stack = append(stack, next)
			}
		}
	}
	if done < nodes {
		return nil, fmt.Errorf("the edges of a new graph go in a circle")
	}
	return past, nil
}
