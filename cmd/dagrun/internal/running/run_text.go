// What a run prints.

package running

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/dagrun/dagrun/cmd/dagrun/internal/cli"
	"github.com/dagrun/dagrun/internal/words"
	"github.com/dagrun/dagrun/runtime"
)

func (u *Commands) printRun(r *RunReport) error {
	if u.Flags.Output == "json" {
		if err := u.Answer(r); err != nil {
			return err
		}
	} else {
		u.printRunText(r)
		if r.Memory != nil {
			if err := u.printMemory(r.Memory); err != nil {
				return err
			}
		}
	}
	if !r.OK {
		return &cli.Reported{Status: cli.StatusExpectation}
	}
	return nil
}

// tookText says how long replays took. Those that were used to learn, most of which took longer, are counted apart.
func (r *RunReport) tookText() string {
	switch {
	case r.Iterations == 0:
		return "no replay"
	case r.learned > 0:
		left := r.Iterations - r.learned
		return fmt.Sprintf("%s per replay (%d in %s; %d before them for learning)", cli.Duration(r.RestUS), left, cli.Duration(r.RestUS*float64(left)), r.learned)
	case r.Iterations > 1:
		return fmt.Sprintf("%s per replay (%d in %s)", cli.Duration(r.EachUS), r.Iterations, cli.Duration(r.TookUS))
	}
	return cli.Duration(r.TookUS)
}

func (u *Commands) printRunText(r *RunReport) {
	u.Progress.Clear()
	if !u.Flags.Quiet {
		took := r.tookText()
		if r.Rank != nil {
			r.place = fmt.Sprintf("rank %d of %d, %s", r.Rank.Rank, r.Rank.Ranks, r.place)
		}
		mode := ""
		if r.Replay != runtime.Streams.String() {
			mode = ", as a " + r.Replay
		}
		if r.Early > 0 {
			mode += fmt.Sprintf(", %d of its launches begin early", r.Early)
		}
		_ = u.Stdout.Printf("%s: %s on %s%s; %s, %s, %s\n", r.Name, u.Paint(u.Stdout, cli.Bold, took), r.place, mode,
			cli.Counted(r.Nodes, "node"), cli.Counted(r.Streams, "stream"), cli.Counted(r.Waits, "wait"))
		if r.onGPU > 0 && r.onGPU != r.Streams {
			_ = u.Stdout.Printf("%s\n", u.Paint(u.Stdout, cli.Dim, fmt.Sprintf("  %s here; %d on an H200", cli.Counted(r.Streams, "stream"), r.onGPU)))
		}
		u.PrintAllowed(r.Allowed)
	}
	u.printLoops(r.Loops)
	u.printChecks(r.Checks, "matches")
	u.printChecks(r.Verified, "agrees with")
	switch {
	case r.Differs != nil:
		_ = u.Stdout.Printf("%s node %q (replay %d) is the first that differs:\n", u.Paint(u.Stdout, cli.Red, "  WRONG"), r.Differs.Node, r.Differs.Replay+1)
		u.printChecks([]runtime.Check{r.Differs.Check}, "agrees with")
	case r.eachNode:
		_ = u.Stdout.Printf("%s every node agrees with a serial run on the CPU\n", u.Paint(u.Stdout, cli.Green, "  ok   "))
	}
	if u.Flags.Quiet {
		return
	}
	width := 0
	for _, s := range r.Saved {
		width = max(width, words.Width(words.Line(s.Buffer)))
	}
	for _, s := range r.Saved {
		fmt.Fprintf(u.Stdout, "  saved %s  %s, %s\n", words.Pad(words.Line(s.Buffer), width), words.Line(s.File), words.Bytes(s.Bytes))
	}
	if text := r.Learning.Text(); text != "" {
		_ = u.Stdout.Printf("%s\n", u.Paint(u.Stdout, cli.Dim, "  "+text))
	}
	if len(r.Checks)+len(r.Verified)+len(r.Saved) == 0 {
		_ = u.Stdout.Printf("%s\n", u.Paint(u.Stdout, cli.Dim, "  no buffer has expect or save: no result was checked"))
	}
}

