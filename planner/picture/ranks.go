// The page of several ranks: their schedules and runs side by side, at the times of one clock.

package picture

import (
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/internal/words"
	"github.com/dagrun/dagrun/planner/model"
)

// Rank is what one rank does, for a page with all ranks.
type Rank struct {
	Name     string // "rank 1"
	Schedule *Schedule
	Machine  *model.Machine // that the prediction is for; nil: an H200
	Measured *Course        // nil for none
	Began    []float64      // by measured replay: when it began, in microseconds by a clock that all ranks share
}

// WriteRanksPage writes a page like WritePage with a band for each rank. All ranks must have measured the same number of replays.
func WriteRanksPage(w io.Writer, ranks []Rank) error {
	if w == nil {
		return words.ErrNoWriter
	}
	if len(ranks) == 0 {
		return errors.New("a page of ranks needs at least one")
	}
	first, err := firstStarts(ranks)
	if err != nil {
		return err
	}
	var all *pageData
	for k := range ranks {
		r := &ranks[k]
		d, err := r.Schedule.pageData(PageOptions{Machine: r.Machine, Measured: r.Measured})
		if err != nil {
			return fmt.Errorf("%s: %w", r.Name, err)
		}
		d.shift(r, int32(k), first)
		if all == nil {
			all = d
		} else {
			all.add(d)
		}
	}
	all.Unit = "rank"
	if all.Lower >= 0 { // alone, so that more ranks are in view: their predictions do not know what the ranks wait for
		all.Upper, all.Lower = all.Lower, -1
	}
	return all.write(w, ranks[0].Schedule.title())
}

// firstStarts returns when the first rank began each replay.
func firstStarts(ranks []Rank) ([]float64, error) {
	var first []float64
	for k := range ranks {
		r := &ranks[k]
		if r.Schedule == nil || r.Schedule.graph == nil {
			return nil, fmt.Errorf("%s: there is no schedule to draw; make it with New", r.Name)
		}
		replays := 0
		if r.Measured != nil {
			replays = len(r.Measured.Replays)
		}
		if len(r.Began) != replays || k > 0 && replays != len(first) {
			return nil, fmt.Errorf("%s: %d replays that began at %v us; the ranks before measured %d", r.Name, replays, r.Began, len(first))
		}
		for i, us := range r.Began {
			if !(math.Abs(us) <= longestUS) {
				return nil, fmt.Errorf("%s: replay %d began at %v us", r.Name, i, us)
			}
			if k == 0 {
				first = append(first, us)
			}
			first[i] = min(first[i], us)
		}
	}
	return first, nil
}

// shift names what belongs to a rank, and moves its measured replays to when they began after the first rank's.
func (d *pageData) shift(r *Rank, rank int32, first []float64) {
	name := clean(r.Name)
	for i := range d.Nodes.Device {
		d.Nodes.Device[i] = rank
	}
	for i := range d.Plans {
		p := &d.Plans[i]
		p.Summary = name + ": " + p.Summary
		for s := range p.Streams {
			p.Streams[s] = name + ", " + p.Streams[s]
			p.Band[s] = rank
		}
	}
	replay := 0
	for i := range d.Courses {
		c := &d.Courses[i]
		late := 0.0
		if c.Measured {
			late = nano(r.Began[replay] - first[replay])
			replay++
		}
		c.Makespan += late
		for k := range c.Start {
			c.Start[k] = nano(c.Start[k] + late)
		}
		for k := range c.Gaps {
			g := &c.Gaps[k]
			g.Device, g.Start, g.End = rank, nano(g.Start+late), nano(g.End+late)
		}
		for k := range c.Memory {
			c.Memory[k].Device = rank
			for j := range c.Memory[k].US {
				c.Memory[k].US[j] = nano(c.Memory[k].US[j] + late)
			}
		}
		for k := range c.Lines {
			c.Lines[k].Of = name
		}
	}
}

// add adds the data of another rank, whose nodes, streams and texts come after those that are there.
func (d *pageData) add(o *pageData) {
	nodes, streams, texts, edges := int32(len(d.Nodes.Name)), int32(len(d.Plans[0].Streams)), int32(len(d.Texts)), int32(len(d.Edges.From))
	d.Texts = append(d.Texts, o.Texts...)
	d.Nodes.Name = append(d.Nodes.Name, o.Nodes.Name...)
	d.Nodes.Action = append(d.Nodes.Action, moved(o.Nodes.Action, texts)...)
	d.Nodes.Kind = append(d.Nodes.Kind, moved(o.Nodes.Kind, texts)...)
	d.Nodes.Engine = append(d.Nodes.Engine, o.Nodes.Engine...)
	d.Nodes.Device = append(d.Nodes.Device, o.Nodes.Device...)
	d.Nodes.Bytes = append(d.Nodes.Bytes, o.Nodes.Bytes...)
	d.Nodes.Flops = append(d.Nodes.Flops, o.Nodes.Flops...)
	d.Nodes.Line = append(d.Nodes.Line, o.Nodes.Line...)
	for _, at := range o.Edges.Start[1:] {
		d.Edges.Start = append(d.Edges.Start, at+edges)
	}
	d.Edges.From = append(d.Edges.From, moved(o.Edges.From, nodes)...)
	d.Edges.Text = append(d.Edges.Text, moved(o.Edges.Text, texts)...)
	p, q := &d.Plans[0], &o.Plans[0]
	p.Summary += "\n" + q.Summary
	p.Streams, p.Band = append(p.Streams, q.Streams...), append(p.Band, q.Band...)
	p.Stream = append(p.Stream, moved(q.Stream, streams)...)
	if len(p.Cost) > 0 && len(q.Cost) > 0 {
		p.Cost = append(p.Cost, moved(q.Cost, texts)...)
	} else {
		p.Cost = nil
	}
	p.Waits.From, p.Waits.To = append(p.Waits.From, moved(q.Waits.From, nodes)...), append(p.Waits.To, moved(q.Waits.To, nodes)...)
	p.Waits.Event, p.Waits.Why = append(p.Waits.Event, q.Waits.Event...), append(p.Waits.Why, moved(q.Waits.Why, texts)...)
	for k := range d.Courses {
		d.Courses[k].add(&o.Courses[k], nodes)
	}
}

// add adds the same replay of another rank. The critical path is that of the rank that ends last, and its findings come first.
func (c *pageCourse) add(o *pageCourse, nodes int32) {
	lines := append(c.Lines, o.Lines...)
	if o.Makespan > c.Makespan {
		lines = append(o.Lines, c.Lines...)
		c.Makespan, c.Path = o.Makespan, nil
		for _, i := range o.Path {
			c.Path = append(c.Path, i+dag.NodeID(nodes))
		}
	}
	c.Start, c.Duration, c.Alone = append(c.Start, o.Start...), append(c.Duration, o.Duration...), append(c.Alone, o.Alone...)
	c.By, c.Cause = append(c.By, moved(o.By, nodes)...), append(c.Cause, o.Cause...)
	for _, g := range o.Gaps {
		g.Next = later(g.Next, nodes)
		c.Gaps = append(c.Gaps, g)
	}
	c.sort()
	c.Held, c.Memory, c.Lines = append(c.Held, o.Held...), append(c.Memory, o.Memory...), lines
}

func later(i dag.NodeID, nodes int32) dag.NodeID {
	if i < 0 {
		return i
	}
	return i + dag.NodeID(nodes)
}

// moved adds to all numbers but those below 0, which mean none.
func moved(list []int32, by int32) []int32 {
	for k := range list {
		if list[k] >= 0 {
			list[k] += by
		}
	}
	return list
}
