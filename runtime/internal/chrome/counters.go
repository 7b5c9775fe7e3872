// Counters of a Chrome trace: how many streams are busy, how many bytes are being copied, and how much device memory is alive.

package chrome

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/model"
	"github.com/dagrun/dagrun/planner/plan"
	"github.com/dagrun/dagrun/runtime/internal/spans"
)

// countStep is a value of a counter and the time from which it has it.
type countStep struct {
	us    float64
	value int64
}

// counted sums up differences by time. Differences at the same time give a single step.
func counted(changes []countStep) []countStep {
	slices.SortFunc(changes, func(a, b countStep) int { return cmp.Or(cmp.Compare(a.us, b.us), cmp.Compare(a.value, b.value)) })
	steps := []countStep{{}}
	value := int64(0)
	for _, change := range changes {
		value += change.value
		if end := len(steps) - 1; steps[end].us == change.us {
			steps[end].value = value
		} else {
			steps = append(steps, countStep{change.us, value})
		}
	}
	return steps
}

// counters writes the counters of one replay.
func (c *writer) counters(r *spans.TracedReplay, base float64) {
	var busy, copied []countStep
	asTimeline := &plan.Timeline{Nodes: make([]plan.Span, len(r.Spans))}
	for i := range r.Spans {
		s, n := &r.Spans[i], &c.g.Nodes[i]
		asTimeline.Nodes[i] = plan.Span{Stream: s.Stream, Start: s.Start, End: s.End}
		if s.End <= s.Start {
			continue
		}
		busy = append(busy, countStep{s.Start, 1}, countStep{s.End, -1}) // a stream runs one node at a time
		if n.Kind == dag.Memcpy {
			copied = append(copied, countStep{s.Start, n.Work.Bytes}, countStep{s.End, -n.Work.Bytes})
		}
	}
	c.counter(streamsProcess, "streams busy", "streams", counted(busy), base)
	if len(copied) > 0 {
		c.counter(enginesProcess, "bytes in flight", "bytes", counted(copied), base)
	}
	for _, o := range model.OccupancyOf(c.g, c.plan, asTimeline) {
		steps := make([]countStep, len(o.Steps))
		for k, step := range o.Steps {
			steps[k] = countStep{step.US, step.Bytes}
		}
		c.counter(enginesProcess, fmt.Sprintf("device %d memory in use", o.Device), "bytes", steps, base)
	}
}

func (c *writer) counter(process int, name, unit string, steps []countStep, base float64) {
	for _, step := range steps {
		c.event(`{"ph":"C","pid":%d,"name":%s,"ts":%s,"args":{%s:%d}}`, c.first+process, quoted(name), micro(base+step.us), quoted(unit), step.value)
	}
}
