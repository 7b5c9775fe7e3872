// Tests of the policies on graphs that are small enough to place by hand.

package placement

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/model"
)

// estimating makes an estimator in which every kernel fills its device.
func estimating(t *testing.T, b *dag.Builder, devices int, times ...float64) *estimator {
	t.Helper()
	g, err := b.Graph()
	require.NoError(t, err)
	p, err := NewProblem(g, devices, nil)
	require.NoError(t, err)
	if times == nil {
		times = make([]float64, g.Len())
	}
	e := newEstimator(p, round(), times, 1)
	for i := range times {
		e.shares[i] = 1
	}
	return e
}

// fixedTask declares a task that has to run on a device.
func fixedTask(b *dag.Builder, name string, device int32, accesses ...dag.Access) {
	b.Node(dag.Node{Name: name, Kind: dag.Task, Device: device, Fixed: true}, accesses...)
}

func TestRoundRobinDealsOutWhatIsFree(t *testing.T) {
	b := dag.New("turns")
	x := b.Device("x", dag.U8, 64)
	b.Task("a")
	fixedTask(b, "fixed", 2)
	b.Task("b")
	b.Copy("up", b.Whole(x), b.Whole(b.Host("h", dag.U8, 64)))
	b.Task("c", b.InOut(x))
	b.Copy("down", b.Whole(b.Host("i", dag.U8, 64)), b.Whole(x))
	b.Task("d")
	require.Equal(t, []int32{0, 2, 1, 2, 2, 2, 0}, roundRobin(estimating(t, b, 3)), "copies are where c is")
}

// Bytes that came for one node are there for others.
func TestMinTransferCountsWhatIsNotThere(t *testing.T) {
	b := dag.New("bytes")
	x, y, z := b.Device("x", dag.U8, 64), b.Device("y", dag.U8, 16), b.Device("z", dag.U8, 64)
	b.Task("a", b.Out(x))
	b.Task("b", b.Out(y))
	b.Task("c", b.In(x), b.In(y), b.Out(z))
	b.Task("d", b.In(y))
	b.Task("e", b.In(z))
	b.Task("f")
	e := estimating(t, b, 2, 10, 100, 10, 10, 10, 10)
	require.Equal(t, []int32{0, 1, 0, 0, 0, 0}, minTransfer(e), "y has come for c, and less has been done there")
	e.times[1] = 5
	require.Equal(t, []int32{0, 1, 0, 1, 0, 1}, minTransfer(e), "y is on both, and less has been done where it was made")

	b = dag.New("down")
	x = b.Device("x", dag.U8, 64)
	fixedTask(b, "a", 1, b.Out(x))
	b.Copy("down", b.Whole(b.Host("h", dag.U8, 64)), b.Whole(x))
	b.Task("b", b.In(x))
	require.Equal(t, []int32{1, 1, 1}, minTransfer(estimating(t, b, 2)), "the copy to the host is made where x is, and brings it to no other device")
}

// x is there for c a gap after a has ended, at 101, and elsewhere at 117: a copy of 12, a synchronization of 4 and a gap of 1.
func TestHeftWeighsCopiesAgainstWaiting(t *testing.T) {
	for _, c := range []struct {
		us float64 // of b, which comes first
		at []int32
	}{{1, []int32{0, 0, 0}}, {16, []int32{0, 0, 0}}, {17, []int32{0, 0, 1}}, {100, []int32{0, 0, 1}}} {
		b := dag.New("read")
		x := b.Device("x", dag.U8, 64)
		b.Task("a", b.Out(x))
		b.Task("b", b.In(x))
		b.Task("c", b.In(x))
		e := estimating(t, b, 2, 100, c.us, 1)
		require.Equal(t, c.at, heft(e), "b takes %g", c.us)
		e.shares[1] = 0.5
		half := heft(e)
		require.Equal(t, c.at[2] == 1 && c.us > 32, half[2] == 1, "b takes %g of half of a device", c.us)
		e.shares[1] = 0
		require.Equal(t, []int32{0, 0, 0}, heft(e), "b takes nothing of a device")
	}
}

// A device sends one piece after the other. What was sent for one node is there for others.
func TestHeftKnowsWhatDevicesSend(t *testing.T) {
	for _, c := range []struct {
		us   float64 // of b
		same bool    // d reads what c has
		at   []int32
	}{{28, false, []int32{0, 0, 1, 0}}, {29, false, []int32{0, 0, 1, 1}}, {20, true, []int32{0, 0, 1, 1}}} {
		b := dag.New("sends")
		x, y := b.Device("x", dag.U8, 64), b.Device("y", dag.U8, 64)
		b.Task("a", b.Out(x), b.Out(y))
		b.Task("b", b.In(x))
		b.Task("c", b.In(y))
		if c.same {
			b.Task("d", b.In(y))
		} else {
			b.Task("d", b.In(x))
		}
		require.Equal(t, c.at, heft(estimating(t, b, 2, 100, c.us, 3, 1)), "y is sent until 112, and x until 124; b takes %g", c.us)
	}
}

