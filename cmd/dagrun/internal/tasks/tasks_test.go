package tasks

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/dagrun/dagrun/dag"
)

// bytes lists the addresses of a range.
func (d *description) bytes(k int) []uint64 {
	var list []uint64
	r := d.Ranges[k]
	for row := range r.Rows {
		for column := range r.Width {
			list = append(list, d.Memory[r.Memory].Address+uint64(r.Offset+row*r.Pitch+column))
		}
	}
	return list
}

// conflicts tells whether two tasks touch a byte that one of them writes.
func (d *description) conflicts(a, b int) bool {
	written := map[uint64]bool{}
	for _, k := range d.Tasks[a].Reads {
		for _, at := range d.bytes(k) {
			written[at] = written[at] || false
		}
	}
	for _, k := range d.Tasks[a].Writes {
		for _, at := range d.bytes(k) {
			written[at] = true
		}
	}
	for n, k := range append(append([]int{}, d.Tasks[b].Reads...), d.Tasks[b].Writes...) {
		for _, at := range d.bytes(k) {
			if by, touched := written[at]; touched && (by || n >= len(d.Tasks[b].Reads)) {
				return true
			}
		}
	}
	return false
}

// before returns which nodes come before each, by the edges of a graph.
func before(g *dag.Graph) []map[dag.NodeID]bool {
	all := make([]map[dag.NodeID]bool, g.Vertices())
	var visit func(k dag.NodeID) map[dag.NodeID]bool
	visit = func(k dag.NodeID) map[dag.NodeID]bool {
		if all[k] == nil {
			all[k] = map[dag.NodeID]bool{}
			for _, e := range g.Edges() {
				if e.To == k {
					all[k][e.From] = true
					for other := range visit(e.From) {
						all[k][other] = true
					}
				}
			}
		}
		return all[k]
	}
	for k := range all {
		visit(dag.NodeID(k))
	}
	return all
}

func drawn(t *rapid.T, overlapping bool) *description {
	d := &description{}
	text := `{"tasks": [`
	memories := rapid.IntRange(1, 3).Draw(t, "memories")
	for k := range rapid.IntRange(1, 8).Draw(t, "tasks") {
		list := func(what string) string {
			words, _ := json.Marshal(rapid.SliceOfN(rapid.IntRange(0, 7), 0, 2).Draw(t, what))
			return string(words)
		}
		text += fmt.Sprintf(`%s{"name": "t%d", "us": null, "reads": %s, "writes": %s}`, strings.Repeat(",", min(k, 1)), k, list("reads"), list("writes"))
	}
	text += `], "memory": [`
	step := uint64(64)
	if overlapping {
		step = 40
	}
	for k := range memories {
		text += fmt.Sprintf(`%s{"name": "m%d", "address": %d, "bytes": 48}`, strings.Repeat(",", min(k, 1)), k, 1000+uint64(k)*step)
	}
	text += `], "ranges": [`
	for k := range 8 {
		rows, pitch := int64(1), int64(0)
		width := rapid.Int64Range(0, 8).Draw(t, "width")
		offset := rapid.Int64Range(0, 8).Draw(t, "offset")
		if rapid.Bool().Draw(t, "rows") {
			pitch = rapid.SampledFrom([]int64{12, 12, 12, 9}).Draw(t, "pitch")
			rows = rapid.Int64Range(2, 3).Draw(t, "rows")
		}
		memory := rapid.IntRange(0, memories-1).Draw(t, "memory")
		text += strings.Repeat(",", min(k, 1)) + fmt.Sprintf(`{"memory": %d, "offset": %d, "width": %d, "rows": %d, "pitch": %d}`, memory, offset, width, rows, pitch)
	}
	text += "]}"
	require.True(t, Recognize([]byte(text)))
	require.NoError(t, json.Unmarshal([]byte(text), d))
	return d
}

func decoded(t require.TestingT, d *description) *dag.Graph {
	text, err := json.Marshal(map[string]any{"tasks": d.Tasks, "memory": d.Memory, "ranges": d.Ranges})
	require.NoError(t, err)
	g, err := Decode("x", text)
	require.NoError(t, err)
	return g
}

