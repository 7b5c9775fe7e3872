// Plans over several devices: every picture shows the streams of a device together.

package picture

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner"
)

// onDevices has tasks on several devices, whose streams the plan lists in turn: the first stream of each device, then the second.
func onDevices(t testing.TB, devices, streams int) *Schedule {
	b := dag.New("spread")
	var tasks []dag.NodeID
	for s := range streams {
		for d := range devices {
			x := b.Device(fmt.Sprintf("x%d_%d", d, s), dag.F32, 4)
			b.OnDevice(x, int32(d))
			task := b.Task(fmt.Sprintf("work.%d.%d", d, s), b.Out(x))
			b.At(task).Device = int32(d)
			b.Cost(task, float64(10*(1+d+s)))
			b.Stream(task, int32(s*devices+d))
			tasks = append(tasks, task)
		}
	}
	b.After(b.Task("end"), tasks...)
	g, err := b.Graph()
	require.NoError(t, err)
	plan, err := planner.New(context.Background(), g, planner.Options{Strategy: "list", Machine: planner.Unit()})
	require.NoError(t, err)
	timeline, err := planner.Simulate(g, plan, planner.Unit(), nil)
	require.NoError(t, err)
	s, err := New(g, plan, timeline)
	require.NoError(t, err)
	return s
}

func TestGanttOfDevices(t *testing.T) {
	s := onDevices(t, 2, 2)
	var out bytes.Buffer
	require.NoError(t, s.WriteGantt(&out, GanttOptions{Width: 50, ASCII: true}))
	require.Equal(t, `device 0
stream 0  |work.0.0----..........................#
stream 2  |work.0.1-----------------..............
device 1
stream 1  |work.1.0-----------------..............
stream 3  |work.1.1##############################.
          0 us                      20 us
          | start of a node   # on the critical path
`, out.String())

	// Where there is no room for all streams, every device keeps some.
	out.Reset()
	require.NoError(t, onDevices(t, 3, 4).WriteGantt(&out, GanttOptions{Width: 50, ASCII: true, Rows: 5}))
	names := regexp.MustCompile(`(?m)^(device \d|stream \d+)`).FindAllString(out.String(), -1)
	require.Equal(t, []string{"device 0", "stream 0", "stream 3", "device 1", "stream 1", "stream 4", "device 2", "stream 2"}, names)
	require.Contains(t, out.String(), "and 7 more streams")
}

func TestSVGOfDevices(t *testing.T) {
	s := onDevices(t, 3, 2)
	for _, axis := range []Axis{Time, Level} {
		source := svg(t, SheetOptions{Axis: axis}, s)
		boxes, count := read(t, source)
		checkBoxes(t, boxes)
		require.Equal(t, 3, count["line.band"])
		top := map[string]float64{}
		for _, b := range boxes {
			top[b.row] = b.y
		}
		for k, row := range []string{"0", "3", "1", "4", "2"} {
			require.Less(t, top[row], top[[]string{"3", "1", "4", "2", "5"}[k]], "stream %s is above the next one of its device, or of the next device", row)
		}
		titles := regexp.MustCompile(`>device \d<`).FindAllString(source, -1)
		require.Equal(t, []string{">device 0<", ">device 1<", ">device 2<"}, titles)
	}
	source := svg(t, SheetOptions{}, schedule(t, pipeline(t, 3, plainName), "list"))
	require.NotContains(t, source, "device 0<")
}

func TestMermaidOfDevices(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, onDevices(t, 2, 2).WriteMermaid(&b))
	checkMermaid(t, b.String())
	require.Equal(t, []string{`d0 ["device 0"]`, `s0 ["stream 0"]`, `s2 ["stream 2"]`, `d1 ["device 1"]`, `s1 ["stream 1"]`, `s3 ["stream 3"]`}, boxesOf(b.String()))
}

// boxesOf lists the boxes of a Mermaid chart.
func boxesOf(text string) []string {
	var all []string
	for _, line := range strings.Split(text, "\n") {
		if _, box, ok := strings.Cut(line, "subgraph "); ok {
			all = append(all, box)
		}
	}
	return all
}

func TestPageSaysOnWhichDeviceAStreamIs(t *testing.T) {
	d := pageOf(t, writePage(t, onDevices(t, 2, 2), nil))
	require.EqualValues(t, []int32{0, 1, 0, 1}, d.Plans[0].Band)
	require.Equal(t, "stream 3, device 1", d.Plans[0].Streams[3])
}