// What a replay begins with is where most of its bytes are used.
func TestHeftBeginsWhereStateIs(t *testing.T) {
	for device := range int32(2) {
		b := dag.New("state")
		x := b.Device("x", dag.U8, 64)
		b.Init(x, dag.Init{Kind: dag.InitRamp})
		b.Task("a", b.In(x))
		fixedTask(b, "b", device, b.InOut(x))
		fixedTask(b, "c", device, b.InOut(x))
		require.Equal(t, []int32{device, device, device}, heft(estimating(t, b, 2, 10, 10, 10)))
	}
}

// The most urgent node is the one with the longest path to the end, half of all data being moved on the way.
func TestUrgentNodesComeFirst(t *testing.T) {
	for _, c := range []struct {
		bytes int64
		order []int32
	}{{16 * 2, []int32{0, 1, 3, 2}}, {16 * 10, []int32{1, 0, 3, 2}}} {
		b := dag.New("urgent")
		x, y := b.Device("x", dag.U8, 16), b.Device("y", dag.U8, c.bytes)
		b.Task("a", b.Out(x))
		b.Task("b", b.Out(y))
		b.Task("read x", b.In(x))
		b.Task("read y", b.In(y))
		// a takes 13 more than b; read y takes 10 more than read x. y takes half of bytes/16 - 1 more to move than x.
		require.Equal(t, c.order, estimating(t, b, 2, 26, 13, 10, 20).order, "%d bytes", c.bytes)
	}
}

// Of many nodes that nothing waits for, the longest are the most urgent; of those that are as long, the first.
func TestLongNodesAreUrgent(t *testing.T) {
	b := dag.New("many")
	times := make([]float64, 100)
	for k := range times {
		b.Task(fmt.Sprint("n", k))
		times[k] = float64(k * 37 % 23)
	}
	order := estimating(t, b, 2, times...).order
	require.Len(t, order, len(times))
	for k, i := range order[1:] {
		before := order[k]
		require.True(t, times[before] > times[i] || times[before] == times[i] && before < i, "%d before %d", before, i)
	}
}

func TestOwnersKeepWhatTheyWrite(t *testing.T) {
	b := dag.New("tiles")
	x, y, z := b.Device("x", dag.U8, 128), b.Device("y", dag.U8, 64), b.Device("z", dag.U8, 64)
	fixed := b.Buffer(dag.Buffer{Name: "fixed", Place: dag.Device, DType: dag.U8, Shape: []int64{64}, Device: 1, Fixed: true})
	scratch := b.Buffer(dag.Buffer{Name: "scratch", Place: dag.Device, DType: dag.U8, Shape: []int64{64}, Scratch: true})
	left, right := b.Slice(x, 0, 64), b.Slice(x, 64, 128)
	b.Task("left", left.Out())
	b.Task("right", b.In(z), right.Out())
	b.Task("y", b.Out(scratch), b.Out(y))
	b.Task("z", b.Out(z))
	b.Task("left again", b.In(y), left.InOut(), right.In())
	b.Task("right again", left.In(), right.InOut())
	b.Task("fixed", b.InOut(fixed))
	b.Task("reads", b.In(y))
	require.Equal(t, []int32{0, 1, 2, 0, 0, 1, 1, 0}, owner(estimating(t, b, 3)))
}

// The longest part comes first, and goes where the least is to do. Parts with a fixed node are where that has to be.
func TestChainsAreDealtOutByTheirWork(t *testing.T) {
	b := dag.New("chains")
	x, y := b.Device("x", dag.U8, 64), b.Device("y", dag.U8, 64)
	b.Task("short")
	b.Task("a", b.Out(x))
	b.Task("long")
	b.Task("b", b.In(x))
	b.Task("c", b.Out(y))
	fixedTask(b, "d", 1, b.In(y))
	e := estimating(t, b, 3, 5, 10, 35, 15, 20, 20)
	require.Equal(t, []int32{2, 2, 0, 2, 1, 1}, chains(e), "40 on device 1, 35 on device 0, 25 and 5 on device 2")
	e.times[2] = 20
	require.Equal(t, []int32{2, 0, 2, 0, 1, 1}, chains(e), "40 on device 1, 25 on device 0, 20 and 5 on device 2")
	e.times[5] = 1
	require.Equal(t, []int32{2, 0, 2, 0, 1, 1}, chains(e), "25 on device 0, 21 on device 1, 20 and 5 on device 2")
}

// dealt shows which device each tile of a grid is on, row by row.
func dealt(at []int32, columns int) string {
	var text strings.Builder
	for i, device := range at {
		if i > 0 && i%columns == 0 {
			text.WriteByte('/')
		}
		fmt.Fprint(&text, device)
	}
	return text.String()
}

