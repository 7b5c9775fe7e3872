// Tests of the graphs that placements make, in full.

package placement

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
)

// placedInFull makes the graph of a placement.
func placedInFull(t *testing.T, b *dag.Builder, devices int, at ...int32) string {
	t.Helper()
	g, err := b.Graph()
	require.NoError(t, err)
	p, err := NewProblem(g, devices, nil)
	require.NoError(t, err)
	s, err := Transform(p, at)
	require.NoError(t, err)
	return "\n" + inFull(s, g)
}

// A device has memory for the rows that its nodes use, and what is saved a place that has all of it. Copies are as urgent as who needs them.
func TestDevicesHaveWhatTheirNodesUse(t *testing.T) {
	b := dag.New("parts")
	x, y := b.Device("x", dag.U8, 4, grain), b.Device("y", dag.F32, 64)
	b.Save(x, "x.npy")
	b.Task("top", b.Slice(x, 0, 2).Out())
	b.Task("bottom", b.Slice(x, 2, 4).Out(), b.Out(y))
	b.Priority(b.Task("middle", b.Slice(x, 1, 3).In(), b.In(y)), dag.High)
	b.After(b.Task("first"), 2)
	require.Equal(t, `
x: [4 256] on device 0, save
x(2..4)@1: [2 256] on device 1, x from 512
x(1..3)@2: [2 256] on device 2, x from 256
y: [64] on device 1
y@2: [64] on device 2, y from 0
- top, out x(0..2)
- bottom on 1, out x(2..4)@1, out y
- x(1..2) 0->2, high, in x(1..2), out x(1..3)@2(0..1)
- x(2..3) 1->2 on 1, high, in x(2..4)@1(0..1), out x(1..3)@2(1..2)
- y 1->2 on 1, high, in y, out y@2
- middle on 2, high, in x(1..3)@2, in y@2
- first on 1, after middle
- x(2..4) 1->0 on 1, in x(2..4)@1, out x(2..4)
`, placedInFull(t, b, 3, 0, 1, 2, 1))
}

// What nobody writes is never copied: every device that reads it begins with all of it. What somebody writes has one place.
func TestConstantsAreOnEveryDevice(t *testing.T) {
	b := dag.New("constants")
	x, y := b.Device("x", dag.U8, 2*grain), b.Device("y", dag.U8, grain)
	b.Init(x, dag.Init{Kind: dag.InitRamp})
	b.Init(y, dag.Init{Kind: dag.InitRamp})
	b.Task("a", b.Slice(x, 0, grain).In())
	b.Task("b", b.Slice(x, grain, 2*grain).In(), b.In(y))
	b.Task("change", b.InOut(y))
	require.Equal(t, `
x: [512] on device 0, init
x@1: [512] on device 1, x from 0, init
y: [256] on device 0, init
y@1: [256] on device 1, y from 0
- a on 1, in x@1(0..256)
- b, in x(256..512), in y
- y 0->1, in y, out y@1
- change on 1, inout y@1
- y 1->0 on 1, in y@1, out y
`, placedInFull(t, b, 2, 1, 0, 1))
}

// A copy runs on a device that has its source or its destination, and reads where the source is. Host memory is used as it is.
func TestCopiesOfThePipelineAreWhereTheirDataIs(t *testing.T) {
	b := dag.New("copies")
	h, x, y := b.Host("h", dag.U8, grain), b.Device("x", dag.U8, grain), b.Device("y", dag.U8, grain)
	b.Copy("up", b.Whole(x), b.Whole(h))
	b.Copy("across", b.Whole(y), b.Whole(x))
	b.Copy("down", b.Whole(h), b.Whole(y))
	b.Copy("within", b.Whole(b.Host("i", dag.U8, grain)), b.Whole(h))
	b.Memset("fill", b.Whole(x), 0)
	b.HostFunction("host", "f", b.Whole(h).In())
	require.Equal(t, `
h: [256] on host
x: [256] on device 1
y: [256] on device 0
i: [256] on host
- up on 1, in h, out x
- across on 1, in x, out y
- down, in y, out h
- within, in h, out i
- fill on 1, out x
- host, fixed, in h
`, placedInFull(t, b, 2, 1, 0, 1, 0, 1, 0))
}

// What a loop only reads is brought before it. What it changes is, before and after each pass, where it is changed last, and what is tested also where
// that happens.
func TestLoopsBeginAndEndWithWhatTheyChangeInOnePlace(t *testing.T) {
	b := dag.New("loops")
	x, y, z := b.Device("x", dag.U8, grain), b.Device("y", dag.U8, grain), b.Device("z", dag.U8, grain)
	b.Task("make", b.Out(x), b.Out(y), b.Out(z))
	b.Repeat("loop", dag.Loop{While: "x(0..1) < 3", Most: 4}, func() {
		b.Task("read", b.In(y), b.InOut(x))
		b.Task("change", b.InOut(x), b.In(z))
	})
	b.If("if", "z(0..1) < 3", func() { b.Task("yes", b.InOut(x)) }, func() { b.Task("no", b.Out(x)) })
	b.Task("end", b.In(x))
	require.Equal(t, `
x: [256] on device 0
x@1: [256] on device 1, x from 0
y: [256] on device 0
z: [256] on device 0
z@1: [256] on device 1, z from 0
- make, out x, out y, out z
- x 0->1, in x, out x@1
- z 0->1, in z, out z@1
- loop:
-   x 1->0 on 1, in x@1, out x
-   read, in y, inout x
-   x 0->1 #2, in x, out x@1
-   change on 1, inout x@1, in z@1
-   x(0..1) 1->0 on 1, in x@1(0..1), out x(0..1)
- if:
-   yes on 1, inout x@1
-   no, out x
-   x 0->1 #3, in x, out x@1
- end on 1, in x@1
`, placedInFull(t, b, 2, 0, 0, 0, 1, 0, 1, 1, 0))
}
