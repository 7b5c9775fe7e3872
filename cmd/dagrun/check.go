// dagrun check FILE: everything that can be known without running.

package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/internal/words"
	"github.com/dagrun/dagrun/planner"
)

func (a *app) checkCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "check FILE",
		Short: "Find mistakes and races without running",
		Long: `Check a pipeline without a device: its declaration, the plan and its proof, and for a schedule
of your own (sync: explicit) every pair of accesses that nothing orders, each with the
line that would order it. The exit status is 1 if there is a race.`,
		Example: `  dagrun check pipelines/saxpy.yaml
  dagrun check mine.yaml --plan plan.json          does this plan fit this pipeline?
  dagrun check mine.yaml --output json`,
		Args: oneFile,
		RunE: a.onGraph(func(ctx context.Context, g *dag.Graph) error {
			if err := a.checkOutputs(g, nil, savedFiles(g)); err != nil {
				return err
			}
			plan, options, err := a.planned(ctx, g)
			if err != nil {
				return err
			}
			return a.check(g, plan, options.Machine)
		}),
	}
	a.outputFlags(c)
	a.paramFlags(c)
	a.planFlags(c, "h200")
	return c
}

// checked is what check found, in the form of its JSON.
type checked struct {
	Version  int                  `json:"version"`
	Command  string               `json:"command"`
	Name     string               `json:"name"`
	Nodes    int                  `json:"nodes"`
	Edges    int                  `json:"dependencies"`
	Streams  int                  `json:"streams"`
	Waits    int                  `json:"waits"`
	Carried  []string             `json:"carried_buffers"`
	Access   []kernelAccess       `json:"kernel_access"`
	Memory   int64                `json:"peak_device_bytes"`
	Warnings []diagnosticDocument `json:"warnings"`
	Unfit    []unfit              `json:"does_not_fit"`
	Races    []race               `json:"races"`
	MoreRace int                  `json:"more_races"`
}

// unfit is a device that has less memory than the plan needs.
type unfit struct {
	Device  int32  `json:"device"`
	Needs   int64  `json:"needs_bytes"`
	Has     int64  `json:"has_bytes"`
	Machine string `json:"machine"`
	Largest string `json:"largest_buffer"`
}

// unfits finds the devices of a machine that the plan does not fit.
func unfits(g *dag.Graph, plan *planner.Plan, machine *planner.Machine) ([]unfit, error) {
	list := []unfit{}
	if machine.DeviceBytes == 0 {
		return list, nil
	}
	peaks, err := planner.PeakBuffers(g, plan)
	for _, p := range peaks {
		if p.Arena > machine.DeviceBytes {
			list = append(list, unfit{p.Device, p.Arena, machine.DeviceBytes, machine.Name, p.Buffers[0].Name})
		}
	}
	return list, err
}

// race is a pair of accesses that nothing orders.
type race struct {
	First  raceSide `json:"first"`
	Second raceSide `json:"second"`
	Buffer string   `json:"buffer"`
	Bytes  [2]int64 `json:"bytes"`
	Why    string   `json:"why"`
	Fix    string   `json:"fix"`
}

type raceSide struct {
	Node   string `json:"node"`
	Stream int32  `json:"stream"`
	Access string `json:"access"`
	Line   int32  `json:"line,omitempty"`
}

func (a *app) check(g *dag.Graph, plan *planner.Plan, machine *planner.Machine) error {
	found, err := unenforced(g, plan, mostRaces)
	if err != nil {
		return err
	}
	report := checked{Version: jsonVersion, Command: "check", Name: g.Name, Nodes: g.Len(), Edges: len(g.Edges()), Streams: len(plan.Streams), Waits: plan.Stats.Waits,
		Carried: []string{}, Access: kernelAccesses(g), Warnings: a.warnings, Memory: plan.Stats.PeakDeviceBytes, Races: []race{}, MoreRace: found.Roots - len(found.Violations)}
	if report.Unfit, err = unfits(g, plan, machine); err != nil {
		return err
	}
	for _, id := range g.Carried() {
		report.Carried = append(report.Carried, g.Buffers[id].Name)
	}
	for _, v := range found.Violations {
		report.Races = append(report.Races, race{
			First:  raceSide{v.BeforeName, v.BeforeStream, v.BeforeAccess.String(), g.Nodes[v.Before].Pos.Line},
			Second: raceSide{v.NodeName, v.Stream, v.Access.String(), g.Nodes[v.Node].Pos.Line},
			Buffer: v.BufferName, Bytes: [2]int64{v.Lo, v.Hi}, Why: v.Why.String(), Fix: v.Line,
		})
	}
	if a.flags.output == "json" {
		if err := a.answer(report); err != nil {
			return err
		}
	} else {
		a.printChecked(&report)
	}
	switch {
	case len(report.Unfit) > 0:
		return &reported{status: statusWrong}
	case len(report.Races) > 0:
		return &reported{status: statusExpectation}
	}
	return nil
}

func (a *app) printChecked(r *checked) {
	for _, race := range r.Races {
		_ = a.stdout.printf("%s on %s[%d:%d]: nothing orders these two (%s)\n", a.paint(a.stdout, red, "race"), race.Buffer, race.Bytes[0], race.Bytes[1], race.Why)
		for _, side := range []raceSide{race.First, race.Second} {
			fmt.Fprintf(a.stdout, "  %-5s %s on stream %d%s\n", side.Access, side.Node, side.Stream, lineText(side.Line))
		}
		fmt.Fprintf(a.stdout, "  add to %s: %s\n", race.Second.Node, race.Fix)
	}
	if r.MoreRace > 0 {
		fmt.Fprintf(a.stdout, "and %d more of %d races\n", r.MoreRace, r.MoreRace+len(r.Races))
	}
	for _, u := range r.Unfit {
		_ = a.stdout.printf("%s device %d needs %s, and %s has %s; the largest buffer at that time is %s\n", a.paint(a.stdout, red, "does not fit:"),
			u.Device, words.Bytes(u.Needs), u.Machine, words.Bytes(u.Has), u.Largest)
	}
	if a.flags.quiet {
		return
	}
	if len(r.Races) == 0 && len(r.Unfit) == 0 {
		_ = a.stdout.printf("%s: %s; %s and %s, all enforced on %s with %s\n", r.Name, a.paint(a.stdout, green, "ok"),
			counted(r.Nodes, "node"), dependencies(r.Edges), counted(r.Streams, "stream"), counted(r.Waits, "wait"))
	}
	for _, name := range r.Carried {
		fmt.Fprintf(a.stdout, "carried: %s is read before it is written, so each replay depends on the one before it\n", name)
	}
	a.printAccess(r.Access)
	fmt.Fprintf(a.stdout, "device memory: %s\n", words.Bytes(r.Memory))
}

func dependencies(n int) string {
	if n == 1 {
		return "1 dependency"
	}
	return fmt.Sprintf("%d dependencies", n)
}

func lineText(line int32) string {
	if line == 0 {
		return ""
	}
	return fmt.Sprintf(", line %d", line)
}
