// dagrun lsp: the language server of pipeline files, which editors start and talk to.

package editing

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/dagrun/dagrun/cmd/dagrun/internal/cli"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/editor"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/flags"
	"github.com/dagrun/dagrun/internal/lsp"
)

func (u *Commands) LanguageServerCommand() *cobra.Command {
	confined := false
	c := &cobra.Command{
		Use:   "lsp",
		Short: "Help an editor with pipeline files, as a language server",
		Long: `A language server for pipeline files, on stdin and stdout. It reports mistakes and warnings as
check finds them before it plans, formats, completes, explains what is under the cursor, and goes
to declarations. Files of modules are read; nothing is compiled, run or written. docs/editor.md has
the settings of editors.`,
		Example: `  dagrun lsp   # vim.lsp.start({name = "dagrun", cmd = {"dagrun", "lsp"}})`,
		Args:    flags.AtMost(0),
		RunE: func(c *cobra.Command, _ []string) error {
			if input, ok := u.Stdin.(*os.File); ok && term.IsTerminal(int(input.Fd())) {
				return errors.New("editors start this command; it cannot be used from a terminal; see dagrun lsp --help")
			}
			client := lsp.NewClient(lsp.NewWriter(u.Stdout.Document()))
			err := lsp.Serve(c.Context(), u.Stdin, client, editor.NewSession(c.Context(), client, cli.ThisBuild().Release, confined))
			if cut := u.Stdout.Failure(); cut != nil {
				return cut
			}
			if errors.Is(err, lsp.ErrNoExit) {
				return cli.WithStatus(cli.StatusExpectation, fmt.Errorf("dagrun lsp ends: %w", err))
			}
			return err
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	c.Flags().BoolVar(&confined, "confined", false, "for pipelines of others: read no files outside of the folder that a document is in")
	return c
}
