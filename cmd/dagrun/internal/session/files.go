// The files that a command reads and writes, and the check that no output destroys an input.

package session

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/dagrun/dagrun/cmd/dagrun/internal/cli"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/internal/files"
	"github.com/dagrun/dagrun/planner"
)

// allInputs are the files that a command has read or is going to read. g may be nil.
func (u *Session) allInputs(g *dag.Graph) []cli.Input {
	list := append([]cli.Input{}, u.Inputs...)
	add := func(role, name string, initial bool) {
		if name != "" {
			list = append(list, cli.Input{NamedFile: cli.NamedFile{Role: role, Name: name}, Place: files.PlaceOf(name), Initial: initial})
		}
	}
	f := u.Flags
	add("--plan", f.Plan, false)
	add("--profile", f.Profile, false)
	add("--machine", f.Machine, false)
	if g == nil {
		return list
	}
	for i := range g.Buffers {
		b := &g.Buffers[i]
		if b.Init != nil && b.Init.File != "" {
			add(fmt.Sprintf("the initial contents of buffer %q", b.Name), inFolder(g.Dir, b.Init.File), !bound(u.Flags.Load, b.Name))
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

// SavedFiles returns the files that a run of a graph saves.
func (u *Session) SavedFiles(g *dag.Graph) []cli.NamedFile {
	var list []cli.NamedFile
	for i := range g.Buffers {
		b := &g.Buffers[i]
		switch {
		case b.Save == "":
		case bound(u.Flags.Save, b.Name):
			list = append(list, cli.NamedFile{Role: "--save " + b.Name + ":", Name: inFolder(g.Dir, b.Save)})
		default:
			list = append(list, cli.NamedFile{Role: fmt.Sprintf("save of buffer %q:", b.Name), Name: inFolder(g.Dir, b.Save), Saving: true})
		}
	}
	return list
}

// CheckOutputs refuses outputs that would overwrite an input or each other. Names are compared, and the files that they lead to.
func (u *Session) CheckOutputs(g *dag.Graph, flagged, saved []cli.NamedFile) error {
	inputs := u.allInputs(g)
	type written struct {
		cli.NamedFile
		place files.Place
	}
	var outputs []written
	for _, out := range append(append([]cli.NamedFile{}, flagged...), saved...) {
		if out.Name == "" || out.Name == "-" {
			continue
		}
		place := files.PlaceOf(out.Name)
		for _, in := range inputs {
			if place.Same(in.Place) && !(in.Initial && out.Saving) {
				return fmt.Errorf("%s %s would overwrite %s; give another name", out.Role, out.Name, in.Role)
			}
		}
		for _, other := range outputs {
			if place.Same(other.place) {
				return fmt.Errorf("%s %s would overwrite what %s %s writes; give another name", out.Role, out.Name, other.Role, other.Name)
			}
		}
		outputs = append(outputs, written{out, place})
	}
	return nil
}

func (u *Session) SavePlan(ctx context.Context, name string, plan *planner.Plan, g *dag.Graph) error {
	plan.Spread = u.Spread
	return u.Write(ctx, name, func(w io.Writer) error { return plan.EncodeJSON(w, g) })
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