// Tasks that touch a common byte, which one of them writes, are in order, also where memory overlaps; and without rows of several pitches only such tasks are.
func TestConflictsAreDependencies(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := drawn(t, rapid.Bool().Draw(t, "overlapping"))
		after := before(decoded(t, d))
		for b := range d.Tasks {
			for a := range b {
				if d.conflicts(a, b) {
					require.True(t, after[b][dag.NodeID(a)], "task %d comes before task %d", a, b)
				}
			}
		}
	})
}

// Rows of one pitch are tiles, so that tasks on other columns are free.
func TestColumnsAreApart(t *testing.T) {
	d := &description{}
	require.NoError(t, json.Unmarshal([]byte(`{
		"tasks": [{"name": "left", "writes": [0]}, {"name": "right", "writes": [1]}, {"name": "rows", "reads": [2]}, {"name": "across", "reads": [3]}],
		"memory": [{"name": "m", "address": 4096, "bytes": 100}],
		"ranges": [{"memory": 0, "offset": 0, "width": 5, "rows": 10, "pitch": 10}, {"memory": 0, "offset": 5, "width": 5, "rows": 10, "pitch": 10},
			{"memory": 0, "offset": 20, "width": 20, "rows": 1}, {"memory": 0, "offset": 25, "width": 3, "rows": 1}]}`), d))
	g := decoded(t, d)
	after := before(g)
	require.Empty(t, after[1])
	require.Equal(t, map[dag.NodeID]bool{0: true, 1: true}, after[2])
	require.Equal(t, map[dag.NodeID]bool{1: true}, after[3])
}

func TestWhatIsNoGraphOfTasks(t *testing.T) {
	require.False(t, Recognize([]byte("version: 1\nnodes: []\n")))
	require.False(t, Recognize([]byte(`{"memory": [], "tasks": []}`)))
	const task, memory = `{"name": "t", "us": 1, "reads": [0], "writes": []}`, `{"name": "m", "address": 4096, "bytes": 100}`
	for _, c := range []struct{ tasks, memory, ranges, message string }{
		{"", memory, "", "x: a graph of tasks: there are no tasks"},
		{task, memory, "", `x: a graph of tasks: task "t": range 0 of 0`},
		{task, memory, `{"memory": 1, "width": 1, "rows": 1}`, "x: a graph of tasks: range 0 is of memory 1 of 1"},
		{task, memory, `{"memory": 0, "offset": 90, "width": 11, "rows": 1}`, "x: a graph of tasks: range 0 is not within the 100 bytes of memory 0"},
		{task, memory, `{"memory": 0, "width": 1, "rows": 9223372036854775807, "pitch": 9223372036854775807}`, "range 0 is not within the 100 bytes of memory 0"},
		{task, memory, `{"memory": 0, "offset": 9223372036854775807, "width": 100, "rows": 1}`, "range 0 is not within the 100 bytes of memory 0"},
		{task, memory, `{"memory": 0, "offset": 0, "width": 8, "rows": 2, "pitch": 7}`, "range 0 is not within the 100 bytes of memory 0"},
		{task, memory, `{"memory": 0, "offset": -1, "width": 8, "rows": 1}`, "range 0 is not within the 100 bytes of memory 0"},
		{task, memory, `{"memory": 0, "offset": 0, "width": 8, "rows": 0}`, "range 0 is not within the 100 bytes of memory 0"},
		{task, `{"name": "m", "address": 18446744073709551615, "bytes": 100}`, "", "memory 0 has 100 bytes at 18446744073709551615"},
		{task, `{"name": "m", "address": 1, "bytes": -100}`, "", "memory 0 has -100 bytes at 1"},
		{task + "," + task, memory, `{"memory": 0, "offset": 0, "width": 8, "rows": 1}`, `node "t"`},
		{`{"name": "t", "cost": 1}`, memory, "", `x: a graph of tasks: json: unknown field "cost"`},
		{`{"name": "t", "us": -1}`, memory, "", `node "t"`},
	} {
		_, err := Decode("x", []byte(`{"tasks": [`+c.tasks+`], "memory": [`+c.memory+`], "ranges": [`+c.ranges+`]}`))
		require.ErrorContains(t, err, c.message)
	}
}
