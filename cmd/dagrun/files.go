// The files that a command reads and writes, and the check that no output destroys an input.

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/internal/files"
	"github.com/dagrun/dagrun/planner"
)

// noteInput remembers a file that is read.
func (a *app) noteInput(role, name string) {
	a.inputs = append(a.inputs, input{namedFile: namedFile{role: role, name: name}, place: files.PlaceOf(name)})
}

// allInputs are the files that a command has read or is going to read. g may be nil.
func (a *app) allInputs(g *dag.Graph) []input {
	list := append([]input{}, a.inputs...)
	add := func(role, name string, initial bool) {
		if name != "" {
			list = append(list, input{namedFile{role: role, name: name}, files.PlaceOf(name), initial})
		}
	}
	f := a.flags
	add("--plan", f.plan, false)
	add("--profile", f.profile, false)
	add("--machine", f.machine, false)
	if g == nil {
		return list
	}
	for i := range g.Buffers {
		b := &g.Buffers[i]
		if b.Init != nil && b.Init.File != "" {
			add(fmt.Sprintf("the initial contents of buffer %q", b.Name), inFolder(g.Dir, b.Init.File), !bound(a.flags.load, b.Name))
		}
		if b.Expect != nil && b.Expect.File != "" {
			add(fmt.Sprintf("the expected contents of buffer %q", b.Name), inFolder(g.Dir, b.Expect.File), false)
		}
	}
	return list
}

// inFolder resolves a name in a pipeline file against the file's folder.
func inFolder(dir, name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(dir, name)
}

// savedFiles returns the files that a run of a graph saves.
func (a *app) savedFiles(g *dag.Graph) []namedFile {
	var list []namedFile
	for i := range g.Buffers {
		b := &g.Buffers[i]
		switch {
		case b.Save == "":
		case bound(a.flags.save, b.Name):
			list = append(list, namedFile{role: "--save " + b.Name + ":", name: inFolder(g.Dir, b.Save)})
		default:
			list = append(list, namedFile{role: fmt.Sprintf("save of buffer %q:", b.Name), name: inFolder(g.Dir, b.Save), saving: true})
		}
	}
	return list
}

// checkOutputs refuses outputs that would overwrite an input or each other. Names are compared, and the files that they lead to.
func (a *app) checkOutputs(g *dag.Graph, flagged, saved []namedFile) error {
	inputs := a.allInputs(g)
	type written struct {
		namedFile
		place files.Place
	}
	var outputs []written
	for _, out := range append(append([]namedFile{}, flagged...), saved...) {
		if out.name == "" || out.name == "-" {
			continue
		}
		place := files.PlaceOf(out.name)
		for _, in := range inputs {
			if place.Same(in.place) && !(in.initial && out.saving) {
				return fmt.Errorf("%s %s would overwrite %s; give another name", out.role, out.name, in.role)
			}
		}
		for _, other := range outputs {
			if place.Same(other.place) {
				return fmt.Errorf("%s %s would overwrite what %s %s writes; give another name", out.role, out.name, other.role, other.name)
			}
		}
		outputs = append(outputs, written{out, place})
	}
	return nil
}

// openInput opens the pipeline file; - is standard input. It and its reads end with the context, whatever is at the other end.
func (a *app) openInput(ctx context.Context, name string) (io.ReadCloser, error) {
	if name != "-" {
		a.noteInput("the pipeline", name)
		return a.folder.Open(ctx, name)
	}
	if file, ok := a.stdin.(*os.File); ok {
		a.inputs = append(a.inputs, input{namedFile: namedFile{role: "the pipeline", name: name}, place: files.PlaceOfOpen(file)})
	}
	return files.Reader(ctx, a.stdin), nil
}

// decodeFile reads a file with one of the decoders that take a reader.
func decodeFile[T any](ctx context.Context, name string, decode func(io.Reader) (T, error)) (T, error) {
	var none T
	file, err := files.Open(ctx, name)
	if err != nil {
		return none, files.CannotRead(name, err)
	}
	defer file.Close()
	value, err := decode(file)
	if err != nil {
		return none, fmt.Errorf("%s: %w", name, err)
	}
	return value, nil
}

// write writes a file that the command line names, and says so.
func (a *app) write(ctx context.Context, name string, write func(io.Writer) error) error {
	if err := writeOut(ctx, name, write); err != nil {
		return err
	}
	return a.wrote(name)
}

func (a *app) wrote(name string) error {
	if a.flags.quiet || a.flags.output == "json" {
		return nil
	}
	a.progress.clear()
	return a.stderr.printf("wrote %s\n", name)
}

// writeOut writes a file without a message, for a command that prints its own.
func writeOut(ctx context.Context, name string, write func(io.Writer) error) error {
	return withStatus(statusInternal, files.Save(ctx, name, write))
}

func (a *app) savePlan(ctx context.Context, name string, plan *planner.Plan, g *dag.Graph) error {
	plan.Spread = a.spread
	return a.write(ctx, name, func(w io.Writer) error { return plan.EncodeJSON(w, g) })
}

// bound reports whether the values of --load or --save name a buffer.
func bound(values []string, buffer string) bool {
	for _, value := range values {
		if name, _, _ := strings.Cut(value, "="); strings.TrimSpace(name) == buffer {
			return true
		}
	}
	return false
}
