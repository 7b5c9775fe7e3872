// Tests of the command line that bench ends with: it runs the row that it names.

package measuring

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cmd/dagrun/internal/cli"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/flags"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/pictures"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/runs"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/session"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/runtime"
)

// commandsTo are the commands with an output.
func commandsTo(stdout io.Writer) *Commands {
	console := cli.New(strings.NewReader(""), stdout, io.Discard)
	return &Commands{Pictures: &pictures.Pictures{Runs: &runs.Runs{Ranks: &session.Ranks{Session: &session.Session{Console: console}}}}}
}

func TestBestCommandLine(t *testing.T) {
	for _, c := range []struct {
		asked, strategy, replay string // of bench, and of the best row
		control                 bool   // the pipeline has loops or branches
		want                    string
	}{
		{flags.GraphAuto, "list", "streams", false, "dagrun p.yaml --strategy list --streams 2"},
		{flags.GraphAuto, "list", "graph", false, "dagrun p.yaml --strategy list --streams 2 --graph"},
		{flags.GraphAuto, "list", "streams", true, "dagrun p.yaml --strategy list --streams 2 --graph off"},
		{flags.GraphAuto, "list", "graph", true, "dagrun p.yaml --strategy list --streams 2 --graph"},
		{flags.GraphOff, "list", "streams", true, "dagrun p.yaml --strategy list --streams 2 --graph off"},
		{flags.GraphBuilt, "list", "graph", true, "dagrun p.yaml --strategy list --streams 2 --graph built"},
		{flags.GraphAuto, "auto", "streams", true, "dagrun p.yaml --streams 2"},
	} {
		a := commandsTo(io.Discard)
		a.Flags = &flags.Values{Replay: c.asked, Strategy: flags.AllStrategies, MaxEdges: dag.MaxEdges}
		require.Equal(t, c.want, a.benchLine("p.yaml", &benchRow{Strategy: c.strategy, Asked: 2, Replay: c.replay}, c.control), "%+v", c)
	}
}

// A winner is named only if it is faster by more than replays differ.
func TestNoWinnerWithinTheSpread(t *testing.T) {
	row := func(wall, spread float64) benchRow {
		return benchRow{Strategy: "list", Replay: "streams", Timing: &runtime.Timing{Wall: wall, Device: runtime.Series{Spread: spread}}}
	}
	for _, c := range []struct {
		rows  []benchRow
		stars []string
		last  string
	}{
		{[]benchRow{row(100, 5), row(106, 1), row(103, 2)}, []string{"=", "", "="}, "\nno winner: 2 rows (=) differ by no more than their replays do; one of them: dagrun p.yaml\n"},
		{[]benchRow{row(100, 0.5), row(106, 1), row(103, 2)}, []string{"*", "", ""}, "\nbest: dagrun p.yaml\n"},
		{[]benchRow{row(100, 0.5), row(106, 7), row(100, 0)}, []string{"=", "=", "="}, "\nno winner: 3 rows (=) differ by no more than their replays do; one of them: dagrun p.yaml\n"},
	} {
		var out bytes.Buffer
		a := commandsTo(&out)
		a.Flags = &flags.Values{Quiet: true}
		r := &BenchReport{Rows: c.rows, BestLine: "dagrun p.yaml", Tied: tiedWith(0, len(c.rows), func(k int) *benchRow { return &c.rows[k] })}
		require.NoError(t, a.printBench(r, true))
		lines := strings.Split(out.String(), "\n")
		for k, star := range c.stars {
			require.Equal(t, star, strings.TrimSpace(lines[k+1][:2]), out.String())
		}
		require.True(t, strings.HasSuffix(out.String(), c.last), out.String())
	}
}
