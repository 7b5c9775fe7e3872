// dagrun version: which build this is, as the Go tool recorded it.

package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/dagrun/dagrun/cmd/dagrun/internal/cli"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/flags"
)

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
		return a.Answer(cli.ThisBuild())
	}
	_, err := fmt.Fprintln(a.Stdout, cli.ThisBuild())
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
