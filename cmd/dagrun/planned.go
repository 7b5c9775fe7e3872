// Commands on a .dagrun file: run, check, plan and dot.

package main

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dagrun/dagrun/cmd/dagrun/internal/cli"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/graphfile"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/pictures"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/session"
	"github.com/dagrun/dagrun/internal/words"
	"github.com/dagrun/dagrun/runtime"
)

// plannedRun is the JSON document of run for a .dagrun file.
type plannedRun struct {
	Version    int                `json:"version"`
	Command    string             `json:"command"`
	Name       string             `json:"name"`
	Backend    string             `json:"backend"`
	Device     string             `json:"device"`
	Nodes      int                `json:"nodes"`
	Iterations int                `json:"iterations"`
	EachUS     float64            `json:"each_us"`
	Checksums  []runtime.Checksum `json:"checksums"`
}

// runPlanned runs a .dagrun file and tells what its results on the host are.
func (a *app) runPlanned(c *cobra.Command, name string) error {
	file, err := a.openPlanned(c, name, "backend", "iterations", "timeout", "kernel-steps", "load", "save")
	if err != nil {
		return err
	}
	defer file.Close()
	a.Progress.Begin()
	ctx, done := a.Limited(c.Context())
	defer done()
	platform, err := a.OpenPlatform(1, 0)
	if err != nil {
		return err
	}
	report, err := a.replayPlanned(ctx, file, platform)
	if err = cli.Closing(err, platform); err != nil {
		return err
	}
	if a.Flags.Output == "json" {
		return a.Answer(report)
	}
	if a.Flags.Quiet {
		return nil
	}
	a.Progress.Clear()
	_ = a.Stdout.Printf("%s: %s on %s, as a graph; %s\n", report.Name, a.Paint(a.Stdout, cli.Bold, cli.Duration(report.EachUS)+" per replay"), platform.Place(), sizeOf(file))
	for _, sum := range report.Checksums {
		fmt.Fprintf(a.Stdout, "  %s  sha256 %s\n", words.Line(sum.Buffer), sum.SHA256)
	}
	return nil
}

func (a *app) replayPlanned(ctx context.Context, file *graphfile.File, platform *session.Opened) (report *plannedRun, err error) {
	program, err := graphfile.Load(ctx, file, platform.Platform)
	if err != nil {
		return nil, err
	}
	defer func() { err = cli.Closing(err, program) }()
	if err := eachBound("load", a.Flags.Load, file, program, func(name string, memory []byte) error {
		contents, err := os.ReadFile(name)
		if err == nil && len(contents) != len(memory) {
			err = fmt.Errorf("%s has %d bytes", name, len(contents))
		}
		copy(memory, contents)
		return err
	}); err != nil {
		return nil, err
	}
	a.Progress.Report(cli.StageReplay, 0, 0)
	start := time.Now()
	if err := program.Replay(ctx, a.Flags.Iterations); err != nil {
		return nil, err
	}
	us := float64(time.Since(start).Nanoseconds()) / 1e3 / float64(max(1, a.Flags.Iterations))
	report = &plannedRun{Version: cli.JSONVersion, Command: "run", Name: file.Name, Backend: platform.Name(), Device: platform.Devices()[0].Name, Nodes: len(file.Nodes),
		Iterations: a.Flags.Iterations, EachUS: us, Checksums: []runtime.Checksum{}}
	for k := range file.Buffers {
		if b := &file.Buffers[k]; b.Host && b.Result {
			sum := sha256.Sum256(program.Host(k))
			report.Checksums = append(report.Checksums, runtime.Checksum{Buffer: b.Name, SHA256: hex.EncodeToString(sum[:])})
		}
	}
	return report, eachBound("save", a.Flags.Save, file, program, func(name string, memory []byte) error {
		return cli.WriteOut(ctx, name, func(w io.Writer) error {
			_, err := w.Write(memory)
			return err
		})
	})
}

// eachBound calls do for each value of --load or --save, which bind buffers of the host to files of their bytes.
func eachBound(flag string, values []string, file *graphfile.File, program *graphfile.Program, do func(name string, memory []byte) error) error {
	bindings, err := session.FileBindings(flag, values)
	if err != nil {
		return err
	}
	for _, b := range bindings {
		at := slices.IndexFunc(file.Buffers, func(of graphfile.Buffer) bool { return of.Name == b.Buffer && of.Host })
		switch {
		case at < 0:
			return fmt.Errorf("--%s %s: %s has no such buffer on the host", flag, b.Buffer, file.Name)
		case filepath.Ext(b.File) != ".bin":
			return fmt.Errorf("--%s %s=%s: of a planned graph, buffers are in files of their bytes: want a name that ends in .bin", flag, b.Buffer, b.File)
		}
		if err := do(b.File, program.Host(at)); err != nil {
			return fmt.Errorf("--%s %s, of %s: %w", flag, b.Buffer, words.Bytes(file.Buffers[at].Bytes), err)
		}
	}
	return nil
}