func (u *Commands) printChecks(checks []runtime.Check, matches string) {
	width := 0
	for _, c := range checks {
		width = max(width, words.Width(words.Line(c.Buffer)))
	}
	for _, c := range checks {
		against := strings.TrimPrefix(c.Against, "value ")
		switch {
		case !c.OK:
			text := fmt.Sprintf("%s; %d of %s %s from %s", c.First, c.Wrong, cli.Counted(int(c.Elements), "element"),
				cli.Verb(int(c.Wrong), "differs", "differ"), against)
			switch {
			case strings.HasPrefix(c.Against, "sum "):
				text = c.First
			case c.Norm != "":
				text = fmt.Sprintf("%s (against %s)", c.First, against)
			case c.Allowed > 0:
				text += fmt.Sprintf(", and %d may", c.Allowed)
			}
			_ = u.Stdout.Printf("  %s  %s  %s%s\n", u.Paint(u.Stdout, cli.Red, "FAIL"), words.Pad(words.Line(c.Buffer), width), text, tolerance(c))
		case !u.Flags.Quiet:
			worst := "exactly"
			if c.Worst > 0 {
				worst = fmt.Sprintf("worst error %.3g", c.Worst)
			}
			if c.Wrong > 0 {
				worst += fmt.Sprintf(", %d outside the tolerance, and %d may be", c.Wrong, c.Allowed)
			}
			if c.Norm != "" && c.Distance > 0 {
				worst += fmt.Sprintf(", %s norm of the difference %.3g", c.Norm, c.Distance)
				if c.WantNorm > 0 {
					worst += fmt.Sprintf(", %.3g of what is expected", c.Distance/c.WantNorm)
				}
			}
			_ = u.Stdout.Printf("  %s    %s  %s %s, %s, %s\n", u.Paint(u.Stdout, cli.Green, "ok"), words.Pad(words.Line(c.Buffer), width), matches, against,
				cli.Counted(int(c.Elements), "element"), worst)
		}
	}
}

// tolerance returns the tolerance of a failed check, as text.
func tolerance(c runtime.Check) string {
	if c.RTol == 0 && c.ATol == 0 {
		return ""
	}
	if math.IsNaN(c.Worst) {
		return fmt.Sprintf(" (rtol %.3g, atol %.3g)", c.RTol, c.ATol)
	}
	return fmt.Sprintf(" (rtol %.3g, atol %.3g; worst error %.3g)", c.RTol, c.ATol, c.Worst)
}

// printMemory prints a program's memory as machine learning frameworks do: planned, reserved, and each buffer's lifetime.
func (u *Commands) printMemory(m *runtime.MemoryStats) error {
	_ = u.Stdout.Printf("device memory: %s reserved, %s for each of %s in flight; %s without sharing; host memory %s\n",
		u.Paint(u.Stdout, cli.Bold, words.Bytes(m.Reserved)), words.Bytes(m.Planned), cli.Counted(m.Instances, "replay"), words.Bytes(m.Buffers), words.Bytes(m.Host))
	if len(m.PerBuffer) == 0 {
		return nil
	}
	table := cli.NewTable("  buffer", "device", "offset", "bytes", "size", "first used by", "last used by", "own bytes")
	for i := range m.PerBuffer {
		b := &m.PerBuffer[i]
		own := "yes"
		if b.Shares {
			own = "shared"
		}
		table.Row("  "+b.Name, strconv.Itoa(int(b.Device)), strconv.FormatInt(b.Offset, 10), strconv.FormatInt(b.Bytes, 10), words.Bytes(b.Bytes), cli.Dash(b.First),
			cli.Dash(b.Last), own)
	}
	return table.Write(u.Stdout, u.LineWidth())
}
