// dagrun export FILE: a pipeline, planned, as a file for programs that have no dagrun: dagrun.h and Python run it, and dagrun does.

package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

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

func (a *app) exportCommand() *cobra.Command {
	var out, header string
	var library bool
	var target targetFlags
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
			return oneFile(c, args)
		},
		RunE: func(c *cobra.Command, args []string) error {
			if library {
				path, err := recorder.Library()
				if err == nil {
					err = a.stdout.printf("%s\n", path)
				}
				return err
			}
			if header != "" {
				err := a.write(c.Context(), header, func(w io.Writer) error {
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
			if err := target.apply(a, c); err != nil {
				return err
			}
			return a.onGraph(func(ctx context.Context, g *dag.Graph) error {
				err := a.export(ctx, g, &target, out)
				var refused *graphfile.Refused
				if errors.As(err, &refused) && refused.At.Line > 0 {
					err = fmt.Errorf("%s:%d:%d: %w", shownName(args[0]), refused.At.Line, refused.At.Column, err)
				}
				return err
			})(c, args)
		},
	}
	a.outputFlags(c)
	a.paramFlags(c)
	a.loadFlags(c)
	a.saveFlags(c)
	a.planFlags(c, "h200")
	target.flags(c)
	a.recallFlags(c)
	c.Flags().StringVarP(&out, "out", "o", "", "write the planned graph to this `file`, such as saxpy.dagrun")
	c.Flags().StringVar(&header, "header", "", "write dagrun.h to this `file`")
	c.Flags().BoolVar(&library, "library", false, "print the path of a shared library with the functions of dagrun.h (for the Python package)")
	return c
}

func (a *app) export(ctx context.Context, g *dag.Graph, target *targetFlags, out string) error {
	if err := a.checkOutputs(g, []namedFile{{role: "-o", name: out}}, nil); err != nil {
		return err
	}
	plan, options, err := a.planned(ctx, g)
	if err != nil {
		return err
	}
	if beyond := target.beyond(g, options.Machine); len(beyond) > 0 {
		return withStatus(statusWrong, fmt.Errorf("%s: %s", onLine(beyond[0].Node, beyond[0].Line), beyond[0].Why))
	}
	to := graphfile.Target{Exact: target.arch != "", Architecture: target.arch, Compiler: a.compiler(), Confined: a.flags.confined}
	capability := target.capability
	if capability == 0 && options.Machine != nil {
		capability = options.Machine.Capability
	}
	to.Capability = [2]int{capability / 10, capability % 10}
	a.progress.report("export", 0, 0)
	file, err := graphfile.Export(ctx, g, plan, to)
	if err != nil {
		return err
	}
	if err := a.write(ctx, out, file.Write); err != nil || a.flags.output != "json" {
		return err
	}
	return a.answer(exported{jsonVersion, "export", file.Name, out, file.Architecture, len(file.Nodes), len(file.Edges), len(file.Buffers), len(file.Modules), file.DeviceBytes()})
}

// openPlanned reads a .dagrun file, and refuses flags that mean nothing for it.
func (a *app) openPlanned(c *cobra.Command, name string, allowed ...string) (*graphfile.File, error) {
	if err := onlyFlagsOf(c, "for a planned graph, and "+shownName(name)+" is one", allowed...); err != nil {
		return nil, err
	}
	file, err := graphfile.Read(name)
	return file, withStatus(statusWrong, err)
}

// sizeOf says how large a file's graph is.
func sizeOf(f *graphfile.File) string {
	return counted(len(f.Nodes), "node") + ", " + counted(len(f.Edges), "edge") + ", " + words.Bytes(f.DeviceBytes()) + " of device memory"
}
