// Tests of what nodes do with the parts of buffers that come and go together.

package placement

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
)

// touchesOf shows what each node does: with which bytes of which buffer, and how.
func touchesOf(p *SpillProblem) string {
	var text strings.Builder
	for i := range p.touches {
		fmt.Fprint(&text, p.Graph.Nodes[i].Name)
		for _, t := range p.touches[i] {
			u := &p.units[t.unit]
			fmt.Fprintf(&text, ", %s", p.Graph.RangeText(dag.Range{Buffer: u.buffer, Lo: u.lo, Hi: u.hi}))
			for _, does := range []struct {
				so   bool
				what string
			}{{t.reads, "reads"}, {t.writes, "writes"}, {t.all, "all"}, {t.copied, "copied"}, {t.across, "across"}} {
				if does.so {
					fmt.Fprint(&text, " ", does.what)
				}
			}
		}
		fmt.Fprintln(&text)
	}
	return text.String()
}

// Kernels cut buffers into units that none uses across. What only copies use is cut as they are.
func TestWhatNodesDoWithUnits(t *testing.T) {
	for _, c := range []struct {
		name    string
		declare func(b *dag.Builder, h, x dag.BufferID) // x and h have 4 times the bytes that pieces are aligned to
		want    string
	}{
		{"kernels", func(b *dag.Builder, _, x dag.BufferID) {
			b.Task("write", b.Slice(x, 0, grain).Out())
			b.Task("some", b.Slice(x, 0, 8).Out())
			b.Task("change", b.Slice(x, 0, grain).InOut())
			b.Task("two", b.Slice(x, grain, 2*grain).Out(), b.Slice(x, grain, grain+8).In())
			b.Task("read", b.Slice(x, 2*grain, 4*grain).In())
			b.Task("part", b.Slice(x, 3*grain, 4*grain).In(), b.Slice(x, 2*grain, 3*grain).Out())
		}, `
write, x(0..256) writes all
some, x(0..256) writes
change, x(0..256) reads writes
two, x(256..512) reads writes
read, x(512..1024) reads
part, x(512..1024) reads writes
`},
		{"copies", func(b *dag.Builder, h, x dag.BufferID) {
			b.Copy("up", b.Whole(x), b.Whole(h))
			b.Task("left", b.Slice(x, 0, 2*grain).InOut())
			b.Task("right", b.Slice(x, 2*grain, 3*grain).InOut())
			b.Copy("down", b.Slice(h, 0, grain), b.Slice(x, 0, grain))
			b.Copy("over", b.Slice(x, 8, 8+2*grain), b.Slice(h, 0, 2*grain))
		}, `
up, x(0..512) writes all copied across, x(512..768) writes all copied across
left, x(0..512) reads writes
right, x(512..768) reads writes
down, x(0..512) reads copied
over, x(0..512) writes copied across, x(512..768) writes copied across
`},
		{"copies of what no kernel uses", func(b *dag.Builder, h, x dag.BufferID) {
			b.Copy("up", b.Slice(x, 0, grain), b.Slice(h, 0, grain))
			b.Copy("up too", b.Slice(x, grain, 2*grain), b.Slice(h, 0, grain))
			b.Copy("down", b.Slice(h, 0, grain), b.Slice(x, 0, grain))
		}, `
up, x(0..256) writes all copied
up too, x(256..512) writes all copied
down, x(0..256) reads copied
`},
		{"loops", func(b *dag.Builder, _, x dag.BufferID) {
			b.Repeat("writes", dag.Loop{Times: 2}, func() {
				b.Task("first", b.Slice(x, 0, grain).Out())
				b.Task("then", b.Slice(x, 0, grain).InOut())
			})
			b.Repeat("changes", dag.Loop{Times: 2}, func() { b.Task("change", b.Slice(x, 0, grain).InOut()) })
			b.Repeat("some", dag.Loop{Times: 2}, func() { b.Task("a", b.Slice(x, 0, 8).Out()) })
			b.Repeat("rest", dag.Loop{Times: 2}, func() { b.Task("b", b.Slice(x, 8, grain).Out()) })
			b.If("branch", "x(256..257) < 3", func() { b.Task("perhaps", b.Slice(x, 2*grain, 3*grain).Out()) }, nil)
		}, `
writes, x(0..256) writes all
changes, x(0..256) reads writes
some, x(0..256) writes
rest, x(0..256) writes
branch, x(256..512) reads, x(512..768) reads writes
`},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := dag.New("touches")
			h, x := b.Host("h", dag.U8, 4*grain), b.Device("x", dag.U8, 4*grain)
			c.declare(b, h, x)
			g, err := b.Graph()
			require.NoError(t, err)
			p, err := NewSpillProblem(g, 8*grain, nil, nil)
			require.NoError(t, err)
			require.Equal(t, c.want, "\n"+touchesOf(p))
		})
	}
}

