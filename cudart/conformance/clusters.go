// Launches in clusters: blocks that read the shared memory of the others of their cluster.

package conformance

import (
	"context"
	"slices"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/kernels/launch"
)

// turned(p, q) gives word i of a cluster's part of q the word of p that is as far from the part's other end; pairs does so with clusters
// that its code fixes.
const clusterPTX = `.version 7.8
.target sm_90
.address_size 64
.visible .entry turned(.param .u64 p, .param .u64 q)` + clusterBody + `.visible .entry pairs(.param .u64 p, .param .u64 q) .reqnctapercluster 2, 1, 1` + clusterBody

const clusterBody = `
{
	.reg .u32 %r<12>;
	.reg .u64 %rd<6>;
	.shared .align 4 .b8 cells[128];
	ld.param.u64 %rd1, [p];
	ld.param.u64 %rd2, [q];
	mov.u32 %r1, %ctaid.x;
	mov.u32 %r2, %tid.x;
	shl.b32 %r3, %r1, 5;
	add.u32 %r3, %r3, %r2;
	mul.wide.u32 %rd3, %r3, 4;
	add.u64 %rd1, %rd1, %rd3;
	add.u64 %rd2, %rd2, %rd3;
	ld.global.u32 %r4, [%rd1];
	mov.u32 %r5, cells;
	shl.b32 %r6, %r2, 2;
	add.u32 %r7, %r5, %r6;
	st.shared.u32 [%r7], %r4;
	barrier.cluster.arrive.aligned;
	barrier.cluster.wait.aligned;
	mov.u32 %r8, %cluster_nctarank;
	mov.u32 %r9, %cluster_ctarank;
	sub.u32 %r8, %r8, %r9;
	sub.u32 %r8, %r8, 1;
	mapa.shared::cluster.u32 %r10, %r5, %r8;
	sub.u32 %r10, %r10, %r6;
	ld.shared::cluster.u32 %r11, [%r10+124];
	st.global.u32 [%rd2], %r11;
	barrier.cluster.arrive.aligned;
	barrier.cluster.wait.aligned;
	ret;
}
`

// turn turns each part of so many blocks of 32 words around.
func turn(list []uint32, blocks int) []uint32 {
	list = slices.Clone(list)
	for part := range slices.Chunk(list, 32*blocks) {
		slices.Reverse(part)
	}
	return list
}

func clusters(r *rig) {
	devices := r.p.Devices()
	m, err := r.p.Load(context.Background(), 0, &launch.Module{Name: "clusters", Kind: launch.PTX, Code: []byte(clusterPTX)})
	if major := devices[0].Capability[0]; major > 0 && major < 9 {
		require.Error(r, err, "code for devices with clusters")
		return
	}
	require.NoError(r, err)
	defer func() { require.NoError(r, m.Close()) }()
	launch := func(entry string, to, from cudart.Ptr, blocks, cluster uint32) cudart.Command {
		k, err := m.Kernel(entry)
		require.NoError(r, err)
		c := cudart.Command{Kind: cudart.LaunchKernel, Label: entry, Node: -1, Stream: r.s[0], Kernel: k, Grid: [3]uint32{blocks, 1, 1}, Block: [3]uint32{32, 1, 1},
			Args: []cudart.Value{{Pointer: true, Ptr: from, Bytes: bytes}, {Pointer: true, Ptr: to, Bytes: bytes}}}
		if cluster > 0 {
			c.Cluster = [3]uint32{cluster, 1, 1}
		}
		return c
	}
	for i := range r.host {
		r.host[i] = uint32(i) * 2654435761
	}
	commands := []cudart.Command{r.up(0, r.d, r.h), launch("turned", r.e, r.d, 32, 8), launch("pairs", r.d, r.e, 32, 0), launch("turned", r.e, r.d, 32, 0),
		launch("pairs", r.d, r.e, 32, 2), launch("turned", r.e, r.d, 32, 4), r.down(0, r.g, r.e)}
	want := r.host
	for _, blocks := range []int{8, 2, 1, 2, 4} {
		want = turn(want, blocks)
	}
	r.thrice(commands, func() { clear(r.back) }, func() { require.Equal(r, want, r.back) })

	// The grids of lists and of built graphs may change, to nothing and back.
	alone := []cudart.Command{r.up(0, r.d, r.h), launch("turned", r.d, r.d, 32, 8), r.down(0, r.g, r.d)}
	l := r.list(r.s[0], alone...)
	g := r.graph(r.p.BuildGraph(alone, [][]int32{nil, {0}, {1}}, cudart.GraphOptions{Origin: r.s[0]}))
	for _, blocks := range []uint32{32, 0, 16, 8, 32} {
		want := slices.Concat(turn(r.host[:32*blocks], 8), r.host[32*blocks:])
		for _, way := range []struct {
			change func(int, [3]uint32, []cudart.Value) error
			run    func() error
		}{{l.SetArgs, l.Submit}, {g.SetArgs, func() error { return g.Launch(r.s[0]) }}} {
			require.NoError(r, way.change(1, [3]uint32{blocks, 1, 1}, alone[1].Args))
			require.NoError(r, way.run())
			r.sync()
			require.Equal(r, want, r.back, "%d blocks", blocks)
		}
	}
	for _, bad := range []cudart.Command{launch("turned", r.e, r.d, 30, 4), launch("turned", r.e, r.d, 32, 16)} {
		require.ErrorContains(r, r.try(bad), "turned")
		_, err := r.p.BuildGraph([]cudart.Command{bad}, [][]int32{nil}, cudart.GraphOptions{Origin: r.s[0]})
		require.ErrorContains(r, err, "turned")
	}
}
