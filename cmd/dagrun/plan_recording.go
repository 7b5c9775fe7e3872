// dagrun plan FILE, where the file is a recording of a program: new plans for the graphs that it captured.

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/dagrun/dagrun/cmd/dagrun/internal/replan"
	"github.com/dagrun/dagrun/internal/recording"
	"github.com/dagrun/dagrun/planner"
)

// replanFlags are what plan takes for recordings only.
type replanFlags struct {
	graph string // file with a captured graph as the Python package describes it, - for standard input
	stay  bool
	keep  []int
}

// largestGraph is how long the description of a graph may be.
const largestGraph = 1 << 30

// planRecording plans the graphs of a recording again. With --graph it plans one in the process that captured it, for the Python package.
func (a *app) planRecording(ctx context.Context, name string, own *replanFlags) error {
	machine, err := planner.MachineByName(a.flags.machine)
	if err != nil {
		return err
	}
	archive, err := a.openRecording(name)
	if err != nil {
		return err
	}
	defer archive.Close()
	options := replan.Options{Machine: machine, Stay: own.stay, Keep: own.keep}
	var asked *replan.Graph
	if own.graph != "" {
		if asked, err = readGraph(own.graph); err != nil {
			return withStatus(statusWrong, err)
		}
	}
	found, closest := 0, error(nil)
	for k := range archive.Processes() {
		p, err := archive.Process(k)
		if err != nil {
			return withStatus(statusWrong, err)
		}
		for _, note := range p.Notes {
			if note.Code != recording.NoteGraph {
				continue
			}
			found++
			known, err := replan.Learn(p, note)
			if err != nil {
				return withStatus(statusWrong, fmt.Errorf("%s: %w", shownName(name), err))
			}
			if asked == nil {
				fmt.Fprint(a.stdout, known.Text())
				continue
			}
			plans, err := replan.Make(ctx, known, asked, options)
			var other *replan.ErrOther
			if errors.As(err, &other) { // perhaps another graph of the program is meant
				if before := (*replan.ErrOther)(nil); closest == nil || errors.As(closest, &before) && other.Node > before.Node {
					closest = err
				}
				continue
			}
			if err != nil {
				return err
			}
			return json.NewEncoder(a.stdout).Encode(plans)
		}
	}
	if found == 0 {
		return withStatus(statusWrong, fmt.Errorf("%s has no graph that can be planned again: call dagrun.replan(graph, FILE) in the program, and record it with its accesses measured", shownName(name)))
	}
	return withStatus(statusWrong, closest)
}

func readGraph(name string) (*replan.Graph, error) {
	in := io.Reader(os.Stdin)
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in = f
	}
	text, err := io.ReadAll(io.LimitReader(in, largestGraph))
	if err != nil {
		return nil, err
	}
	return replan.DecodeGraph(text)
}
