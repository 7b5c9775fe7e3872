// The page of several ranks.

package picture

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestThePageOfRanksHasABandForEach(t *testing.T) {
	s := schedule(t, pipeline(t, 5, plainName), "list")
	n, streams := s.graph.Len(), len(s.plan.Streams)
	spans := make([]Span, n)
	for i := range spans {
		spans[i] = Span{s.timeline.Nodes[i].Start, s.timeline.Nodes[i].End}
	}
	rank := func(name string, began ...float64) Rank {
		c := &Course{Mode: "streams", PlainUS: 3, TracedUS: 4}
		for range began {
			c.Replays = append(c.Replays, Replay{Spans: spans})
		}
		return Rank{Name: name, Schedule: s, Measured: c, Began: began}
	}
	var b bytes.Buffer
	require.NoError(t, WriteRanksPage(&b, []Rank{rank("rank 0", 100, 200), rank("rank 1", 107, 195)}))
	d, alone := pageOf(t, b.String()), pageOf(t, writePage(t, s, nil))
	require.Equal(t, "rank", d.Unit)
	require.Equal(t, append(alone.Nodes.Name, alone.Nodes.Name...), d.Nodes.Name)
	require.Len(t, d.Plans[0].Streams, 2*streams)
	require.Equal(t, "rank 0, stream 0", d.Plans[0].Streams[0])
	require.Equal(t, "rank 1, stream 0", d.Plans[0].Streams[streams])
	require.Len(t, d.Plans[0].Band, 2*streams)
	require.EqualValues(t, 0, d.Plans[0].Band[streams-1])
	require.EqualValues(t, 1, d.Plans[0].Band[streams])
	require.Len(t, d.Plans[0].Waits.From, 2*len(s.waits))
	require.Len(t, d.Edges.Start, 2*n+1)
	for i := range n {
		require.EqualValues(t, 0, d.Nodes.Device[i])
		require.EqualValues(t, 1, d.Nodes.Device[n+i])
		require.Equal(t, d.Plans[0].Stream[i]+int32(streams), d.Plans[0].Stream[n+i])
		from, to := d.Edges.Start[i], d.Edges.Start[i+1]
		later := d.Edges.Start[n+i]
		for k := range to - from {
			require.Equal(t, d.Edges.From[from+k]+int32(n), d.Edges.From[later+k])
			require.Equal(t, d.Texts[d.Edges.Text[from+k]], d.Texts[d.Edges.Text[later+k]])
		}
	}
	for k, w := range s.waits {
		waits, at := &d.Plans[0].Waits, len(s.waits)+k
		require.Equal(t, w.from+int32(n), waits.From[at])
		require.Equal(t, d.Texts[waits.Why[k]], d.Texts[waits.Why[at]])
		if w.to >= 0 {
			require.Equal(t, w.to+int32(n), waits.To[at])
		}
	}
	require.Len(t, d.Courses, 3)
	for i := range n { // the rank that begins later is moved
		require.InDelta(t, nano(spans[i].Start), d.Courses[1].Start[i], 1e-3)
		require.InDelta(t, spans[i].Start+7, d.Courses[1].Start[n+i], 1e-3)
		require.InDelta(t, spans[i].End+5, d.Courses[2].Start[i]+d.Courses[2].Duration[i], 2e-3)
		require.InDelta(t, spans[i].End, d.Courses[2].Start[n+i]+d.Courses[2].Duration[n+i], 2e-3)
	}
	// The critical path is that of the rank that ends last.
	require.EqualValues(t, d.Courses[2].Path[0], s.path[0])
	require.EqualValues(t, d.Courses[1].Path[0], int(s.path[0])+n)
	require.Equal(t, "rank 0", d.Courses[2].Lines[0].Of)
	require.Equal(t, "rank 1", d.Courses[1].Lines[0].Of)
	// What was measured is shown alone: with the predictions beside it, half as many ranks are in view.
	require.Equal(t, []int{2, -1}, []int{d.Upper, d.Lower})
	require.Equal(t, 2, strings.Count(d.Plans[0].Summary, "rank ")) // a line each
	require.Contains(t, d.Plans[0].Summary, "\nrank 1: ")
	for _, c := range d.Courses {
		require.Len(t, c.Held, 2*len(s.waits))
		require.Len(t, c.By, 2*n)
	}

	require.EqualError(t, WriteRanksPage(&b, nil), "a page of ranks needs at least one")
	require.EqualError(t, WriteRanksPage(&b, []Rank{{Name: "rank 0"}}), "rank 0: there is no schedule to draw; make it with New")
	require.EqualError(t, WriteRanksPage(&b, []Rank{rank("rank 0", 1), rank("rank 1", 1, 2)}), "rank 1: 2 replays that began at [1 2] us; the ranks before measured 1")
}
