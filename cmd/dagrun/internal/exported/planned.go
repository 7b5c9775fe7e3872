// Commands on a .dagrun file: run, check, plan and dot.

package exported

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

// RunPlanned runs a .dagrun file and tells what its results on the host are.
func (u *Exported) RunPlanned(c *cobra.Command, name string) error {
	file, err := u.openPlanned(c, name, "backend", "iterations", "timeout", "kernel-steps", "load", "save")
	if err != nil {
		return err
	}
	defer file.Close()
	u.Progress.Begin()
	ctx, done := u.WithTimeout(c.Context())
	defer done()
	platform, err := u.OpenPlatform(1, 0)
	if err != nil {
		return err
	}
	report, err := u.replayPlanned(ctx, file, platform)
	if err = cli.Closing(err, platform); err != nil {
		return err
	}
	if u.Flags.Output == "json" {
		return u.Answer(report)
	}
	if u.Flags.Quiet {
		return nil
	}
	u.Progress.Clear()
	_ = u.Stdout.Printf("%s: %s on %s, as a graph; %s\n", report.Name, u.Paint(u.Stdout, cli.Bold, cli.Duration(report.EachUS)+" per replay"),
		platform.Place(), sizeOf(file))
	for _, sum := range report.Checksums {
		fmt.Fprintf(u.Stdout, "  %s  sha256 %s\n", words.Line(sum.Buffer), sum.SHA256)
	}
	return nil
}

func (u *Exported) replayPlanned(ctx context.Context, file *graphfile.File, platform *session.Opened) (report *plannedRun, err error) {
	program, err := graphfile.Load(ctx, file, platform.Platform)
	if err != nil {
		return nil, err
	}
	defer func() { err = cli.Closing(err, program) }()
	if err := eachBound("load", u.Flags.Load, file, program, func(name string, memory []byte) error {
		contents, err := os.ReadFile(name)
		if err == nil && len(contents) != len(memory) {
			err = fmt.Errorf("%s has %d bytes", name, len(contents))
		}
		copy(memory, contents)
		return err
	}); err != nil {
		return nil, err
	}
	u.Progress.Report(cli.StageReplay, 0, 0)
	start := time.Now()
	if err := program.Replay(ctx, u.Flags.Iterations); err != nil {
		return nil, err
	}
	us := float64(time.Since(start).Nanoseconds()) / 1e3 / float64(max(1, u.Flags.Iterations))
	report = &plannedRun{Version: cli.JSONVersion, Command: "run", Name: file.Name, Backend: platform.Name(), Device: platform.Devices()[0].Name,
		Nodes: len(file.Nodes), Iterations: u.Flags.Iterations, EachUS: us, Checksums: []runtime.Checksum{}}
	for k := range file.Buffers {
		if b := &file.Buffers[k]; b.Host && b.Result {
			sum := sha256.Sum256(program.Host(k))
			report.Checksums = append(report.Checksums, runtime.Checksum{Buffer: b.Name, SHA256: hex.EncodeToString(sum[:])})
		}
	}
	return report, eachBound("save", u.Flags.Save, file, program, func(name string, memory []byte) error {
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

// CheckPlanned proves that the edges of a .dagrun file order all accesses that conflict, as the file says what nodes access.
func (u *Exported) CheckPlanned(c *cobra.Command, name string) error {
	file, err := u.openPlanned(c, name)
	if err != nil {
		return err
	}
	defer file.Close()
	races, err := file.Check()
	if err != nil {
		return cli.WithStatus(cli.StatusWrong, err)
	}
	if u.Flags.Output == "json" {
		err = u.Answer(checkedPlanned{cli.JSONVersion, "check", file.Name, len(file.Nodes), len(file.Edges), file.DeviceBytes(),
			append([]graphfile.Race{}, races...)})
	} else {
		u.printPlannedChecked(file, races)
	}
	if err == nil && len(races) > 0 {
		err = &cli.Reported{Status: cli.StatusExpectation}
	}
	return err
}

func (u *Exported) printPlannedChecked(file *graphfile.File, races []graphfile.Race) {
	for _, r := range races {
		_ = u.Stdout.Printf("%s no path of edges orders %s and %s, which access the same %s\n", u.Paint(u.Stdout, cli.Red, "race:"), accessText(r.First),
			accessText(r.Second), words.Bytes(int64(r.Bytes)))
	}
	if len(races) == 0 && !u.Flags.Quiet {
		_ = u.Stdout.Printf("%s: %s; its edges order all accesses that conflict: %s\n", file.Name, u.Paint(u.Stdout, cli.Green, "ok"), sizeOf(file))
	}
}

func accessText(of graphfile.Accessor) string {
	does := "reads"
	if of.Writes {
		does = "writes"
	}
	return fmt.Sprintf("%q, which %s %s,", of.Node, does, of.Buffer)
}

// ListPlanned lists what is in a .dagrun file: buffers, and nodes with what they wait for.
func (u *Exported) ListPlanned(c *cobra.Command, name string) error {
	file, err := u.openPlanned(c, name)
	if err != nil {
		return err
	}
	defer file.Close()
	if u.Flags.Output == "json" {
		return u.Answer(file.Listing())
	}
	code := "PTX"
	if file.Architecture != "" {
		code = file.Architecture
	}
	fmt.Fprintf(u.Stdout, "%s: %s, code for %s\n", file.Name, sizeOf(file), code)
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
		if err := u.Stdout.Printf("\n"); err != nil {
			return err
		}
		if err := t.Write(u.Stdout, u.LineWidth()); err != nil {
			return err
		}
	}
	return nil
}

// DrawPlanned writes the graph of a .dagrun file as DOT.
func (u *Exported) DrawPlanned(c *cobra.Command, name string, own *pictures.Flags) error {
	file, err := u.openPlanned(c, name, "out", "format")
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
		return u.Write(c.Context(), own.Out, write)
	}
	return write(u.Stdout.Document())
}
