// Tests of where buffers lie that launches read as textures.

package planner

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/internal/plantest"
	"github.com/dagrun/dagrun/planner/plan"
)

// fetch is a kernel that reads a texture.
type fetch struct{}

func (fetch) Entry() string { return "fetch" }
func (fetch) Params() []dag.KernelParam {
	return []dag.KernelParam{{Name: "image", Texture: true, Size: 8}}
}
func (fetch) Describe([]dag.Arg) (dag.LaunchInfo, error) {
	return dag.LaunchInfo{Extents: []int64{-1}}, nil
}

// textured makes launches of some nodes, which read a whole buffer as a texture.
func textured(t *rapid.T, g *dag.Graph) *dag.Graph {
	p := g.Pipeline
	for i := range p.Nodes {
		for _, a := range g.Accesses(dag.NodeID(i)) {
			b := &p.Buffers[a.Buffer]
			if a.Mode != dag.Read || !b.InArena() || b.Bytes == 0 || b.DType != dag.U8 && b.DType != dag.F32 || !rapid.Bool().Draw(t, "texture") {
				continue
			}
			p.Nodes[i].Kind, p.Nodes[i].Copy, p.Nodes[i].Set = dag.Kernel, nil, nil
			p.Nodes[i].Launch = &dag.Launch{Name: "fetch", Module: -1, Kernel: fetch{}, Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{1, 1, 1}, Args: []dag.Arg{{IsBuffer: true, Mode: dag.Read, DType: b.DType,
				Range: dag.Range{Buffer: a.Buffer, Hi: b.Bytes}, Texture: &dag.Texture{Channels: 1, Width: b.Bytes / b.DType.Size()}}}}
			break
		}
	}
	made, err := p.Graph()
	require.NoError(t, err)
	return made
}

func TestTexturesLieAligned(t *testing.T) {
	moved, shared := false, false
	rapid.Check(t, func(t *rapid.T) {
		g := textured(t, plantest.DrawGraph(t, 16, false))
		is := g.Textured()
		p := plantest.DrawDullPlan(t, g, 4)
		require.NoError(t, LayoutMemory(context.Background(), g, p, Options{}))
		require.NoError(t, Verify(g, p))
		require.LessOrEqual(t, p.Stats.PeakDeviceBytes, p.Stats.SumDeviceBytes)
		shared = shared || is != nil && p.Stats.PeakDeviceBytes < p.Stats.SumDeviceBytes
		for k := range p.Memory {
			m := &p.Memory[k]
			if is == nil || !is[m.Buffer] {
				continue
			}
			require.Zero(t, m.Offset%plan.TextureAlign)
			m.Offset += plan.ArenaAlign
			err := Verify(g, p)
			require.ErrorContains(t, err, "which is not a multiple of 512, as a texture must be")
			m.Offset -= plan.ArenaAlign
			moved = true
		}
	})
	require.True(t, moved)
	require.True(t, shared)
}
