// dagrun export FILE: a pipeline, planned, as a file for programs that have no dagrun: dagrun.h and Python run it, and dagrun does.

package exported

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/dagrun/dagrun/cmd/dagrun/internal/cli"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/flags"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/graphfile"
	cheader "github.com/dagrun/dagrun/cudart/header"
	"github.com/dagrun/dagrun/cudart/recorder"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/internal/words"
)

// exported is the JSON document of export.
type exported struct {
	Version      int    `json:"version"`
	Command      string `json:"command"`
	Name         string `json:"name"`
	File         string `json:"file"`
	Architecture string `json:"architecture"` // "" if the code is PTX
	Nodes        int    `json:"nodes"`
	Edges        int    `json:"edges"`
	Buffers      int    `json:"buffers"`
	Modules      int    `json:"modules"`
	Memory       int64  `json:"device_bytes"`
}

func (u *Exported) ExportCommand() *cobra.Command {
	var out, header string
	var library bool
	var target TargetFlags
	c := &cobra.Command{
		Use:   "export FILE -o OUT",
		Short: "Write a planned pipeline to a file that C, C++ and Python can run",
		Long: `Plan a pipeline and write all that its replays need into one file: graph, code of kernels, layout
of memory, contents of buffers. C and C++ run such files with dagrun.h (--header), which needs only
the driver; dagrun FILE.dagrun runs them too, and check proves their order.

The code is PTX, which the driver compiles for any GPU that is not older than it; with --arch it is
machine code for that architecture, where there is some. A .dagrun file is code: trust those of
others as you would their programs. docs/export.md says what cannot be exported.`,
		Example: `  dagrun export pipelines/saxpy.yaml -o saxpy.dagrun
  dagrun saxpy.dagrun                              run it
  dagrun check saxpy.dagrun                        prove that its edges order every conflict
  dagrun export pipelines/saxpy.yaml -o saxpy.dagrun -p n=4096 --arch sm_90
  dagrun export --header dagrun.h                  what a C or C++ program includes`,
		Args: func(c *cobra.Command, args []string) error {
			if (header != "" || library) && len(args) == 0 {
				return nil
			}
			return flags.OneFile(c, args)
		},
		RunE: func(c *cobra.Command, args []string) error {
			if library {
				path, err := recorder.Library()
				if err == nil {
					err = u.Stdout.Printf("%s\n", path)
				}
				return err
			}
			if header != "" {
				err := u.Write(c.Context(), header, func(w io.Writer) error {
					_, err := w.Write(cheader.Text)
					return err
				})
				if err != nil || len(args) == 0 {
					return err
				}
			}
			if out == "" {
				return errors.New("export needs to know what to write: add -o OUT")
			}
			if err := target.Apply(u, c); err != nil {
				return err
			}
			return u.OnGraph(func(ctx context.Context, g *dag.Graph) error {
				err := u.export(ctx, g, &target, out)
				var refused *graphfile.Refused
				if errors.As(err, &refused) && refused.At.Line > 0 {
					err = fmt.Errorf("%s:%d:%d: %w", cli.ShownName(args[0]), refused.At.Line, refused.At.Column, err)
				}
				return err
			})(c, args)
		},
	}
	u.OutputFlags(c)
	u.ParamFlags(c)
	u.LoadFlags(c)
	u.SaveFlags(c)
	u.PlanFlags(c, "h200")
	target.Flags(c)
	u.RecallFlags(c)
	c.Flags().StringVarP(&out, "out", "o", "", "write the planned graph to this `file`, such as saxpy.dagrun")
	c.Flags().StringVar(&header, "header", "", "write dagrun.h to this `file`")
	c.Flags().BoolVar(&library, "library", false, "print the path of a shared library with the functions of dagrun.h (for the Python package)")
	return c
}

func (u *Exported) export(ctx context.Context, g *dag.Graph, target *TargetFlags, out string) error {
	if err := u.CheckOutputs(g, []cli.NamedFile{{Role: "-o", Name: out}}, nil); err != nil {
		return err
	}
	plan, options, err := u.Planned(ctx, g)
	if err != nil {
		return err
	}
	if beyond := target.Beyond(g, options.Machine); len(beyond) > 0 {
		return cli.WithStatus(cli.StatusWrong, fmt.Errorf("%s: %s", onLine(beyond[0].Node, beyond[0].Line), beyond[0].Why))
	}
	to := graphfile.Target{Exact: target.arch != "", Architecture: target.arch, Compiler: u.Compiler(), Confined: u.Flags.Confined}
	capability := target.capability
	if capability == 0 && options.Machine != nil {
		capability = options.Machine.Capability
	}
	to.Capability = [2]int{capability / 10, capability % 10}
	u.Progress.Report("export", 0, 0)
	file, err := graphfile.Export(ctx, g, plan, to)
	if err != nil {
		return err
	}
	if err := u.Write(ctx, out, file.Write); err != nil || u.Flags.Output != "json" {
		return err
	}
	return u.Answer(exported{cli.JSONVersion, "export", file.Name, out, file.Architecture, len(file.Nodes), len(file.Edges), len(file.Buffers),
		len(file.Modules), file.DeviceBytes()})
}

// openPlanned reads a .dagrun file, and refuses flags that mean nothing for it.
func (u *Exported) openPlanned(c *cobra.Command, name string, allowed ...string) (*graphfile.File, error) {
	if err := cli.OnlyFlagsOf(c, "for a planned graph, and "+cli.ShownName(name)+" is one", allowed...); err != nil {
		return nil, err
	}
	file, err := graphfile.Read(name)
	return file, cli.WithStatus(cli.StatusWrong, err)
}

// sizeOf says how large a file's graph is.
func sizeOf(f *graphfile.File) string {
	return cli.Counted(len(f.Nodes), "node") + ", " + cli.Counted(len(f.Edges), "edge") + ", " + words.Bytes(f.DeviceBytes()) + " of device memory"
}
