// dagrun cache: shows what was learned and is kept on disk, or deletes it.

package main

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/dagrun/dagrun/internal/words"
	"github.com/dagrun/dagrun/runtime/cache"
)

func (a *app) cacheCommand() *cobra.Command {
	var clear bool
	c := &cobra.Command{
		Use:   "cache",
		Short: "Show what was learned from runs, or forget it",
		Long: `Show what earlier runs learned: how long nodes take, which plan was best for which pipeline, how
many passes loops made, what "dagrun devices --measure" measured, and how dagrun.replan planned
captured graphs.`,
		Example: `  dagrun cache
  dagrun cache --clear
  dagrun pipelines/saxpy.yaml --cache-dir off   use nothing from earlier runs`,
		Args: atMost(0),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := a.checkFlags(c); err != nil {
				return err
			}
			return a.showCache(clear)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	a.outputFlags(c)
	a.cacheFlag(c)
	c.Flags().BoolVar(&clear, "clear", false, "forget everything")
	return c
}

// cacheReport is the JSON document of cache.
type cacheReport struct {
	Version int    `json:"version"`
	Command string `json:"command"`
	Cleared bool   `json:"cleared"`
	*cache.Contents
}

func (a *app) showCache(clear bool) error {
	folder := cache.Open(a.flags.cacheDir)
	if missing := cache.Missing(a.flags.cacheDir); missing != nil {
		return missing
	}
	if folder == nil && clear {
		return errors.New("there is no cache to clear: it is off")
	}
	if clear {
		if err := folder.Clear(); err != nil {
			return withStatus(statusInternal, err)
		}
	}
	contents, err := folder.Contents()
	if err != nil {
		return withStatus(statusInternal, err)
	}
	for _, ignored := range contents.Ignored {
		a.warn("%s", ignored)
	}
	if a.flags.output == "json" {
		return a.answer(cacheReport{jsonVersion, "cache", clear, contents})
	}
	return a.printCache(contents, clear)
}

func (a *app) printCache(c *cache.Contents, cleared bool) error {
	if a.flags.quiet {
		return nil
	}
	switch {
	case c.Folder == "":
		return a.stdout.printf("the cache is off\n")
	case cleared:
		return a.stdout.printf("%s: cleared\n", words.Line(c.Folder))
	case len(c.Devices)+len(c.Choices)+len(c.Loops)+c.Machines+c.Graphs == 0:
		return a.stdout.printf("%s: nothing has been learned yet\n", words.Line(c.Folder))
	}
	if err := a.stdout.printf("%s: %s\n", words.Line(c.Folder), words.Bytes(c.Bytes)); err != nil {
		return err
	}
	if c.Machines > 0 {
		if err := a.stdout.printf("figures of %s, from dagrun devices --measure\n", counted(c.Machines, "device")); err != nil {
			return err
		}
	}
	if c.Graphs > 0 {
		if err := a.stdout.printf("plans of %s, from dagrun.replan\n", counted(c.Graphs, "captured graph")); err != nil {
			return err
		}
	}
	if len(c.Devices) > 0 {
		table := newTable("durations of", "nodes")
		for _, d := range c.Devices {
			table.row(d.Device, strconv.Itoa(d.Nodes))
		}
		fmt.Fprintln(a.stdout)
		if err := table.write(a.stdout, a.lineWidth()); err != nil {
			return err
		}
	}
	if len(c.Loops) > 0 {
		table := newTable("loop", "of", "passes", "at most", "when")
		for k := range c.Loops {
			l := &c.Loops[k]
			passes := strconv.FormatInt(l.Passes, 10)
			if l.Runs != 1 {
				passes += fmt.Sprintf(" in %d runs", l.Runs)
			}
			table.row(l.Node, l.Pipeline, passes, strconv.FormatInt(l.Most, 10), l.At.Local().Format("2006-01-02 15:04"))
		}
		fmt.Fprintln(a.stdout)
		if err := table.write(a.stdout, a.lineWidth()); err != nil {
			return err
		}
	}
	if len(c.Choices) > 0 {
		table := newTable("plan of", "us per replay", "compared", "when", "on")
		for _, p := range c.Choices {
			table.row(p.Pipeline, fixed(p.EachUS), strconv.Itoa(p.Tried), p.At.Local().Format("2006-01-02 15:04"), p.Device)
		}
		fmt.Fprintln(a.stdout)
		return table.write(a.stdout, a.lineWidth())
	}
	return nil
}
