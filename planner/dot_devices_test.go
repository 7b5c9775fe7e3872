// Tests of the DOT form of plans over several devices: the streams of a device are in one cluster.

package planner

import (
	"fmt"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/plan"
)

func TestDOTOfDevices(t *testing.T) {
	b := dag.New("devices")
	for k := range 4 { // streams of devices 0, 1, 0 and 1
		x := b.Device(fmt.Sprintf("x%d", k), dag.F32, 4)
		b.OnDevice(x, int32(k%2))
		b.Stream(b.Memset(fmt.Sprintf("set%d", k), b.Whole(x), 1), int32(k))
	}
	g, err := b.Graph()
	require.NoError(t, err)
	p := planned(t, g, Options{Strategy: "list", Machine: Unit()})
	text := planDOT(t, g, p)
	_, err = checkDOT(text)
	require.NoError(t, err)
	titles := regexp.MustCompile(`graph \[label="((?:device|stream) \d)"`).FindAllStringSubmatch(text, -1)
	var order []string
	for _, title := range titles {
		order = append(order, title[1])
	}
	require.Equal(t, []string{"device 0", "stream 0", "stream 2", "device 1", "stream 1", "stream 3"}, order)
	require.Regexp(t, `(?s)cluster_device_0 \{.*cluster_0 \{.*\n  \}\n  subgraph cluster_2 \{.*\n  \}\n  \}\n  subgraph cluster_device_1 \{`, text)

	require.Equal(t, []plan.Band{{Device: 0, Streams: []int32{0, 2}}, {Device: 1, Streams: []int32{1, 3}}}, p.Bands())
	require.True(t, p.Banded())
	one := planned(t, saxpyGraph(t), Options{Strategy: "serial", Machine: Unit()})
	require.False(t, one.Banded())
	require.NotContains(t, planDOT(t, saxpyGraph(t), one), "device 0")
	var none *Plan
	require.Empty(t, none.Bands())
	require.False(t, none.Banded())
	var nothing *plan.Band
	require.Empty(t, nothing.Title())
}
