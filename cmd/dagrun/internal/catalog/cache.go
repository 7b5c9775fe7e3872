// dagrun cache: shows what was learned and is kept on disk, or deletes it.

package catalog

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/dagrun/dagrun/cmd/dagrun/internal/cli"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/flags"
	"github.com/dagrun/dagrun/internal/words"
	"github.com/dagrun/dagrun/runtime/cache"
)

func (u *Commands) CacheCommand() *cobra.Command {
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
		Args: flags.AtMost(0),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := u.CheckFlags(c); err != nil {
				return err
			}
			return u.showCache(clear)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	u.OutputFlags(c)
	u.CacheFlag(c)
	c.Flags().BoolVar(&clear, "clear", false, "forget everything")
	return c
}

// CacheReport is the JSON document of cache.
type CacheReport struct {
	Version int    `json:"version"`
	Command string `json:"command"`
	Cleared bool   `json:"cleared"`
	*cache.Contents
}

func (u *Commands) showCache(clear bool) error {
	folder := cache.Open(u.Flags.CacheDir)
	if missing := cache.Missing(u.Flags.CacheDir); missing != nil {
		return missing
	}
	if folder == nil && clear {
		return errors.New("there is no cache to clear: it is off")
	}
	if clear {
		if err := folder.Clear(); err != nil {
			return cli.WithStatus(cli.StatusInternal, err)
		}
	}
	contents, err := folder.Contents()
	if err != nil {
		return cli.WithStatus(cli.StatusInternal, err)
	}
	for _, ignored := range contents.Ignored {
		u.Warn("%s", ignored)
	}
	if u.Flags.Output == "json" {
		return u.Answer(CacheReport{cli.JSONVersion, "cache", clear, contents})
	}
	return u.printCache(contents, clear)
}

func (u *Commands) printCache(c *cache.Contents, cleared bool) error {
	if u.Flags.Quiet {
		return nil
	}
	switch {
	case c.Folder == "":
		return u.Stdout.Printf("the cache is off\n")
	case cleared:
		return u.Stdout.Printf("%s: cleared\n", words.Line(c.Folder))
	case len(c.Devices)+len(c.Choices)+len(c.Loops)+c.Machines+c.Graphs == 0:
		return u.Stdout.Printf("%s: nothing has been learned yet\n", words.Line(c.Folder))
	}
	if err := u.Stdout.Printf("%s: %s\n", words.Line(c.Folder), words.Bytes(c.Bytes)); err != nil {
		return err
	}
	if c.Machines > 0 {
		if err := u.Stdout.Printf("figures of %s, from dagrun devices --measure\n", cli.Counted(c.Machines, "device")); err != nil {
			return err
		}
	}
	if c.Graphs > 0 {
		if err := u.Stdout.Printf("plans of %s, from dagrun.replan\n", cli.Counted(c.Graphs, "captured graph")); err != nil {
			return err
		}
	}
	if len(c.Devices) > 0 {
		table := cli.NewTable("durations of", "nodes")
		for _, d := range c.Devices {
			table.Row(d.Device, strconv.Itoa(d.Nodes))
		}
		fmt.Fprintln(u.Stdout)
		if err := table.Write(u.Stdout, u.LineWidth()); err != nil {
			return err
		}
	}
	if len(c.Loops) > 0 {
		table := cli.NewTable("loop", "of", "passes", "at most", "when")
		for k := range c.Loops {
			l := &c.Loops[k]
			passes := strconv.FormatInt(l.Passes, 10)
			if l.Runs != 1 {
				passes += fmt.Sprintf(" in %d runs", l.Runs)
			}
			table.Row(l.Node, l.Pipeline, passes, strconv.FormatInt(l.Most, 10), l.At.Local().Format("2006-01-02 15:04"))
		}
		fmt.Fprintln(u.Stdout)
		if err := table.Write(u.Stdout, u.LineWidth()); err != nil {
			return err
		}
	}
	if len(c.Choices) > 0 {
		table := cli.NewTable("plan of", "us per replay", "compared", "when", "on")
		for _, p := range c.Choices {
			table.Row(p.Pipeline, cli.Fixed(p.EachUS), strconv.Itoa(p.Tried), p.At.Local().Format("2006-01-02 15:04"), p.Device)
		}
		fmt.Fprintln(u.Stdout)
		return table.Write(u.Stdout, u.LineWidth())
	}
	return nil
}
