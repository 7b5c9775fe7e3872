// dagrun version: which build this is, as the Go tool recorded it.

package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/dagrun/dagrun/cmd/dagrun/internal/cli"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/flags"
)

// build is the JSON document of version: what this command was built from.
type build struct {
	Document int    `json:"version"`
	Command  string `json:"command"`
	Release  string `json:"release"`            // "v1.2.0", or "(devel)" where the Go tool knew of no version
	Commit   string `json:"commit,omitempty"`   // of the repository, "" if unknown
	Time     string `json:"time,omitempty"`     // of the commit
	Modified bool   `json:"modified,omitempty"` // there were changes after the commit
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func thisBuild() build {
	b := build{Document: cli.JSONVersion, Command: "version", Release: "(devel)", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	if info.Main.Version != "" {
		b.Release = info.Main.Version
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value
		case "vcs.time":
			b.Time = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}

// String is one line: what people paste into a report.
func (b build) String() string {
	commit := ""
	if b.Commit != "" {
		commit = ", commit " + b.Commit[:min(12, len(b.Commit))]
		if b.Modified {
			commit += " with changes"
		}
		if b.Time != "" {
			commit += " of " + b.Time
		}
	}
	return fmt.Sprintf("dagrun %s%s, %s, %s", b.Release, commit, b.Go, b.Platform)
}

func (a *app) versionCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "version",
		Short: "Show which build this is",
		Long:  "Show the version, the commit that it was built from, and the Go version and platform.",
		Example: `  dagrun version
  dagrun version --output json`,
		Args: flags.AtMost(0),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := a.CheckFlags(c); err != nil {
				return err
			}
			return a.showVersion()
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	a.OutputFlags(c)
	return c
}

func (a *app) showVersion() error {
	if a.Flags.Output == "json" {
		return a.Answer(thisBuild())
	}
	_, err := fmt.Fprintln(a.Stdout, thisBuild())
	return err
}

// versionFlag gives the root command --version, which does what dagrun version does. Cobra's own flag knows no JSON.
func (a *app) versionFlag(root *cobra.Command) {
	wanted, run := root.Flags().Bool("version", false, "show which build this is"), root.RunE
	root.RunE = func(c *cobra.Command, args []string) error {
		if !*wanted {
			return run(c, args)
		}
		if err := a.CheckFlags(c); err != nil {
			return err
		}
		return a.showVersion()
	}
}