// checkedPlanned is the JSON document of check for a .dagrun file.
type checkedPlanned struct {
	Version int              `json:"version"`
	Command string           `json:"command"`
	Name    string           `json:"name"`
	Nodes   int              `json:"nodes"`
	Edges   int              `json:"edges"`
	Memory  int64            `json:"device_bytes"`
	Races   []graphfile.Race `json:"races"`
}

// checkPlanned proves that the edges of a .dagrun file order all accesses that conflict, as the file says what nodes access.
func (a *app) checkPlanned(c *cobra.Command, name string) error {
	file, err := a.openPlanned(c, name)
	if err != nil {
		return err
	}
	defer file.Close()
	races, err := file.Check()
	if err != nil {
		return cli.WithStatus(cli.StatusWrong, err)
	}
	if a.Flags.Output == "json" {
		err = a.Answer(checkedPlanned{cli.JSONVersion, "check", file.Name, len(file.Nodes), len(file.Edges), file.DeviceBytes(), append([]graphfile.Race{}, races...)})
	} else {
		a.printPlannedChecked(file, races)
	}
	if err == nil && len(races) > 0 {
		err = &cli.Reported{Status: cli.StatusExpectation}
	}
	return err
}

func (a *app) printPlannedChecked(file *graphfile.File, races []graphfile.Race) {
	for _, r := range races {
		_ = a.Stdout.Printf("%s no path of edges orders %s and %s, which access the same %s\n", a.Paint(a.Stdout, cli.Red, "race:"), accessText(r.First), accessText(r.Second), words.Bytes(int64(r.Bytes)))
	}
	if len(races) == 0 && !a.Flags.Quiet {
		_ = a.Stdout.Printf("%s: %s; its edges order all accesses that conflict: %s\n", file.Name, a.Paint(a.Stdout, cli.Green, "ok"), sizeOf(file))
	}
}

func accessText(of graphfile.Accessor) string {
	does := "reads"
	if of.Writes {
		does = "writes"
	}
	return fmt.Sprintf("%q, which %s %s,", of.Node, does, of.Buffer)
}

// listPlanned lists what is in a .dagrun file: buffers, and nodes with what they wait for.
func (a *app) listPlanned(c *cobra.Command, name string) error {
	file, err := a.openPlanned(c, name)
	if err != nil {
		return err
	}
	defer file.Close()
	if a.Flags.Output == "json" {
		return a.Answer(file.Listing())
	}
	code := "PTX"
	if file.Architecture != "" {
		code = file.Architecture
	}
	fmt.Fprintf(a.Stdout, "%s: %s, code for %s\n", file.Name, sizeOf(file), code)
	list := file.Listing()
	buffers := cli.NewTable("buffer", "place", "type", "bytes", "offset", "use")
	for _, b := range list.Buffers {
		buffers.Row(b.Name, b.Place, b.Type, fmt.Sprint(b.Bytes), b.OffsetText(), strings.Join(b.Use, ", "))
	}
	nodes := cli.NewTable("node", "does", "after")
	for _, n := range list.Nodes {
		nodes.Row(n.Name, n.Does, strings.Join(n.After, ", "))
	}
	for _, t := range []*cli.Table{buffers, nodes} {
		if err := a.Stdout.Printf("\n"); err != nil {
			return err
		}
		if err := t.Write(a.Stdout, a.LineWidth()); err != nil {
			return err
		}
	}
	return nil
}

// drawPlanned writes the graph of a .dagrun file as DOT.
func (a *app) drawPlanned(c *cobra.Command, name string, own *pictures.Flags) error {
	file, err := a.openPlanned(c, name, "out", "format")
	if err != nil {
		return err
	}
	defer file.Close()
	if form, err := own.Form(); err != nil || form != "dot" {
		return fmt.Errorf("a .dagrun file is drawn as DOT, with -o FILE.dot: dagrun dot %s | dot -Tsvg draws it", cli.ShownName(name))
	}
	write := func(w io.Writer) error {
		out := bufio.NewWriter(w)
		fmt.Fprintf(out, "digraph {\n  label=%q; node [shape=box]\n", file.Name)
		list := file.Listing()
		for k, n := range list.Nodes {
			fmt.Fprintf(out, "  n%d [label=%q]\n", k, n.Name+"\n"+n.Does)
		}
		for _, e := range file.Edges {
			fmt.Fprintf(out, "  n%d -> n%d\n", e[0], e[1])
		}
		fmt.Fprintln(out, "}")
		return out.Flush()
	}
	if own.Out != "" && own.Out != "-" {
		return a.Write(c.Context(), own.Out, write)
	}
	return write(a.Stdout.Document())
}
