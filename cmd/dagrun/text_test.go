// Tests of text for people: durations, counts, quoting, sizes, tables, progress and colours.

package main

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cmd/dagrun/internal/cli"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/flags"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/runs"
	"github.com/dagrun/dagrun/dag"
)

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

func TestColoredDiagnostics(t *testing.T) {
	var b bytes.Buffer
	a := newApp(strings.NewReader(""), &b, &b)
	a.Flags = &flags.Values{Color: "always"}
	require.NoError(t, a.PrintDiagnostics(&dag.Diagnostics{List: []dag.Diagnostic{
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
	require.Equal(t, cli.StatusInternal, a.execute(t.Context(), []string{"kernels"}))
	require.Equal(t, "dagrun: cannot write the output: disk full\n", messages.String())
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errors.New("disk full") }

// A bug in dagrun itself gives the exit status of an internal error.
func TestPanicIsAnInternalError(t *testing.T) {
	_, err := guarded(t.Context(), &cobra.Command{Use: "broken", RunE: func(*cobra.Command, []string) error { panic("index out of range") }, SilenceErrors: true, SilenceUsage: true})
	require.Equal(t, cli.StatusInternal, cli.StatusOf(err))
	require.ErrorContains(t, err, "internal error, please report it: index out of range")
}

func TestLearnedText(t *testing.T) {
	ways := []runs.WayReport{{Strategy: "list", Streams: 2, Replay: "graph", Threads: 1}}
	for want, r := range map[string]runs.LearnReport{
		"learned earlier: list on 2 streams, as a graph":                                 {From: "cache", Tried: 1, Ways: ways},
		"learned earlier: list on 2 streams, as a graph is the best of 3 ways to replay": {From: "cache", Tried: 3, Ways: ways},
		"learned: list on 2 streams, as a graph is the best of 3 ways to replay":         {From: "replays", Tried: 3, Ways: ways},
		"learned: how long 1 node takes, from 6 replays":                                 {Measured: 1, Replays: 6},
		"learned earlier: how long 4 nodes take":                                         {Known: 4},
		"learned earlier: list on 2 streams, as a graph is the best of 3 ways to replay; replays take 158 us, 131 us when this plan was chosen; " +
			"if the next run differs too, plans are compared again": {From: "cache", Tried: 3, Ways: ways, Drift: runs.Drift{Runs: 1, Us: 158.1, Then: 131.2}},
		"learned earlier: list on 2 streams, as a graph; replays take 1.5 ms, 131 us when this plan was chosen; " +
			"the run before differed too, so the next one compares plans again": {From: "cache", Tried: 1, Ways: ways, Drift: runs.Drift{Runs: 2, Again: true, Us: 1500, Then: 131.2}},
	} {
		require.Equal(t, want, r.Text())
	}
}
