// Comparison: every strategy at several stream counts, side by side.

package planner

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/internal/words"
	"github.com/dagrun/dagrun/planner/internal/place"
	"github.com/dagrun/dagrun/planner/model"
	"github.com/dagrun/dagrun/planner/plan"
)

// Comparison holds figures of several plans for one graph.
type Comparison struct {
	Name    string
	Machine string
	Nodes   int
	Edges   int
	Rows    []Row // by strategy, then by compute streams asked for
	// Spreads compares the policies that choose devices, for a graph that is spread over several; see planner/spread.
	Spreads []plan.SpreadTry
	Best    int // index of the row with the least makespan, then waits, then streams; -1 if there is no plan
}

// Row is one plan.
type Row struct {
	Strategy        string // as asked for
	Used            string // as used: for auto, the one that it chose
	Asked           int    // compute streams per device asked for
	Streams         int    // streams the plan has, those for copies included
	Records         int
	Waits           int
	Events          int
	MakespanUS      float64 // predicted, submitted to streams
	GraphUS         float64 // predicted, as one CUDA graph
	LowerBoundUS    float64 // no plan with this many streams is faster, submitted to streams
	PeakDeviceBytes int64
	Refused         error // why there is no plan, such as ErrTooManyStreams or ErrGraphTooLarge; the figures are then 0
}

// Compare plans g with every strategy at each of the stream counts (1, 2, 4 and 8 if none are given) and simulates each plan. Strategy and
// Streams of the options are ignored. If a strategy refuses the graph or the number of streams, its row says so.
func Compare(ctx context.Context, g *dag.Graph, o Options, streams ...int) (*Comparison, error) {
	if len(streams) == 0 {
		streams = []int{1, 2, 4, 8}
	}
	if err := g.Check(); err != nil {
		return nil, err
	}
	if o.Machine == nil {
		o.Machine = H200()
	}
	o.Machine = o.Machine.With(o.Profile)
	c := &Comparison{Name: g.Name, Machine: o.Machine.Name, Nodes: g.Len(), Edges: len(g.Edges()), Best: -1}
	durations := model.Durations(g, o.Machine, o.Profile)
	for _, strategy := range strategies {
		for k, count := range streams {
			if strategy == "serial" && k > 0 {
				break // it has one stream, however many are allowed
			}
			if strategy == "serial" {
				count = 1
			}
			row, err := compareOne(ctx, g, o, durations, strategy, count)
			if err != nil {
				return nil, err
			}
			c.Rows = append(c.Rows, row)
			if row.Refused == nil && (c.Best < 0 || row.better(&c.Rows[c.Best])) {
				c.Best = len(c.Rows) - 1
			}
		}
	}
	return c, nil
}

func compareOne(ctx context.Context, g *dag.Graph, o Options, durations []float64, strategy string, count int) (Row, error) {
	row := Row{Strategy: strategy, Used: strategy, Asked: count}
	o.Strategy, o.Streams = strategy, count
	plan, err := New(ctx, g, o)
	switch {
	case errors.Is(err, place.ErrBadOption):
		return row, err
	case ctx.Err() != nil:
		return row, ctx.Err()
	case err != nil:
		row.Refused = err
		return row, nil
	}
	for _, graph := range []bool{false, true} {
		timeline, err := model.SimulateWith(g, plan, o.Machine, durations, graph)
		if err != nil {
			return row, fmt.Errorf("strategy %s with %d streams: %w", strategy, count, err)
		}
		if graph {
			row.GraphUS = timeline.MakespanUS
		} else {
			row.MakespanUS = timeline.MakespanUS
		}
	}
	row.Used = plan.Strategy
	row.Streams, row.Events = len(plan.Streams), int(plan.Events)
	row.Records, row.Waits = plan.Stats.Records, plan.Stats.Waits
	row.LowerBoundUS = model.LowerBoundWith(g, o.Machine, durations, count, false).US()
	row.PeakDeviceBytes = plan.Stats.PeakDeviceBytes
	return row, nil
}

