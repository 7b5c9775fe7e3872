// Tests of text for people: durations, counts, quoting, sizes, tables, progress and colours.

package main

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cmd/dagrun/internal/flags"
	"github.com/dagrun/dagrun/dag"
)

func TestDuration(t *testing.T) {
	for us, want := range map[float64]string{0.5: "0.5 us", 3.214: "3.21 us", 47: "47 us", 1250: "1.25 ms", 12_300_000: "12.3 s", 3_600_000_000: "3600 s"} {
		require.Equal(t, want, duration(us))
	}
}

func TestParseSize(t *testing.T) {
	for text, want := range map[string]int64{"4GiB": 4 << 30, "1.5 MiB": 3 << 19, "512MB": 512e6, "1e6": 1e6, "77": 77, "8B": 8} {
		got, err := flags.ParseSize(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{"", "lots", "-1", "0", "1e99", "4 GIB", "NaN", "inf"} {
		_, err := flags.ParseSize(text)
		require.EqualError(t, err, "want a size such as 4GiB, 512MiB or 1000000", text)
	}
}

func TestShellQuoted(t *testing.T) {
	for text, want := range map[string]string{"a/b-c.yaml": "a/b-c.yaml", "": "''", "a b": "'a b'", "it's": `'it'\''s'`, "n=1e6": "n=1e6", "$x": "'$x'"} {
		require.Equal(t, want, shellQuoted(text))
	}
}

func TestTableAligns(t *testing.T) {
	table := newTable("name", "us", "note")
	table.row("a", "1.5", "x")
	table.row("blür", "12", "")
	table.row("c", "-", "y")
	var b bytes.Buffer
	require.NoError(t, table.write(&b, 0))
	require.Equal(t, "name   us  note\na     1.5  x\nblür   12\nc       -  y\n", b.String())
}

func TestTableWraps(t *testing.T) {
	table := newTable("kernel", "what it does")
	table.row("scale", "y = a * x, element by element, of any type")
	table.row("noop", "nothing")
	for width, want := range map[int]string{
		0:  "kernel  what it does\nscale   y = a * x, element by element, of any type\nnoop    nothing\n",
		50: "kernel  what it does\nscale   y = a * x, element by element, of any type\nnoop    nothing\n",
		35: "kernel  what it does\nscale   y = a * x, element by\n        element, of any type\nnoop    nothing\n",
		24: "kernel  what it does\nscale   y = a * x,\n        element by\n        element, of any\n        type\nnoop    nothing\n",
		20: "kernel  what it does\nscale   y = a * x, element by element, of any type\nnoop    nothing\n", // no room to wrap in
	} {
		var b bytes.Buffer
		require.NoError(t, table.write(&b, width))
		require.Equal(t, want, b.String(), width)
	}
}

// Columns of numbers cannot be wrapped: their heads are, then the gaps shrink, and at last columns move below the others.
func TestTableOfNumbersFits(t *testing.T) {
	table := newTable("", "strategy", "device min us", "waits", "measured/predicted")
	table.keys = 2
	table.row("*", "list", "12.5", "3", "1.25")
	table.row("", "roundrobin", "100.75", "-", "0.5")
	for width, want := range map[int]string{
		58: "   strategy    device min us  waits  measured/predicted\n" +
			"*  list                 12.5      3                1.25\n" +
			"   roundrobin         100.75      -                 0.5\n",
		40: "   strategy    device  waits  measured/\n" +
			"               min us         predicted\n" +
			"*  list          12.5      3       1.25\n" +
			"   roundrobin  100.75      -        0.5\n",
		36: "  strategy   device waits measured/\n" +
			"             min us       predicted\n" +
			"* list         12.5     3      1.25\n" +
			"  roundrobin 100.75     -       0.5\n",
		30: "   strategy    device  waits\n" +
			"               min us\n" +
			"*  list          12.5      3\n" +
			"   roundrobin  100.75      -\n" +
			"\n" +
			"   strategy    measured/\n" +
			"               predicted\n" +
			"*  list             1.25\n" +
			"   roundrobin        0.5\n",
	} {
		var b bytes.Buffer
		require.NoError(t, table.write(&b, width))
		require.Equal(t, want, b.String(), width)
		for _, line := range strings.Split(b.String(), "\n") {
			require.LessOrEqual(t, len(line), width)
		}
	}
}

func TestProgressText(t *testing.T) {
	require.Equal(t, "load library, 3s", progressText("load library", 0, 0, 0, 3*time.Second))
	require.Equal(t, "replay 0/100", progressText("replay", 0, 0, 100, 2*time.Second))
	require.Equal(t, "replay 25/100, 12.5/s, 6s left", progressText("replay", 0, 25, 100, 2*time.Second))
	require.Equal(t, "replay 7000/10000", progressText("replay", 7000, 7000, 10000, 3*time.Second), "7000 while it learned")
	require.Equal(t, "replay 7010/10000, 2/s, 24m55s left", progressText("replay", 7000, 7010, 10000, 5*time.Second))
}

// A pipe gets no progress line, but the reported progress is still recorded.
func TestProgressElsewhere(t *testing.T) {
	var b bytes.Buffer
	p := newProgress(newSink(&b))
	p.begin()
	require.Equal(t, "before anything ran", p.where())
	p.report("replay", 7, 9)
	require.Equal(t, "after 7 of 9 replays", p.where())
	p.report("check and save results", 0, 0)
	require.Equal(t, "at check and save results", p.where())
	p.end()
	require.Empty(t, b.String())
}

func TestColoredDiagnostics(t *testing.T) {
	var b bytes.Buffer
	a := newApp(strings.NewReader(""), &b, &b)
	a.Flags = &flags.Values{Color: "always"}
	require.NoError(t, a.printDiagnostics(&dag.Diagnostics{List: []dag.Diagnostic{
		{File: "p.yaml", Pos: dag.Pos{Line: 2, Column: 3}, Message: "what is wrong", Hint: "a way out", Source: "a bad line"},
		{File: "p.yaml", Severity: dag.SeverityWarning, Message: "of no place"},
	}, More: 4}))
	require.Equal(t, "\x1b[1mp.yaml:2:3: \x1b[0m\x1b[31mwhat is wrong; a way out\x1b[0m\n  a bad line\n\x1b[31m    ^\x1b[0m\n"+
		"\x1b[33mp.yaml: warning: of no place\x1b[0m\nand 4 more\n", b.String())
}

// Output that could not be written makes the command fail.
func TestOutputCutShort(t *testing.T) {
	var messages bytes.Buffer
	a := newApp(strings.NewReader(""), failing{}, &messages)
	require.Equal(t, statusInternal, a.execute(t.Context(), []string{"kernels"}))
	require.Equal(t, "dagrun: cannot write the output: disk full\n", messages.String())
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errors.New("disk full") }

// A bug in dagrun itself gives the exit status of an internal error.
func TestPanicIsAnInternalError(t *testing.T) {
	_, err := guarded(t.Context(), &cobra.Command{Use: "broken", RunE: func(*cobra.Command, []string) error { panic("index out of range") }, SilenceErrors: true, SilenceUsage: true})
	require.Equal(t, statusInternal, statusOf(err))
	require.ErrorContains(t, err, "internal error, please report it: index out of range")
}

func TestLearnedText(t *testing.T) {
	ways := []wayReport{{Strategy: "list", Streams: 2, Replay: "graph", Threads: 1}}
	for want, r := range map[string]learnReport{
		"learned earlier: list on 2 streams, as a graph":                                 {From: "cache", Tried: 1, Ways: ways},
		"learned earlier: list on 2 streams, as a graph is the best of 3 ways to replay": {From: "cache", Tried: 3, Ways: ways},
		"learned: list on 2 streams, as a graph is the best of 3 ways to replay":         {From: "replays", Tried: 3, Ways: ways},
		"learned: how long 1 node takes, from 6 replays":                                 {Measured: 1, Replays: 6},
		"learned earlier: how long 4 nodes take":                                         {Known: 4},
		"learned earlier: list on 2 streams, as a graph is the best of 3 ways to replay; replays take 158 us, 131 us when this plan was chosen; " +
			"if the next run differs too, plans are compared again": {From: "cache", Tried: 3, Ways: ways, drift: drift{runs: 1, us: 158.1, then: 131.2}},
		"learned earlier: list on 2 streams, as a graph; replays take 1.5 ms, 131 us when this plan was chosen; " +
			"the run before differed too, so the next one compares plans again": {From: "cache", Tried: 1, Ways: ways, drift: drift{runs: 2, again: true, us: 1500, then: 131.2}},
	} {
		require.Equal(t, want, r.text())
	}
}
