// Structures by value with addresses in them, which move with the memory that they lead to.

package conformance

import (
	"context"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/kernels/launch"
)

// plus(k, s) adds s.add and k to every word of s.from into s.to, if that is not null. s is {u32 add; u32 *from; u32 *to}.
const structurePTX = `.version 6.0
.target sm_60
.address_size 64
.visible .entry plus(.param .u32 k, .param .align 8 .b8 s[24])
{
	.reg .pred %p;
	.reg .u32 %r<8>;
	.reg .u64 %rd<4>;
	ld.param.u32 %r1, [k];
	ld.param.u32 %r2, [s];
	ld.param.u64 %rd1, [s+8];
	ld.param.u64 %rd2, [s+16];
	setp.eq.u64 %p, %rd2, 0;
	@%p bra done;
	mov.u32 %r3, %ctaid.x;
	mov.u32 %r4, %ntid.x;
	mov.u32 %r5, %tid.x;
	mad.lo.u32 %r3, %r3, %r4, %r5;
	mul.wide.u32 %rd3, %r3, 4;
	add.u64 %rd1, %rd1, %rd3;
	add.u64 %rd2, %rd2, %rd3;
	ld.global.u32 %r6, [%rd1];
	add.u32 %r6, %r6, %r2;
	add.u32 %r6, %r6, %r1;
	st.global.u32 [%rd2], %r6;
done:
	ret;
}
`

func structures(r *rig) {
	m, err := r.p.Load(context.Background(), 0, &launch.Module{Name: "structures", Kind: launch.PTX, Code: []byte(structurePTX)})
	require.NoError(r, err)
	defer func() { require.NoError(r, m.Close()) }()
	k, err := m.Kernel("plus")
	require.NoError(r, err)
	args := func(to, from cudart.Ptr, add uint32) []cudart.Value {
		s := make([]byte, 24)
		s[0] = byte(add)
		list := []cudart.Value{scalar(1), {Struct: s}, pointer(from, bytes), pointer(to, bytes)}
		if to == 0 {
			list[3] = cudart.Value{Size: 8}
		}
		list[2].Within, list[2].Offset, list[3].Within, list[3].Offset = 2, 8, 2, 16
		return list
	}
	launch := func(to, from cudart.Ptr, add uint32) cudart.Command {
		return cudart.Command{Kind: cudart.LaunchKernel, Label: "plus", Node: -1, Stream: r.s[0], Kernel: k, Grid: [3]uint32{words / 128, 1, 1},
			Block: [3]uint32{128, 1, 1},
			Args:  args(to, from, add)}
	}
	plus := func(add uint32) []uint32 {
		var list []uint32
		for _, v := range r.host {
			list = append(list, v+add)
		}
		return list
	}
	for i := range r.host {
		r.host[i] = uint32(i) * 2654435761
	}
	r.thrice([]cudart.Command{r.up(0, r.d, r.h), launch(r.e, r.d, 2), launch(0, r.d, 9), launch(r.d, r.e, 4), r.down(0, r.g, r.d)}, func() { clear(r.back) },
		func() { require.Equal(r, plus(2+1+4+1), r.back) })

	// Addresses and numbers may change later.
	alone := []cudart.Command{r.up(0, r.d, r.h), launch(r.d, r.d, 5), r.down(0, r.g, r.d)}
	l := r.list(r.s[0], alone...)
	g := r.graph(r.p.BuildGraph(alone, [][]int32{nil, {0}, {1}}, cudart.GraphOptions{Origin: r.s[0]}))
	for _, add := range []uint32{7, 3} {
		for _, way := range []struct {
			change func(int, [3]uint32, []cudart.Value) error
			run    func() error
		}{{l.SetArgs, l.Submit}, {g.SetArgs, func() error { return g.Launch(r.s[0]) }}} {
			require.NoError(r, way.change(1, alone[1].Grid, args(r.d, r.d, add)))
			require.NoError(r, way.run())
			r.sync()
			require.Equal(r, plus(add+1), r.back)
			require.NoError(r, way.change(1, alone[1].Grid, args(r.e, r.d, add)))
			require.NoError(r, way.run())
			r.sync()
			require.Equal(r, r.host, r.back, "the result is elsewhere")
		}
	}

	outside := launch(r.d, r.d, 1)
	outside.Args[3].Offset = 20
	require.Error(r, r.try(outside), "an address that is not in the structure")
	number := launch(r.d, r.d, 1)
	number.Args[3].Within = 1
	require.Error(r, r.try(number), "an address in a number")
}