func (r *Row) better(o *Row) bool {
	if r.MakespanUS != o.MakespanUS {
		return r.MakespanUS < o.MakespanUS
	}
	if r.Waits != o.Waits {
		return r.Waits < o.Waits
	}
	return r.Streams < o.Streams
}

// Table returns the comparison as a table, its head first, and a note for each strategy that found no plan: why. The best row has a star.
// Rows that differ only in the requested number of streams are joined.
func (c *Comparison) Table() (rows [][]string, notes []string) {
	rows = [][]string{{"", "strategy", "asked", "streams", "records", "waits", "events", "makespan us", "x bound", "graph us", "memory"}}
	if c == nil {
		return rows, nil
	}
	var refused error // that of the last row
	note := func() {
		if refused != nil {
			last := rows[len(rows)-1]
			notes = append(notes, fmt.Sprintf("no plan of %s with %s: %v", last[1], countOf(last[2]), refused))
		}
	}
	for k := range c.Rows {
		r := &c.Rows[k]
		star := ""
		if k == c.Best {
			star = "*"
		}
		name := r.Strategy
		if r.Used != r.Strategy {
			name += " (" + r.Used + ")"
		}
		line := []string{star, name, strconv.Itoa(r.Asked)}
		if r.Refused != nil {
			line = append(line, "-", "-", "-", "-", "-", "-", "-", "-")
		} else {
			ratio := "-"
			if r.LowerBoundUS > 0 {
				ratio = strconv.FormatFloat(r.MakespanUS/r.LowerBoundUS, 'f', 3, 64)
			}
			line = append(line, strconv.Itoa(r.Streams), strconv.Itoa(r.Records), strconv.Itoa(r.Waits), strconv.Itoa(r.Events),
				strconv.FormatFloat(r.MakespanUS, 'f', 2, 64), ratio, strconv.FormatFloat(r.GraphUS, 'f', 2, 64), words.Bytes(r.PeakDeviceBytes))
		}
		if last := rows[len(rows)-1]; slices.Equal(last[3:], line[3:]) && last[1] == line[1] {
			last[2] += "," + line[2]
			last[0] += line[0]
			refused = r.Refused
			continue
		}
		note()
		refused = r.Refused
		rows = append(rows, line)
	}
	note()
	return rows, notes
}

// countOf says how many streams were asked for: "1 stream", "1,2 streams".
func countOf(asked string) string {
	if asked == "1" {
		return "1 stream"
	}
	return asked + " streams"
}

// Head is the line above the table.
func (c *Comparison) Head() string {
	if c == nil {
		return ""
	}
	return fmt.Sprintf("%s: %s, %s, machine %s", c.Name, words.Count(c.Nodes, "node", "nodes"), words.Count(c.Edges, "dependency", "dependencies"), c.Machine)
}

// WriteText writes the comparison as a table, with its notes below.
func (c *Comparison) WriteText(w io.Writer) error {
	if c == nil || w == nil {
		return errors.New("a comparison and a writer are needed to write its table")
	}
	table, notes := c.Table()
	widths := make([]int, len(table[0]))
	for _, line := range table {
		for i, cell := range line {
			widths[i] = max(widths[i], words.Width(cell))
		}
	}
	out := bufio.NewWriter(w)
	out.WriteString(c.Head() + "\n")
	for _, line := range table {
		var text bytes.Buffer
		for i, cell := range line {
			pad := widths[i] - words.Width(cell)
			if i < 2 {
				fmt.Fprintf(&text, "%s%*s ", cell, pad, "")
			} else {
				fmt.Fprintf(&text, " %*s%s", pad, "", cell)
			}
		}
		out.Write(bytes.TrimRight(text.Bytes(), " "))
		out.WriteByte('\n')
	}
	for _, note := range notes {
		out.WriteString(note + "\n")
	}
	if err := out.Flush(); err != nil {
		return err
	}
	return c.WriteSpreads(w)
}

