// References of sorting.

package library

import (
	"cmp"
	"slices"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/kernels/internal/reference"
	"github.com/dagrun/dagrun/kernels/launch"
)

type key interface {
	int32 | int64 | uint32 | uint64 | float32 | float64
}

// compareKeys orders keys: NaNs come last, and equal ones are 0, among them 0 and -0, and two NaNs.
func compareKeys[K key](a, b K) int {
	switch {
	case a != a || b != b:
		return -cmp.Compare(a, b)
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// sorting takes n, x, y, scratch.
func sorting[K key](*libraryKernel) launch.Reference {
	return launch.Reference{Spans: reference.OneSpan, Run: func(c *launch.Call, _, _ int64) {
		n := reference.Integer(c.Args[0])
		x, y := reference.Slice[K](c.Args[1], n), reference.Slice[K](c.Args[2], n)
		sorted := slices.Clone(x) // x and y may be the same
		slices.SortStableFunc(sorted, compareKeys[K])
		copy(y, sorted)
	}}
}

// sortingPairs takes n, keys, values, sorted, moved, scratch. Values are moved as bits: V has their size.
func sortingPairs[K key, V uint32 | uint64](*libraryKernel) launch.Reference {
	type pair struct {
		key   K
		value V
	}
	return launch.Reference{Spans: reference.OneSpan, Run: func(c *launch.Call, _, _ int64) {
		n := reference.Integer(c.Args[0])
		keys, values := reference.Slice[K](c.Args[1], n), reference.Slice[V](c.Args[2], n)
		sorted, moved := reference.Slice[K](c.Args[3], n), reference.Slice[V](c.Args[4], n)
		pairs := make([]pair, n)
		for i := range pairs {
			pairs[i] = pair{keys[i], values[i]}
		}
		slices.SortStableFunc(pairs, func(a, b pair) int { return compareKeys(a.key, b.key) })
		for i, p := range pairs {
			sorted[i], moved[i] = p.key, p.value
		}
	}}
}

// pairsBy are the versions of sort_pairs for keys of a type.
func pairsBy[K key](keys dag.DType) (all []version) {
	for _, x := range []dag.DType{dag.F32, dag.F64, dag.I32, dag.I64} {
		v := version{bind{T: keys, X: x, bits: 'X'}, sortingPairs[K, uint32]}
		if x.Size() == 8 {
			v.run = sortingPairs[K, uint64]
		}
		all = append(all, v)
	}
	return all
}
