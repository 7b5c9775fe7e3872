// dagrun version: which build this is, as the Go tool recorded it.

package catalog

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/dagrun/dagrun/cmd/dagrun/internal/cli"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/flags"
)

func (u *Commands) VersionCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "version",
		Short: "Show which build this is",
		Long:  "Show the version, the commit that it was built from, and the Go version and platform.",
		Example: `  dagrun version
  dagrun version --output json`,
		Args: flags.AtMost(0),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := u.CheckFlags(c); err != nil {
				return err
			}
			return u.showVersion()
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	u.OutputFlags(c)
	return c
}

func (u *Commands) showVersion() error {
	if u.Flags.Output == "json" {
		return u.Answer(cli.ThisBuild())
	}
	_, err := fmt.Fprintln(u.Stdout, cli.ThisBuild())
	return err
}

// VersionFlag gives the root command --version, which does what dagrun version does. Cobra's own flag knows no JSON.
func (u *Commands) VersionFlag(root *cobra.Command) {
	wanted, run := root.Flags().Bool("version", false, "show which build this is"), root.RunE
	root.RunE = func(c *cobra.Command, args []string) error {
		if !*wanted {
			return run(c, args)
		}
		if err := u.CheckFlags(c); err != nil {
			return err
		}
		return u.showVersion()
	}
}
