// Tests of text for people: durations, quoting, tables and progress.

package cli

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cmd/dagrun/internal/flags"
	"github.com/dagrun/dagrun/dag"
)

func TestDuration(t *testing.T) {
	for us, want := range map[float64]string{0.5: "0.5 us", 3.214: "3.21 us", 47: "47 us", 1250: "1.25 ms", 12_300_000: "12.3 s", 3_600_000_000: "3600 s"} {
		require.Equal(t, want, Duration(us))
	}
}

func TestShellQuoted(t *testing.T) {
	for text, want := range map[string]string{"a/b-c.yaml": "a/b-c.yaml", "": "''", "a b": "'a b'", "it's": `'it'\''s'`, "n=1e6": "n=1e6", "$x": "'$x'"} {
		require.Equal(t, want, ShellQuoted(text))
	}
}

func TestTableAligns(t *testing.T) {
	table := NewTable("name", "us", "note")
	table.Row("a", "1.5", "x")
	table.Row("blür", "12", "")
	table.Row("c", "-", "y")
	var b bytes.Buffer
	require.NoError(t, table.Write(&b, 0))
	require.Equal(t, "name   us  note\na     1.5  x\nblür   12\nc       -  y\n", b.String())
}

func TestTableWraps(t *testing.T) {
	table := NewTable("kernel", "what it does")
	table.Row("scale", "y = a * x, element by element, of any type")
	table.Row("noop", "nothing")
	for width, want := range map[int]string{
		0:  "kernel  what it does\nscale   y = a * x, element by element, of any type\nnoop    nothing\n",
		50: "kernel  what it does\nscale   y = a * x, element by element, of any type\nnoop    nothing\n",
		35: "kernel  what it does\nscale   y = a * x, element by\n        element, of any type\nnoop    nothing\n",
		24: "kernel  what it does\nscale   y = a * x,\n        element by\n        element, of any\n        type\nnoop    nothing\n",
		20: "kernel  what it does\nscale   y = a * x, element by element, of any type\nnoop    nothing\n", // no room to wrap in
	} {
		var b bytes.Buffer
		require.NoError(t, table.Write(&b, width))
		require.Equal(t, want, b.String(), width)
	}
}

// Columns of numbers cannot be wrapped: their heads are, then the gaps shrink, and at last columns move below the others.
func TestTableOfNumbersFits(t *testing.T) {
	table := NewTable("", "strategy", "device min us", "waits", "measured/predicted")
	table.Keys = 2
	table.Row("*", "list", "12.5", "3", "1.25")
	table.Row("", "roundrobin", "100.75", "-", "0.5")
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
		require.NoError(t, table.Write(&b, width))
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
	p.Begin()
	require.Equal(t, "before anything ran", p.Where())
	p.Report("replay", 7, 9)
	require.Equal(t, "after 7 of 9 replays", p.Where())
	p.Report("check and save results", 0, 0)
	require.Equal(t, "at check and save results", p.Where())
	p.End()
	require.Empty(t, b.String())
}

func TestColoredDiagnostics(t *testing.T) {
	var b bytes.Buffer
	a := New(strings.NewReader(""), &b, &b)
	a.Flags = &flags.Values{Color: "always"}
	require.NoError(t, a.PrintDiagnostics(&dag.Diagnostics{List: []dag.Diagnostic{
		{File: "p.yaml", Pos: dag.Pos{Line: 2, Column: 3}, Message: "what is wrong", Hint: "a way out", Source: "a bad line"},
		{File: "p.yaml", Severity: dag.SeverityWarning, Message: "of no place"},
	}, More: 4}))
	require.Equal(t, "\x1b[1mp.yaml:2:3: \x1b[0m\x1b[31mwhat is wrong; a way out\x1b[0m\n  a bad line\n\x1b[31m    ^\x1b[0m\n"+
		"\x1b[33mp.yaml: warning: of no place\x1b[0m\nand 4 more\n", b.String())
}
