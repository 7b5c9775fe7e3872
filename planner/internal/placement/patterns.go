// Patterns: placements for work on grids and in layers, as people deal such work out by hand. The search starts from them.

package placement

import (
	"cmp"
	"slices"

	"github.com/dagrun/dagrun/dag"
)

// coordinates say which part of the work a node does, from the most to the least significant: numbers in the name of the buffer that it writes,
// then the row and the place within the buffer.
type coordinates [4]int64

// coordinatesOf returns those of every free node, and which nodes have any.
func (e *estimator) coordinatesOf() ([]coordinates, []bool) {
	g := e.p.Graph
	list, known := make([]coordinates, len(e.times)), make([]bool, len(e.times))
	for i := range list {
		if !e.free(int32(i)) {
			continue
		}
		for _, a := range g.Accesses(dag.NodeID(i)) {
			if a.Mode&dag.Write == 0 || e.p.stays[a.Buffer] || g.Buffers[a.Buffer].Scratch {
				continue
			}
			first, second := numbersIn(g.Buffers[a.Buffer].Name)
			row, place := int64(0), a.Lo
			if pitch := e.p.spaces[a.Buffer].pitch; pitch > 0 {
				row, place = a.Lo/pitch, a.Lo%pitch
			}
			list[i], known[i] = coordinates{first, second, row, place}, true
			break
		}
	}
	return list, known
}

// numbersIn returns the last two numbers in a name; -1 stands for one that is not there.
func numbersIn(name string) (first, second int64) {
	const most = 1 << 40
	first, second = -1, -1
	for k := 0; k < len(name); k++ {
		if name[k] < '0' || name[k] > '9' {
			continue
		}
		n := int64(0)
		for ; k < len(name) && name[k] >= '0' && name[k] <= '9'; k++ {
			n = min(most, n*10+int64(name[k]-'0'))
		}
		first, second = second, n
	}
	return first, second
}

// grid numbers the nodes along the last two coordinates in which they differ.
type grid struct {
	x, y          []int
	rows, columns int
	known         []bool
}

func (e *estimator) grid() *grid {
	list, known := e.coordinatesOf()
	ranks := func(dimension int) ([]int, int) {
		var values []int64
		for i, c := range list {
			if known[i] {
				values = append(values, c[dimension])
			}
		}
		slices.Sort(values)
		values = slices.Compact(values)
		at := make([]int, len(list))
		for i, c := range list {
			if known[i] {
				at[i], _ = slices.BinarySearch(values, c[dimension])
			}
		}
		return at, max(1, len(values))
	}
	g := &grid{x: make([]int, len(list)), y: make([]int, len(list)), rows: 1, columns: 1, known: known}
	for dimension := range len(coordinates{}) {
		if at, n := ranks(dimension); n > 1 {
			g.x, g.rows, g.y, g.columns = g.y, g.columns, at, n
		}
	}
	return g
}

// patterns deals grids out in turn and in blocks, with the devices in a grid themselves, and layers in blocks.
func (e *estimator) patterns() [][]int32 {
	g, devices := e.grid(), e.p.Devices
	var list [][]int32
	add := func(device func(i int) int) {
		at := e.start()
		for i := range at {
			if g.known[i] {
				at[i] = int32(device(i))
			}
		}
		e.flows.settle(at)
		list = append(list, at)
	}
	for rows := 1; rows <= devices; rows++ {
		if devices%rows != 0 {
			continue
		}
		columns := devices / rows
		add(func(i int) int { return g.x[i]%rows*columns + g.y[i]%columns })
		add(func(i int) int { return g.x[i]*rows/g.rows*columns + g.y[i]*columns/g.columns })
	}
	long := make([]int, g.rows)
	for i, x := range g.x {
		if g.known[i] {
			long[x] = max(long[x], g.y[i]+1)
		}
	}
	add(func(i int) int { return g.y[i] * devices / long[g.x[i]] })
	return append(list, e.layers())
}

// layers cuts nodes that are as far from the beginning as each other into blocks of equal work, beside what they read from.
func (e *estimator) layers() []int32 {
	g := e.p.Graph
	n := len(e.times)
	depth, along := make([]int, n), make([]float64, n)
	var byDepth [][]int32
	for _, id := range g.Topological() {
		i := int32(id)
		for _, r := range e.flows.reads[e.flows.start[i]:e.flows.start[i+1]] {
			if w := e.flows.data[r].writer; w >= 0 {
				depth[i] = max(depth[i], depth[w]+1)
			}
		}
		for len(byDepth) <= depth[i] {
			byDepth = append(byDepth, nil)
		}
		byDepth[depth[i]] = append(byDepth[depth[i]], i)
	}
	at := e.start()
	for _, layer := range byDepth {
		slices.Sort(layer)
		total := 0.0
		for k, i := range layer {
			sum, bytes := 0.0, 0.0
			for _, r := range e.flows.reads[e.flows.start[i]:e.flows.start[i+1]] {
				if x := &e.flows.data[r]; x.writer >= 0 {
					sum += along[x.writer] * float64(x.bytes)
					bytes += float64(x.bytes)
				}
			}
			along[i] = (float64(k) + 0.5) / float64(len(layer))
			if bytes > 0 {
				along[i] = sum / bytes
			}
			total += e.times[i]
		}
		slices.SortStableFunc(layer, func(a, b int32) int { return cmp.Compare(along[a], along[b]) })
		done := 0.0
		for _, i := range layer {
			if total > 0 {
				along[i] = (done + e.times[i]/2) / total
			}
			done += e.times[i]
			if e.free(i) {
				at[i] = min(int32(along[i]*float64(e.p.Devices)), int32(e.p.Devices)-1)
			}
		}
	}
	e.flows.settle(at)
	return at
}
