// Loading: a pipeline file, and what goes with it, read, parsed and planned; what is wrong with it printed.

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/kernels"
	"github.com/dagrun/dagrun/planner"
)

// decodeFile reads a file with one of the decoders that take a reader.
func decodeFile[T any](name string, decode func(io.Reader) (T, error)) (T, error) {
	file, err := os.Open(name)
	if err != nil {
		var none T
		return none, err
	}
	defer file.Close()
	value, err := decode(file)
	if err != nil {
		return value, fmt.Errorf("%s: %w", name, err)
	}
	return value, nil
}

// readSource reads a pipeline file; - is standard input.
func (a *app) readSource(name string) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(a.stdin)
	}
	return os.ReadFile(name)
}

// loadGraph reads a pipeline file and makes its graph. Mistakes are printed with their places and become one reported error.
func (a *app) loadGraph(name string) (*dag.Graph, error) {
	source, err := a.readSource(name)
	if err != nil {
		return nil, err
	}
	options := dag.Options{Name: name, Library: kernels.Library()}
	if name == "-" {
		options.Name = "<stdin>"
	} else {
		options.Dir = filepath.Dir(name)
	}
	for _, p := range a.flags.params {
		key, value, ok := strings.Cut(p, "=")
		if !ok {
			return nil, fmt.Errorf("-p %s: want name=value", p)
		}
		options.Params = append(options.Params, dag.Override{Name: strings.TrimSpace(key), Value: value})
	}
	g, diagnostics := dag.Parse(source, options)
	if !a.flags.quiet || g == nil {
		if err := diagnostics.Print(a.stderr); err != nil {
			return nil, err
		}
	}
	if g == nil {
		return nil, &reported{statusWrong}
	}
	return g, nil
}

// loadPlan plans the graph as the flags say, or reads the plan that --plan names.
func (a *app) loadPlan(ctx context.Context, g *dag.Graph, o planner.Options) (*planner.Plan, error) {
	if a.flags.plan == "" {
		return planner.New(ctx, g, o)
	}
	return decodeFile(a.flags.plan, func(r io.Reader) (*planner.Plan, error) { return planner.DecodePlan(r, g) })
}
