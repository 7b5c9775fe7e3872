// What loops and branches did in the last replay, and whether that is what the pipeline expects.

package engine

import (
	"context"
	"fmt"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/internal/words"
	"github.com/dagrun/dagrun/runtime/internal/spans"
)

// Loops returns what the loops and branches did in the last replay, those of a body after the one around it.
func (p *Program) Loops(ctx context.Context) ([]spans.Loop, error) {
	if err := p.usable(ctx); err != nil {
		return nil, err
	}
	if p.bodies == nil {
		return nil, nil
	}
	if err := p.Synchronize(ctx); err != nil {
		return nil, err
	}
	if p.mode != Streams {
		if err := p.last().readCounts(ctx); err != nil {
			return nil, err
		}
	}
	return appendLoops(nil, p.last()), nil
}

func appendLoops(list []spans.Loop, in *instance) []spans.Loop {
	for _, c := range in.controls {
		if c == nil {
			continue
		}
		list = append(list, c.loop())
		for _, body := range c.bodies {
			list = appendLoops(list, body.in)
		}
	}
	return list
}

func (c *control) loop() spans.Loop {
	n := c.node
	l := spans.Loop{Node: c.name, Kind: n.Kind.String(), Runs: c.runs, Passes: c.passes, Most: n.Control.Times, Missed: c.missed,
		Then: c.chosen[0], Otherwise: c.chosen[1], Expected: n.Control.Expect, OK: true}
	within, text := "", ""
	if c.runs != 1 {
		within = fmt.Sprintf(" in %s", words.Count(c.runs, "run", "runs"))
	}
	switch {
	case n.Kind == dag.Branch && c.runs == 1:
		text = "the condition did not hold"
		if c.chosen[0] == 1 {
			text = "the condition held"
		}
	case n.Kind == dag.Branch:
		text = fmt.Sprintf("the condition held in %d of %s", c.chosen[0], words.Count(c.runs, "run", "runs"))
	case n.Control.Condition == nil:
		text = words.Count(c.passes, "pass", "passes") + within
	case c.missed > 0 && !n.Control.OrStop:
		l.OK = false
		text = fmt.Sprintf("stopped after %s%s, before its condition (%s) was met", words.Count(c.passes, "pass", "passes"), within, c.tested())
	case c.missed > 0:
		text = fmt.Sprintf("stopped after %s%s", words.Count(c.passes, "pass", "passes"), within)
	default:
		text = fmt.Sprintf("%s%s of at most %d", words.Count(c.passes, "pass", "passes"), within, n.Control.Times)
	}
	if want := n.Control.Expect; want != nil && *want != c.passes {
		l.OK = false
		text += fmt.Sprintf("; expected %d", *want)
	}
	spans.Describe(&l, text)
	return l
}

// tested is the test as written, with its word.
func (c *control) tested() string {
	if c.node.Control.While {
		return "while " + c.node.Control.Condition.Text
	}
	return "until " + c.node.Control.Condition.Text
}
