// dagrun schema: the JSON schema of pipeline files.

package editing

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/dagrun/dagrun"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/flags"
)

func (u *Commands) SchemaCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON schema of pipeline files",
		Long: `Print the JSON schema of pipeline files, for editors. The YAML language server takes it from a
comment at the top of a file:

  # yaml-language-server: $schema=dagrun.schema.json`,
		Example: "  dagrun schema > dagrun.schema.json",
		Args:    flags.AtMost(0),
		RunE: func(*cobra.Command, []string) error {
			u.Answered = true
			_, err := io.WriteString(u.Stdout, dagrun.Schema())
			return err
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	u.OutputFlags(c)
	return c
}
