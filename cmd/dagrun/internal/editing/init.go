// dagrun init NAME: a first pipeline to edit.

package editing

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dagrun/dagrun/cmd/dagrun/internal/cli"
)

// firstPipeline copies, computes and copies back in k overlapping chunks: small enough to read, and already worth planning.
const firstPipeline = `# yaml-language-server: $schema=%s
version: 1
name: %s
params:
  n: 65536  # elements; dagrun %s -p n=1e6
  k: 4  # chunks that overlap

buffers:
  x: {place: host, dtype: f32, shape: [n], init: {ramp: [0, 1]}}
  d_x: {place: device, dtype: f32, shape: [n]}
  y: {place: host, dtype: f32, shape: [n], save: y.npy, expect: {expr: 2*i}}

nodes:
  - foreach: {i: k}
    nodes:
      - {name: up.$i, memcpy: {from: x(i of k), to: d_x(i of k)}}
      - {name: double.$i, kernel: scale, args: [len(d_x(i of k)), 2, d_x(i of k)]}
      - {name: down.$i, memcpy: {from: d_x(i of k), to: y(i of k)}}
`

// publishedSchema is where editors find the schema if there is none near a file.
const publishedSchema = "https://raw.githubusercontent.com/dagrun/dagrun/main/dagrun.schema.json"

// schemaFor is the schema that an editor checks a new file with: dagrun.schema.json in the file's folder or one above it, as a path
// relative to the file, or the published one.
func schemaFor(file string) string {
	folder, err := filepath.Abs(filepath.Dir(file))
	if err != nil {
		return publishedSchema
	}
	for path := "dagrun.schema.json"; ; path = "../" + path {
		if info, err := os.Stat(filepath.Join(folder, filepath.FromSlash(path))); err == nil && info.Mode().IsRegular() {
			return path
		}
		if filepath.Dir(filepath.Join(folder, filepath.FromSlash(path))) == filepath.Dir(filepath.Join(folder, filepath.FromSlash("../"+path))) {
			return publishedSchema
		}
	}
}

func (u *Commands) InitCommand() *cobra.Command {
	c := &cobra.Command{
		Use:     "init NAME",
		Short:   "Write a first pipeline to edit",
		Long:    "Write NAME.yaml, a small pipeline that runs as it is. An existing file is left alone.",
		Example: "  dagrun init blur && dagrun blur.yaml",
		RunE: func(c *cobra.Command, args []string) error {
			if err := u.CheckFlags(c); err != nil {
				return err
			}
			if len(args) != 1 {
				return fmt.Errorf("expected one name, such as: dagrun init blur")
			}
			file := args[0]
			if file == "" {
				return errors.New("the name is empty; give one, such as: dagrun init blur")
			}
			if os.IsPathSeparator(file[len(file)-1]) {
				return fmt.Errorf("%q is a folder; give a name, such as: dagrun init %sblur", file, file)
			}
			if base := filepath.Base(file); cli.ShellQuoted(base) != base || strings.HasPrefix(base, "-") {
				return fmt.Errorf("%q is not a plain name; use letters, digits and . _ -", base)
			}
			if filepath.Ext(file) == "" {
				file += ".yaml"
			}
			if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
				return fmt.Errorf("%s already exists; choose another name", file)
			}
			name := strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))
			write := func(w io.Writer) error {
				_, err := fmt.Fprintf(w, firstPipeline, schemaFor(file), name, file)
				return err
			}
			if err := cli.WriteOut(c.Context(), file, write); err != nil {
				return err
			}
			if u.Flags.Output == "json" {
				return u.Answer(struct {
					Version int    `json:"version"`
					Command string `json:"command"`
					File    string `json:"file"`
				}{cli.JSONVersion, "init", file})
			}
			if u.Flags.Quiet {
				return nil
			}
			_, err := fmt.Fprintf(u.Stdout, "wrote %s; run it with: dagrun %s\n", file, cli.ShellQuoted(file))
			return err
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	u.OutputFlags(c)
	return c
}
