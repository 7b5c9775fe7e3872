// A profiled run on one stream and its summary: the time of each kind of work, the longest chain, the rate of each kernel.

package main

import (
	"context"
	"errors"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/runtime"
)

// profiledProgram is a program on one stream and the predicted time of its replay.
type profiledProgram struct {
	program   *runtime.Program
	predicted float64
}

// profileOf makes a program that runs a graph on one stream, where nothing overlaps, and times its nodes.
func profileOf(ctx context.Context, g *dag.Graph, p cudart.Platform, machine *planner.Machine) (*profiledProgram, *planner.Profile, error) {
	plan, err := planner.New(ctx, g, planner.Options{Strategy: "serial", Streams: 1, Machine: machine})
	if err != nil {
		return nil, nil, err
	}
	program, err := runtime.New(ctx, g, plan, p, runtime.Options{})
	if err != nil {
		return nil, nil, err
	}
	trace, err := program.Trace(ctx, 3)
	if err != nil {
		return nil, nil, errors.Join(err, program.Close())
	}
	profile := trace.Profile(program)
	us, err := predicted(planner.Simulate(g, plan, machine, profile))
	if err != nil {
		return nil, nil, errors.Join(err, program.Close())
	}
	return &profiledProgram{program, us}, profile, nil
}

// profiled is the summary of a profile. Times are microseconds.
type profiled struct {
	Chunks  int             `json:"chunks"`
	Up      float64         `json:"up_us"`
	Kernels float64         `json:"kernels_us"`
	Down    float64         `json:"down_us"`
	Chain   float64         `json:"longest_chain_us"`
	Least   float64         `json:"least_us"`
	Each    []*kernelTiming `json:"kernels"`
}

// kernelTiming sums up all launches of one kernel. Bytes is how much memory they must read and write.
type kernelTiming struct {
	Entry    string  `json:"entry"`
	Launches int     `json:"launches"`
	US       float64 `json:"us"`
	Bytes    int64   `json:"bytes"`
}

func summarise(g *dag.Graph, machine *planner.Machine, profile *planner.Profile, chunks, streams int) *profiled {
	least := planner.LowerBound(g, machine, profile, streams)
	f := &profiled{Chunks: chunks, Chain: least.CriticalPathUS, Least: least.US()}
	byEntry := map[string]*kernelTiming{}
	for i := range g.Nodes {
		n := &g.Nodes[i]
		us := profile.Nodes[n.Name]
		switch {
		case n.Kind == dag.Memcpy && g.Buffers[n.Copy.Dst.Buffer].Place == dag.Host:
			f.Down += us
		case n.Kind == dag.Memcpy:
			f.Up += us
		case n.Launch != nil:
			f.Kernels += us
			entry := n.Launch.Kernel.Entry()
			k := byEntry[entry]
			if k == nil {
				k = &kernelTiming{Entry: entry}
				byEntry[entry] = k
				f.Each = append(f.Each, k)
			}
			k.Launches++
			k.US += us
			k.Bytes += n.Work.Bytes
		}
	}
	return f
}

func predicted(t *planner.Timeline, err error) (float64, error) {
	if err != nil {
		return 0, err
	}
	return t.MakespanUS, nil
}