// A grid of tiles is dealt out in turn and in blocks, with the devices in a row, in a grid and in a column; also along the rows and by layers.
func TestGridsAreDealtOut(t *testing.T) {
	b := dag.New("grid")
	for i := range 4 {
		for j := range 4 {
			b.Task(fmt.Sprintf("n%d.%d", i, j), b.Out(b.Device(fmt.Sprintf("t%d.%d", i, j), dag.U8, 64)))
		}
	}
	times := make([]float64, 16)
	for i := range times {
		times[i] = 1
	}
	var got []string
	for _, at := range estimating(t, b, 4, times...).patterns() {
		got = append(got, dealt(at, 4))
	}
	require.Equal(t, []string{
		"0123/0123/0123/0123", "0123/0123/0123/0123",
		"0101/2323/0101/2323", "0011/0011/2233/2233",
		"0000/1111/2222/3333", "0000/1111/2222/3333",
		"0123/0123/0123/0123", "0000/1111/2222/3333",
	}, got)

	b = dag.New("rows of one buffer")
	x := b.Device("x", dag.U8, 6, 8)
	for i := range int64(3) {
		for j := range 2*i + 2 { // a row of the grid is two rows of the buffer
			b.Task(fmt.Sprintf("n%d.%d", i, j), b.Tile(x, 2*i, 2*i+2, j, j+1).InOut())
		}
	}
	got = nil
	for _, at := range estimating(t, b, 2).patterns() {
		got = append(got, fmt.Sprint(at[:2], at[2:6], at[6:]))
	}
	require.Equal(t, []string{
		"[0 1] [0 1 0 1] [0 1 0 1 0 1]", "[0 0] [0 0 0 1] [0 0 0 1 1 1]",
		"[0 0] [1 1 1 1] [0 0 0 0 0 0]", "[0 0] [0 0 0 0] [1 1 1 1 1 1]",
		"[0 1] [0 0 1 1] [0 0 0 1 1 1]", "[0 0] [0 0 0 0] [1 1 1 1 1 1]",
	}, got, "the last by the order of nodes, whose work is not known")
}

// Nodes of a layer are in blocks of equal work, beside what they read from, weighed by its bytes.
func TestLayersAreCutIntoBlocksOfEqualWork(t *testing.T) {
	b := dag.New("layers")
	var first, second []dag.BufferID
	for k := range 4 {
		first = append(first, b.Device(fmt.Sprint("x", k), dag.U8, 64))
		second = append(second, b.Device(fmt.Sprint("y", k), dag.U8, 16))
	}
	for k := range first {
		b.Task(fmt.Sprint("first", k), b.Out(first[k]), b.Out(second[k]))
	}
	for k := range first { // most of what they read is of the other end
		b.Task(fmt.Sprint("second", k), b.In(first[3-k]), b.In(second[k]))
	}
	e := estimating(t, b, 2, 1, 1, 1, 1, 1, 1, 1, 1)
	require.Equal(t, "0011/1100", dealt(e.layers(), 4))
	e.times[0], e.times[7] = 4, 4
	require.Equal(t, "0111/1110", dealt(e.layers(), 4), "what takes more than half is one of the halves")
	e.times[0], e.times[7], e.p.Devices = 1, 1, 4
	require.Equal(t, "0123/3210", dealt(e.layers(), 4))
}

// What brings data comes to where it is used.
func TestLayersTakeTheirCopiesAlong(t *testing.T) {
	b := dag.New("copies")
	for k := range 4 {
		x, h := b.Device(fmt.Sprint("x", k), dag.U8, 64), b.Host(fmt.Sprint("h", k), dag.U8, 64)
		b.Copy(fmt.Sprint("up", k), b.Whole(x), b.Whole(h))
		b.Task(fmt.Sprint("use", k), b.InOut(x))
		b.Copy(fmt.Sprint("down", k), b.Whole(h), b.Whole(x))
	}
	require.Equal(t, "000/000/111/111", dealt(estimating(t, b, 2, slices.Repeat([]float64{1}, 12)...).layers(), 3))
}

// On a machine with cores, kernels of all devices share them.
func TestHeftKnowsThatCoresAreShared(t *testing.T) {
	b := dag.New("cores")
	b.Task("a")
	b.Task("b")
	e := estimating(t, b, 2, 10, 10)
	require.Equal(t, []int32{0, 1}, heft(e))
	m := *e.m
	m.Cores = 4
	e.m = &m
	require.Equal(t, []int32{0, 0}, heft(e))
	unit := newEstimator(e.p, model.Unit(), e.times, 1)
	require.Equal(t, []float64{0, 0}, unit.shares, "on the machine of tests, kernels take no shares")
}
