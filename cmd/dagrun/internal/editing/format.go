// dagrun fmt FILE: pipeline files in canonical form. They only have to be YAML, not valid pipelines.

package editing

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/rogpeppe/go-internal/diff"
	"github.com/spf13/cobra"

	"github.com/dagrun/dagrun/cmd/dagrun/internal/cli"
	"github.com/dagrun/dagrun/dag/file"
)

func (u *Commands) FormatCommand() *cobra.Command {
	var way formatting
	c := &cobra.Command{
		Use:   "fmt FILE...",
		Short: "Format pipeline files: print them in canonical form, or rewrite them",
		Long: `Print a pipeline file in canonical form: one form for all files that mean the same, with comments
kept. - is standard input. --check and --diff exit with status 1 if there is something to change.`,
		Example: `  dagrun fmt mine.yaml
  dagrun fmt -w *.yaml
  dagrun fmt --check pipelines/*.yaml`,
		Args: cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			switch {
			case len(args) == 0:
				return fmt.Errorf("no pipeline file given; usage: %s", c.UseLine())
			case way.write && (way.check || way.diff):
				return errors.New("-w cannot be combined with --check or --diff")
			case len(args) > 1 && way == formatting{}:
				return errors.New("formatting several files needs -w, --check or --diff")
			}
			if err := u.CheckFlags(c); err != nil {
				return err
			}
			return u.format(c.Context(), args, way)
		},
		ValidArgsFunction: cli.ManyPipelines,
	}
	u.OutputFlags(c)
	c.Flags().BoolVarP(&way.write, "write", "w", false, "write the files instead of printing them")
	c.Flags().BoolVar(&way.check, "check", false, "list files that would change")
	c.Flags().BoolVar(&way.diff, "diff", false, "show what would change")
	return c
}

// formatting says what fmt does with the canonical form; without any of these it prints it.
type formatting struct{ write, check, diff bool }

// FormatReport is the JSON document of fmt.
type FormatReport struct {
	Version int             `json:"version"`
	Command string          `json:"command"`
	Files   []formattedFile `json:"files"`
}

type formattedFile struct {
	File        string                   `json:"file"`
	Canonical   bool                     `json:"canonical"` // the file was already canonical
	Written     bool                     `json:"written"`
	Text        string                   `json:"text,omitempty"` // without -w, --check and --diff
	Diff        string                   `json:"diff,omitempty"`
	Diagnostics []cli.DiagnosticDocument `json:"diagnostics,omitempty"`
}

func (u *Commands) format(ctx context.Context, names []string, way formatting) error {
	report := FormatReport{Version: cli.JSONVersion, Command: "fmt", Files: []formattedFile{}}
	status := cli.StatusOK
	for _, name := range names {
		file, err := u.formatFile(ctx, name, way)
		if err != nil {
			return err
		}
		if len(file.Diagnostics) > 0 {
			status = cli.StatusWrong
		} else if (way.check || way.diff) && !file.Canonical {
			status = max(status, cli.StatusExpectation)
		}
		switch {
		case u.Flags.Output == "json":
			if way != (formatting{}) {
				file.Text = ""
			}
		case len(file.Diagnostics) > 0:
		case file.Diff != "":
			if _, err := io.WriteString(u.Stdout.Document(), file.Diff); err != nil {
				return err
			}
		case way.check && !file.Canonical:
			fmt.Fprintln(u.Stdout, file.File)
		case way == formatting{}:
			if _, err := io.WriteString(u.Stdout.Document(), file.Text); err != nil {
				return err
			}
		}
		report.Files = append(report.Files, *file)
	}
	if u.Flags.Output == "json" {
		if err := u.Answer(report); err != nil {
			return err
		}
	}
	if status != cli.StatusOK {
		return &cli.Reported{Status: status}
	}
	return nil
}

func (u *Commands) formatFile(ctx context.Context, name string, way formatting) (*formattedFile, error) {
	source, err := u.ReadSource(ctx, name)
	if err != nil {
		return nil, err
	}
	result := &formattedFile{File: cli.ShownName(name)}
	text, err := file.Format(source, result.File)
	if wrong := (*file.ParseError)(nil); errors.As(err, &wrong) {
		result.Diagnostics = cli.DiagnosticDocuments(&wrong.Diagnostics)
		return result, u.PrintDiagnostics(&wrong.Diagnostics)
	}
	if err != nil {
		return nil, err
	}
	result.Text, result.Canonical = string(text), bytes.Equal(text, source)
	if way.diff {
		result.Diff = string(diff.Diff(result.File, source, result.File+" in canonical form", text))
	}
	if !way.write || result.Canonical {
		return result, nil
	}
	if name == "-" {
		return nil, errors.New("-w cannot write standard input")
	}
	result.Written = true
	return result, u.Write(ctx, name, func(w io.Writer) error {
		_, err := w.Write(text)
		return err
	})
}
