// Tests of which launches may begin before the one before them has ended.

package engine

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/dag"
)

// A launch may begin early if its code waits first and all that it uses is there by then: no variable that launches write, and no texture.
func TestWhichLaunchesMayBeginEarly(t *testing.T) {
	b := dag.New("early")
	x := b.Device("x", dag.U8, 64)
	constant, copied, written := b.Device("constant", dag.U8, 64), b.Device("copied", dag.U8, 64), b.Device("written", dag.U8, 64)
	b.Copy("copy", b.Whole(copied), b.Whole(x))
	b.Task("write", b.In(x), b.Out(written))
	b.Task("plain", b.InOut(x))
	b.Task("reads constants", b.In(constant), b.In(copied), b.InOut(x))
	b.Task("reads what is written", b.In(written), b.InOut(x))
	b.Task("texture", b.InOut(x))
	g, err := b.Graph()
	require.NoError(t, err)
	for _, id := range []dag.BufferID{constant, copied, written} {
		g.Buffers[id].Symbol = "m." + g.Buffers[id].Name
	}
	for i := 1; i < g.Len(); i++ {
		g.Nodes[i].Kind = dag.Kernel
	}
	g.Nodes[5].Launch = &dag.Launch{Args: []dag.Arg{{IsBuffer: true, Texture: &dag.Texture{}}}}
	program := func() *Program {
		return &Program{graph: g, overlap: true, code: []*loadedCode{{waits: []bool{true, true, true, true, true, true}}}}
	}
	p := program()
	require.Equal(t, map[dag.BufferID]bool{written: true}, p.writtenSymbols())
	may := func(change func(p *Program, c *cudart.Command), node int32) bool {
		p, c := program(), cudart.Command{Kind: cudart.LaunchKernel, Node: node}
		if change != nil {
			change(p, &c)
		}
		return p.mayBegin(&c)
	}
	require.True(t, may(nil, 2))
	require.True(t, may(nil, 3))
	require.False(t, may(nil, 1), "it writes a variable")
	require.False(t, may(nil, 4), "it reads a variable that is written")
	require.False(t, may(nil, 5), "it reads a texture")
	for why, change := range map[string]func(p *Program, c *cudart.Command){
		"launches do not overlap":    func(p *Program, _ *cudart.Command) { p.overlap = false },
		"it is no launch":            func(_ *Program, c *cudart.Command) { c.Kind = cudart.Empty },
		"it is of no node":           func(_ *Program, c *cudart.Command) { c.Node = -1 },
		"its blocks wait for others": func(_ *Program, c *cudart.Command) { c.Cooperative = true },
		"it is in clusters":          func(_ *Program, c *cudart.Command) { c.Cluster[0] = 2 },
		"its code does not wait":     func(p *Program, c *cudart.Command) { p.code[0].waits[c.Node] = false },
	} {
		require.False(t, may(change, 2), why)
	}
}
