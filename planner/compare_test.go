// Tests of Compare: rows, refusals, text and JSON. Ranks no strategies.

package planner

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/planner/internal/place"
	"github.com/dagrun/dagrun/planner/internal/plantest"
)

func TestCompare(t *testing.T) {
	g := plantest.TaskBench("stencil", 8, 8, 1).Graph(t)
	c, err := Compare(context.Background(), g, Options{Machine: Unit()}, 1, 4)
	require.NoError(t, err)
	seen := map[string]int{}
	for k, r := range c.Rows {
		seen[r.Strategy]++
		if r.Refused != nil {
			assert.Zero(t, r.MakespanUS)
			continue
		}
		assert.GreaterOrEqual(t, r.MakespanUS, r.LowerBoundUS)
		assert.Positive(t, r.LowerBoundUS)
		if k != c.Best {
			assert.False(t, r.better(&c.Rows[c.Best]), "row %d is better than the best", k)
		}
		if r.Strategy == "roundrobin" && r.Asked == 4 {
			assert.Equal(t, []any{4, 56, 98, 16.0, 16.0}, []any{r.Streams, r.Records, r.Waits, r.MakespanUS, r.GraphUS})
		}
	}
	for _, strategy := range Strategies() {
		want := 2
		if strategy == "serial" {
			want = 1
		}
		assert.Equal(t, want, seen[strategy], strategy)
	}

	var text bytes.Buffer
	require.NoError(t, c.WriteText(&text))
	assert.Contains(t, text.String(), "stencil: 64 nodes, 154 dependencies, machine unit\n")
	assert.Equal(t, 1, strings.Count(text.String(), "\n* "))
	for _, line := range strings.Split(text.String(), "\n") {
		assert.Equal(t, strings.TrimRight(line, " "), line)
	}

	var file bytes.Buffer
	require.NoError(t, c.EncodeJSON(&file))
	var back comparisonFile
	require.NoError(t, json.Unmarshal(file.Bytes(), &back))
	assert.Equal(t, 1, back.Version)
	assert.Len(t, back.Rows, len(c.Rows))
	assert.Equal(t, c.Best, *back.Best)

	again, err := Compare(context.Background(), g, Options{Machine: Unit()}, 1, 4)
	require.NoError(t, err)
	var other bytes.Buffer
	require.NoError(t, again.EncodeJSON(&other))
	assert.Equal(t, file.String(), other.String())
}

func TestCompareTable(t *testing.T) {
	c := &Comparison{Name: "x", Machine: "h200", Nodes: 1, Edges: 0, Best: 2, Rows: []Row{
		{Strategy: "cover", Used: "cover", Asked: 1, Refused: place.ErrTooManyStreams},
		{Strategy: "cover", Used: "cover", Asked: 2, Refused: place.ErrTooManyStreams},
		{Strategy: "auto", Used: "list", Asked: 2, Streams: 3, Records: 4, Waits: 5, Events: 2, MakespanUS: 12.5, GraphUS: 10, LowerBoundUS: 10, PeakDeviceBytes: 1 << 20},
		{Strategy: "auto", Used: "list", Asked: 4, Streams: 3, Records: 4, Waits: 5, Events: 2, MakespanUS: 12.5, GraphUS: 10, LowerBoundUS: 10, PeakDeviceBytes: 1 << 20},
		{Strategy: "auto", Used: "list", Asked: 8, Streams: 3, Records: 4, Waits: 4, Events: 2, MakespanUS: 12.5, GraphUS: 10, LowerBoundUS: 10, PeakDeviceBytes: 1 << 20},
	}}
	var text bytes.Buffer
	require.NoError(t, c.WriteText(&text))
	assert.Equal(t, `x: 1 node, 0 dependencies, machine h200
  strategy     asked streams records waits events makespan us x bound graph us memory
  cover          1,2       -       -     -      -           -       -        -      -
* auto (list)    2,4       3       4     5      2       12.50   1.250    10.00  1 MiB
  auto (list)      8       3       4     4      2       12.50   1.250    10.00  1 MiB
no plan of cover with 1,2 streams: not enough streams
`, text.String())
	var file bytes.Buffer
	require.NoError(t, (&Comparison{Best: -1}).EncodeJSON(&file))
	assert.Contains(t, file.String(), `"best": null`)
}

func TestCompareStops(t *testing.T) {
	g := plantest.TaskBench("stencil", 8, 8, 1).Graph(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := Compare(ctx, g, Options{})
	require.ErrorIs(t, err, context.Canceled)
	_, err = Compare(context.Background(), g, Options{}, -1)
	require.ErrorIs(t, err, place.ErrBadOption)
}
