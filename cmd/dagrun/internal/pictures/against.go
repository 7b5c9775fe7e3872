// What --against names: a plan, a strategy or an earlier run of the same pipeline, to compare with on one page.

package pictures

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"github.com/dagrun/dagrun/cmd/dagrun/internal/cli"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/internal/jsontext"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/planner/picture"
	"github.com/dagrun/dagrun/runtime"
)

// AgainstUsage is the help of --against.
const AgainstUsage = "compare with this `file` or strategy on the page of --html: a plan of --save-plan, or a run of trace --output json"

// mostTraceBytes caps what is read of a file with an earlier run.
const mostTraceBytes = 4 << 30

// savedTrace is what is read of the JSON document of an earlier trace.
type savedTrace struct {
	Command string          `json:"command"`
	Device  string          `json:"device"`
	Cores   int             `json:"cores"`
	Plan    json.RawMessage `json:"plan"`
	*runtime.Trace
}

// Against returns what a page compares with; nil if nothing was asked for. html is the page.
func (u *Pictures) Against(ctx context.Context, g *dag.Graph, name, html string, o planner.Options) (*picture.Other, error) {
	switch {
	case name == "":
		return nil, nil
	case html == "":
		return nil, errors.New("--against compares on a page; name the page with --html")
	case slices.Contains(u.Strategies(), name):
		o.Strategy = name
		plan, err := u.NewPlan(ctx, g, o)
		if err != nil {
			return nil, fmt.Errorf("--against %s: %w", name, err)
		}
		return u.otherRun(g, name, plan, nil, o)
	}
	other, err := cli.DecodeFile(ctx, name, func(r io.Reader) (*picture.Other, error) { return u.readOther(r, g, filepath.Base(name), o) })
	if err != nil {
		return nil, fmt.Errorf("--against %w", err)
	}
	return other, nil
}

// readOther reads a plan, or the JSON document of trace, which holds the plan too.
func (u *Pictures) readOther(r io.Reader, g *dag.Graph, name string, o planner.Options) (*picture.Other, error) {
	data, err := jsontext.ReadLimited(r, "plan or run", mostTraceBytes)
	if err != nil {
		return nil, err
	}
	trace := &savedTrace{}
	if json.Unmarshal(data, trace) != nil || trace.Command != "trace" {
		trace = nil // then it can only be a plan, and the decoder of plans says what is wrong with it
	} else if data = trace.Plan; trace.Trace == nil || len(data) == 0 {
		return nil, errors.New(`it holds no plan; write it with "dagrun trace FILE --output json"`)
	}
	plan, err := planner.DecodePlan(bytes.NewReader(data), g)
	if err != nil {
		return nil, err
	}
	if trace == nil {
		return u.otherRun(g, name, plan, nil, o)
	}
	for k := range trace.Replays {
		for i := range trace.Replays[k].Spans {
			if at := trace.Replays[k].Spans[i].Node; at != dag.NodeID(i) {
				return nil, fmt.Errorf("span %d of replay %d is of node %d", i, k, at)
			}
		}
	}
	var machine *planner.Machine
	if trace.Cores > 0 {
		cpu := *planner.Unit()
		cpu.Cores, machine = trace.Cores, &cpu
	}
	return u.otherRun(g, name, plan, CourseOf(trace.Trace, trace.Device, machine), o)
}

func (u *Pictures) otherRun(g *dag.Graph, name string, plan *planner.Plan, measured *picture.Course, o planner.Options) (*picture.Other, error) {
	schedule, err := u.schedule(g, plan, o)
	if err != nil {
		return nil, err
	}
	return &picture.Other{Name: name, Schedule: schedule, Measured: measured}, nil
}
