// Package tasks reads a graph of tasks that a program runs itself: what each reads and writes, and how long it takes. The Python package writes it.
package tasks

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"

	"github.com/dagrun/dagrun/dag"
)

// description is the JSON of a graph of tasks. The key tasks comes first, so that it is told from a pipeline by its beginning.
type description struct {
	Tasks []struct {
		Name   string   `json:"name"`
		US     *float64 `json:"us"`     // microseconds, null if not known
		Reads  []int    `json:"reads"`  // numbers of ranges
		Writes []int    `json:"writes"` // likewise
	} `json:"tasks"`
	Memory []struct {
		Name    string `json:"name"`
		Address uint64 `json:"address"` // 0: at a place of its own
		Bytes   int64  `json:"bytes"`
	} `json:"memory"`
	Ranges []stretch `json:"ranges"`
}

// stretch is bytes of memory: rows of a width, a pitch apart.
type stretch struct {
	Memory int   `json:"memory"`
	Offset int64 `json:"offset"`
	Width  int64 `json:"width"`
	Rows   int64 `json:"rows"`
	Pitch  int64 `json:"pitch"`
}

var beginning = regexp.MustCompile(`^\s*\{\s*"tasks"\s*:`)

// Recognize tells whether a file describes tasks. No pipeline begins so.
func Recognize(source []byte) bool { return beginning.Match(source) }

// Decode makes the graph of a description.
func Decode(name string, source []byte) (*dag.Graph, error) {
	d := &description{}
	decoder := json.NewDecoder(bytes.NewReader(source))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(d); err != nil {
		return nil, fmt.Errorf("%s: a graph of tasks: %w", name, err)
	}
	ranges, b, err := d.declare(name)
	if err != nil {
		return nil, fmt.Errorf("%s: a graph of tasks: %w", name, err)
	}
	b.Grow(len(d.Tasks), 0, 0)
	for _, t := range d.Tasks {
		node := dag.Node{Name: t.Name, Kind: dag.Task}
		if t.US != nil {
			node.HasCost, node.CostUS = true, *t.US
		}
		accesses := make([]dag.Access, 0, len(t.Reads)+len(t.Writes))
		for n, k := range slices.Concat(t.Reads, t.Writes) {
			if k < 0 || k >= len(ranges) {
				return nil, fmt.Errorf("%s: a graph of tasks: task %q: range %d of %d", name, t.Name, k, len(ranges))
			}
			mode := dag.Read
			if n >= len(t.Reads) {
				mode = dag.Write
			}
			accesses = append(accesses, dag.Access{Range: ranges[k], Mode: mode})
		}
		b.Node(node, accesses...)
	}
	return b.Graph()
}

// declare makes a buffer of each piece of memory, one of those that overlap, and the ranges in these buffers.
func (d *description) declare(name string) ([]dag.Range, *dag.Builder, error) {
	pitches := make([]int64, len(d.Memory)) // of the rows that memory has, 0 if it has none, -1 if it has several
	for k, r := range d.Ranges {
		if r.Memory < 0 || r.Memory >= len(d.Memory) {
			return nil, nil, fmt.Errorf("range %d is of memory %d of %d", k, r.Memory, len(d.Memory))
		}
		bytes := d.Memory[r.Memory].Bytes
		if min(r.Offset, r.Width) < 0 || r.Rows < 1 || r.Rows > 1 && (r.Pitch < r.Width || r.Rows-1 > bytes/r.Pitch) || r.Offset > bytes-r.hull() {
			return nil, nil, fmt.Errorf("range %d is not within the %d bytes of memory %d", k, bytes, r.Memory)
		}
		if at := &pitches[r.Memory]; r.Rows > 1 && *at != r.Pitch {
			*at = map[bool]int64{true: r.Pitch, false: -1}[*at == 0]
		}
	}
	order := make([]int, len(d.Memory))
	for k, m := range d.Memory {
		order[k] = k
		if m.Bytes < 0 || uint64(m.Bytes) > math.MaxInt64-min(m.Address, math.MaxInt64) {
			return nil, nil, fmt.Errorf("memory %d has %d bytes at %d", k, m.Bytes, m.Address)
		}
	}
	slices.SortStableFunc(order, func(x, y int) int { return cmp.Compare(d.Memory[x].Address, d.Memory[y].Address) })
	b := dag.New("tasks")
	b.Grow(0, len(order), 0)
	buffers, base := make([]dag.BufferID, len(order)), make([]int64, len(order))
	for from := 0; from < len(order); {
		first := d.Memory[order[from]]
		low, high, to := first.Address, first.Address+uint64(first.Bytes), from+1
		for ; to < len(order) && low != 0 && d.Memory[order[to]].Address < high; to++ {
			high = max(high, d.Memory[order[to]].Address+uint64(d.Memory[order[to]].Bytes))
			pitches[order[from]] = -1
		}
		shape := []int64{int64(high - low)}
		if pitch := pitches[order[from]]; pitch > 0 {
			shape = []int64{(shape[0] + pitch - 1) / pitch, pitch}
		}
		// What was there before the graph is the program's, so that no warning tells of it; and the program places it.
		id := b.Buffer(dag.Buffer{Name: first.Name, Place: dag.Host, DType: dag.U8, Shape: shape, Init: &dag.Init{}})
		for _, k := range order[from:to] {
			buffers[k], base[k], pitches[k] = id, int64(d.Memory[k].Address-low), pitches[order[from]]
		}
		from = to
	}
	if len(d.Tasks) == 0 {
		return nil, nil, errors.New("there are no tasks")
	}
	ranges := make([]dag.Range, len(d.Ranges))
	for k, r := range d.Ranges {
		at := base[r.Memory] + r.Offset
		ranges[k] = dag.Range{Buffer: buffers[r.Memory], Lo: at, Hi: at + r.hull()}
		// Rows that go over the end of a row of the buffer, and those of another pitch, count as whole.
		if pitch := pitches[r.Memory]; r.Rows > 1 && r.Width > 0 && pitch > 0 && pitch <= math.MaxInt32 && r.Width < pitch && at%pitch+r.Width <= pitch {
			ranges[k].Pitch = int32(pitch)
		}
	}
	return ranges, b, nil
}

// hull is how many bytes there are from the first to the last.
func (s *stretch) hull() int64 {
	if s.Rows == 1 || s.Width == 0 {
		return s.Width
	}
	return (s.Rows-1)*s.Pitch + s.Width
}