// What a node uses at once has to be there, however little is left on the device besides. Copies can use the home instead, and what kernels of other
// devices reach is always there.
func TestTheNodeThatNeedsMostIsNamed(t *testing.T) {
	for _, c := range []struct {
		name    string
		declare func(b *dag.Builder, h dag.BufferID, x []dag.BufferID) // x are buffers of 256 bytes and more, each 256 more than the last
		least   int64
		refused string // with 255 bytes less
	}{
		{"nothing on the device", func(b *dag.Builder, h dag.BufferID, x []dag.BufferID) {
			b.Copy("up", b.Whole(x[0]), b.Slice(h, 0, grain))
		}, 0, ""},
		{"the larger of two", func(b *dag.Builder, h dag.BufferID, x []dag.BufferID) {
			b.Task("small", b.InOut(x[0]), b.In(x[1]))
			b.Task("large", b.In(x[0]), b.InOut(x[2]))
			b.Task("as large", b.In(x[3]))
			b.Copy("up", b.Whole(x[5]), b.Whole(h))
		}, 1024, `"large" alone uses 1 KiB of device 0 at once, 255 bytes more than the 769 bytes that it may use: x2 (768 bytes), x0 (256 bytes); `},
		{"on the device that has most", func(b *dag.Builder, h dag.BufferID, x []dag.BufferID) {
			b.OnDevice(x[2], 1)
			b.Task("both", b.InOut(x[0]), b.InOut(x[1]), b.In(x[2]), b.In(x[3]))
			b.Task("one", b.In(x[2]))
		}, 1792, `"both" alone uses 1.75 KiB of device 0 at once, 255 bytes more than the 1.5 KiB that it may use: x3 (1 KiB), x1 (512 bytes), x0 (256 bytes); `},
		{"beside what others reach", func(b *dag.Builder, h dag.BufferID, x []dag.BufferID) {
			b.Node(dag.Node{Name: "peer", Kind: dag.Task, Device: 1, Peer: true}, b.In(x[3]))
			b.Task("one", b.InOut(x[0]), b.In(x[3]))
		}, 1280, `"one" alone uses 1.25 KiB of device 0 at once, 255 bytes more than the 1 KiB that it may use: x0 (256 bytes), ` +
			`besides 1 KiB that kernels of other devices reach; `},
		{"many parts", func(b *dag.Builder, h dag.BufferID, x []dag.BufferID) {
			b.Task("all", b.In(x[0]), b.In(x[1]), b.In(x[2]), b.In(x[3]), b.In(x[4]), b.In(x[5]), b.In(x[6]), b.In(x[7]), b.In(x[8]), b.In(x[9]))
		}, 14080, `"all" alone uses 13.75 KiB of device 0 at once, 255 bytes more than the 13.5 KiB that it may use: ` +
			`x9 (2.5 KiB), x8 (2.25 KiB), x7 (2 KiB), x6 (1.75 KiB), x5 (1.5 KiB), x4 (1.25 KiB), x3 (1 KiB), x2 (768 bytes), 2 more; `},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := dag.New("largest")
			h := b.Host("h", dag.U8, 6*grain)
			var x []dag.BufferID
			for k := range int64(10) {
				x = append(x, b.Device(fmt.Sprint("x", k), dag.U8, grain*(k+1)))
			}
			c.declare(b, h, x)
			g, err := b.Graph()
			require.NoError(t, err)
			p, err := NewSpillProblem(g, c.least, nil, nil)
			require.NoError(t, err)
			require.Equal(t, c.least, p.Least())
			require.NoError(t, p.tooLarge())
			if c.refused == "" {
				return
			}
			p.Limit = c.least - 255
			err = p.tooLarge()
			require.ErrorIs(t, err, ErrCannotSpill)
			require.EqualError(t, err, "the pipeline cannot be spilled to host memory: "+c.refused+"let it work on smaller slices")
		})
	}
}

// A unit at the end of a buffer may be shorter than what pieces are aligned to.
func TestCopiesUseTheUnitOfALastByte(t *testing.T) {
	b := dag.New("last")
	x := b.Device("x", dag.U8, grain+1)
	b.Task("use", b.Slice(x, grain, grain+1).InOut())
	b.Copy("down", b.Whole(b.Host("h", dag.U8, 1)), b.Slice(x, grain, grain+1))
	g, err := b.Graph()
	require.NoError(t, err)
	p, err := NewSpillProblem(g, 8*grain, nil, nil)
	require.NoError(t, err)
	require.Len(t, p.units, 1)
	require.Equal(t, "use, x(256..257) reads writes\ndown, x(256..257) reads copied\n", touchesOf(p))
}
