// dagrun FILE, dagrun run FILE: plan a pipeline, run it, check and save what it says.

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/runtime"
)

func (a *app) runCommand(c *cobra.Command) {
	a.outputFlags(c)
	a.paramFlags(c)
	a.planFlags(c, "h200")
	a.deviceFlags(c)
	a.replayFlags(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		if len(args) == 0 && c.Parent() == nil {
			return c.Help()
		}
		if len(args) != 1 {
			return fmt.Errorf("want one pipeline file, have %d arguments", len(args))
		}
		if err := a.checkFlags(); err != nil {
			return err
		}
		return a.runPipeline(c.Context(), args[0])
	}
}

func (a *app) runPipeline(ctx context.Context, name string) error {
	if a.flags.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, a.flags.timeout)
		defer cancel()
	}
	g, err := a.loadGraph(name)
	if err != nil {
		return err
	}
	options, err := a.planOptions()
	if err != nil {
		return err
	}
	plan, err := a.loadPlan(ctx, g, options)
	if err != nil {
		return err
	}
	platform, why, err := a.openPlatform(devicesOf(g))
	if err != nil {
		return err
	}
	err = a.runOn(ctx, g, plan, platform, why)
	return errors.Join(err, platform.Close())
}

func (a *app) runOn(ctx context.Context, g *dag.Graph, plan *planner.Plan, platform cudart.Platform, why string) (err error) {
	options := runtime.Options{Inflight: a.flags.inflight}
	if a.flags.graph {
		options.Mode = runtime.Captured
	}
	program, err := runtime.New(ctx, g, plan, platform, options)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, program.Close()) }()
	if a.flags.warmup > 0 {
		if err := program.Run(ctx, a.flags.warmup); err != nil {
			return err
		}
		if err := program.Restore(ctx); err != nil {
			return err
		}
	}
	start := time.Now()
	if err := program.Run(ctx, a.flags.iterations); err != nil {
		return err
	}
	took := time.Since(start)
	results, err := program.Finish(ctx)
	if err != nil {
		return err
	}
	return a.printRun(g, plan, platform, why, took, results)
}

func (a *app) printRun(g *dag.Graph, plan *planner.Plan, platform cudart.Platform, why string, took time.Duration, results *runtime.Results) error {
	if !a.flags.quiet {
		fmt.Fprintf(a.stdout, "%s: %d nodes on %d streams, %d waits, ran in %s on %s\n", g.Name, g.Len(), len(plan.Streams), plan.Stats.Waits, took.Round(time.Microsecond), why)
		for _, s := range results.Saved {
			fmt.Fprintf(a.stdout, "  saved %s to %s (%s)\n", s.Buffer, s.File, runtime.Size(s.Bytes))
		}
	}
	for _, c := range results.Checks {
		switch {
		case !c.OK:
			fmt.Fprintf(a.stdout, "  %s %s: %s (%d of %d elements differ from %s)\n", a.paint(a.stdout, "31", "FAIL"), c.Buffer, c.First, c.Wrong, c.Elements, c.Against)
		case !a.flags.quiet:
			fmt.Fprintf(a.stdout, "  %s %s matches %s (%d elements, worst error %.3g)\n", a.paint(a.stdout, "32", "ok"), c.Buffer, c.Against, c.Elements, c.Worst)
		}
	}
	if len(results.Failed()) > 0 {
		return &reported{statusExpectation}
	}
	return nil
}