type comparisonFile struct {
	Version int       `json:"version"`
	Name    string    `json:"name"`
	Machine string    `json:"machine"`
	Nodes   int       `json:"nodes"`
	Edges   int       `json:"edges"`
	Best    *int      `json:"best"` // null if there is no plan
	Rows    []rowFile `json:"rows"`
	Spreads []tryFile `json:"spreads,omitempty"`
}

type rowFile struct {
	Strategy        string  `json:"requested_strategy"`
	Used            string  `json:"strategy"`
	Asked           int     `json:"requested_streams"`
	Streams         int     `json:"streams"`
	Records         int     `json:"records"`
	Waits           int     `json:"waits"`
	Events          int     `json:"events"`
	MakespanUS      float64 `json:"makespan_us"`
	GraphUS         float64 `json:"graph_us"`
	LowerBoundUS    float64 `json:"lower_bound_us"`
	PeakDeviceBytes int64   `json:"peak_device_bytes"`
	Refused         string  `json:"refused,omitempty"`
}

// EncodeJSON writes the comparison as JSON, version 1 of the format.
func (c *Comparison) EncodeJSON(w io.Writer) error {
	if c == nil || w == nil {
		return errors.New("a comparison and a writer are needed to write it as JSON")
	}
	f := comparisonFile{Version: 1, Name: c.Name, Machine: c.Machine, Nodes: c.Nodes, Edges: c.Edges, Rows: []rowFile{}}
	if c.Best >= 0 {
		f.Best = &c.Best
	}
	for k := range c.Rows {
		r := &c.Rows[k]
		row := rowFile{r.Strategy, r.Used, r.Asked, r.Streams, r.Records, r.Waits, r.Events, r.MakespanUS, r.GraphUS, r.LowerBoundUS, r.PeakDeviceBytes, ""}
		if r.Refused != nil {
			row.Refused = r.Refused.Error()
		}
		f.Rows = append(f.Rows, row)
	}
	for _, t := range c.Spreads {
		f.Spreads = append(f.Spreads, tryFile(t))
	}
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(f); err != nil {
		return fmt.Errorf("comparison of %q: %w", c.Name, err)
	}
	return nil
}

// WriteSpreads writes a table of the policies that choose devices, if they were compared. The fastest has a star.
func (c *Comparison) WriteSpreads(w io.Writer) error {
	if c == nil || w == nil {
		return errors.New("a comparison and a writer are needed to write its table")
	}
	if len(c.Spreads) == 0 {
		return nil
	}
	out := bufio.NewWriter(w)
	var refused, reasons []string // policies by why they have no plan
	best := -1
	for k := range c.Spreads {
		if t := &c.Spreads[k]; t.Refused == "" && (best < 0 || t.MakespanUS < c.Spreads[best].MakespanUS) {
			best = k
		}
	}
	fmt.Fprintf(out, "\n  %-12s %7s %12s %12s %12s\n", "spread", "copies", "copied", "makespan us", "most memory")
	for k := range c.Spreads {
		t := &c.Spreads[k]
		star := " "
		if k == best {
			star = "*"
		}
		if t.Refused != "" {
			fmt.Fprintf(out, "%s %-12s %7s %12s %12s %12s\n", star, t.Policy, "-", "-", "-", "-")
			if k := slices.Index(reasons, t.Refused); k >= 0 {
				refused[k] += ", " + t.Policy
			} else {
				refused, reasons = append(refused, t.Policy), append(reasons, t.Refused)
			}
			continue
		}
		fmt.Fprintf(out, "%s %-12s %7d %12s %12.2f %12s\n", star, t.Policy, t.Copies, words.Bytes(t.Bytes), t.MakespanUS, words.Bytes(t.PeakBytes))
	}
	for k, policies := range refused {
		out.WriteString("no plan of " + policies + ": " + reasons[k] + "\n")
	}
	return out.Flush()
}

type tryFile struct {
	Policy     string  `json:"policy"`
	Copies     int     `json:"copies"`
	Bytes      int64   `json:"copied_bytes"`
	MakespanUS float64 `json:"makespan_us"`
	PeakBytes  int64   `json:"peak_device_bytes"`
	Refused    string  `json:"refused,omitempty"`
}
