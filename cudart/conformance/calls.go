// Tests of library calls in lists and graphs. A platform whose vendor's library is not installed must say so, and is not tested further.

package conformance

import (
	"context"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/cudart/libraries"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/kernels"
	"github.com/dagrun/dagrun/kernels/launch"
)

// libraryKernel is a call of the catalog.
type libraryKernel interface {
	Entry() string
	Params() []dag.KernelParam
	Module() *launch.Module
}

// call is a call of a library on whole matrices of 32 rows of 32 numbers, or of 16 that are complex. Arguments that are not given are 0.
func (r *rig) call(s int, of libraryKernel, loaded cudart.Kernel, columns int64, given map[string]cudart.Value) cudart.Command {
	c := cudart.Command{Kind: cudart.LaunchKernel, Label: of.Entry(), Node: -1, Stream: r.s[s], Kernel: loaded, Grid: one, Block: one}
	for _, p := range of.Params() {
		v, known := given[p.Name]
		_, measure, measured := strings.Cut(p.Name, ".")
		switch {
		case known:
		case measured && measure == "rows":
			v = cudart.Value{Bits: 32, Size: 8}
		case measured:
			v = cudart.Value{Bits: uint64(columns), Size: 8}
		case p.Scratch:
			const workspace = 8 << 20
			v = cudart.Value{Pointer: true, Ptr: r.alloc(workspace), Bytes: workspace, Size: 8}
		default:
			v = cudart.Value{Size: uint8(p.DType.Size())}
		}
		c.Args = append(c.Args, v)
	}
	return c
}

// libraryCalls multiplies matrices of small integers and transforms impulses, whose results are exact.
func libraryCalls(r *rig) {
	catalog := kernels.Library().(dag.CallLibrary).Calls()
	find := func(name string, types ...dag.DType) (libraryKernel, cudart.Kernel) {
		found, err := catalog.Kernel(name, types)
		require.NoError(r, err)
		k := found.(libraryKernel)
		module, err := r.p.Load(context.Background(), 0, k.Module())
		if err != nil {
			require.ErrorIs(r, err, libraries.ErrMissing)
			return k, nil
		}
		r.Cleanup(func() { require.NoError(r, module.Close()) })
		loaded, err := module.Kernel(k.Entry())
		require.NoError(r, err)
		return k, loaded
	}
	const none = dag.InvalidDType
	gemm, product := find("cublas.gemm", none, none, none, dag.F32, dag.F32, none, dag.F32, none)
	c2c, transform := find("cufft.c2c", none, none, dag.C64, dag.C64)
	if product == nil || transform == nil {
		return
	}
	f32 := func(x float64) uint32 { return uint32(dag.F32.FromFloat(x)) }
	small := func(i int) float64 { return float64(i%7 - 3) }
	commands := []cudart.Command{r.up(0, r.d, r.h),
		r.call(0, gemm, product, 32, map[string]cudart.Value{"alpha": {Bits: uint64(f32(2)), Size: 4}, "a": pointer(r.d, bytes), "b": pointer(r.d, bytes),
			"c": pointer(r.e, bytes)}),
		r.down(0, r.g, r.e)}
	wantProduct := func() {
		for i := range 32 {
			for j := range 32 {
				sum := 0.0
				for k := range 32 {
					sum += 2 * small(32*i+k) * small(32*k+j)
				}
				require.Equal(r, f32(sum), r.back[32*i+j], "element %d, %d", i, j)
			}
		}
	}
	for i := range r.host {
		r.host[i] = f32(small(i))
	}
	r.everyWay(commands, wantProduct)

	// Row i is a spike of height i+1 at its beginning, whose spectrum is i+1 everywhere.
	clear(r.host)
	for i := range 32 {
		r.host[32*i] = f32(float64(i + 1))
	}
	commands[1] = r.call(0, c2c, transform, 16, map[string]cudart.Value{"dims": {Bits: 1, Size: 8}, "x": pointer(r.d, bytes), "y": pointer(r.e, bytes)})
	r.everyWay(commands, func() {
		for i := range words {
			want := float64(i/32 + 1)
			if i%2 == 1 {
				want = 0
			}
			require.Equal(r, want, dag.F32.ToFloat(uint64(r.back[i])), "number %d", i)
		}
	})
}

// everyWay runs commands as a list, and as graphs that are captured and built.
func (r *rig) everyWay(commands []cudart.Command, check func()) {
	run := func(start func() error) {
		clear(r.back)
		for range 2 {
			require.NoError(r, start())
		}
		r.sync()
		check()
	}
	l := r.list(r.s[0], commands...)
	run(l.Submit)
	captured := r.graph(l.Capture(cudart.GraphOptions{Origin: r.s[0]}))
	run(func() error { return captured.Launch(r.s[1]) })
	deps := make([][]int32, len(commands))
	for i := 1; i < len(commands); i++ {
		deps[i] = []int32{int32(i - 1)}
	}
	built := r.graph(r.p.BuildGraph(commands, deps, cudart.GraphOptions{Origin: r.s[0]}))
	run(func() error { return built.Launch(r.s[2]) })
}
