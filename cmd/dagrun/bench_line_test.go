// Tests of the command line that bench ends with: it runs the row that it names.

package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
)

func TestBestCommandLine(t *testing.T) {
	for _, c := range []struct {
		asked, strategy, replay string // of bench, and of the best row
		control                 bool   // the pipeline has loops or branches
		want                    string
	}{
		{graphAuto, "list", "streams", false, "dagrun p.yaml --strategy list --streams 2"},
		{graphAuto, "list", "graph", false, "dagrun p.yaml --strategy list --streams 2 --graph"},
		{graphAuto, "list", "streams", true, "dagrun p.yaml --strategy list --streams 2 --graph off"},
		{graphAuto, "list", "graph", true, "dagrun p.yaml --strategy list --streams 2 --graph"},
		{graphOff, "list", "streams", true, "dagrun p.yaml --strategy list --streams 2 --graph off"},
		{graphBuilt, "list", "graph", true, "dagrun p.yaml --strategy list --streams 2 --graph built"},
		{graphAuto, "auto", "streams", true, "dagrun p.yaml --streams 2"},
	} {
		a := newApp(bytes.NewReader(nil), &bytes.Buffer{}, &bytes.Buffer{})
		a.flags = &flags{replay: c.asked, strategy: allStrategies, maxEdges: dag.MaxEdges}
		require.Equal(t, c.want, a.benchLine("p.yaml", &benchRow{Strategy: c.strategy, Asked: 2, Replay: c.replay}, c.control), "%+v", c)
	}
}
