// How fast kernels run from their PTX, checked and not: a product of matrices by tiles, in instructions of one lane a second.

package simt_test

import (
	"context"
	"os"
	"runtime"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart/host/simt"
	"github.com/dagrun/dagrun/kernels/source/clang"
)

func BenchmarkTiledProduct(b *testing.B) {
	compiler, err := clang.Open(clang.Options{Cache: "off"})
	if err != nil {
		b.Skip(err)
	}
	const n = 256
	code, err := os.ReadFile("testdata/product.cu")
	require.NoError(b, err)
	compiled, err := compiler.Compile(context.Background(), clang.Source{Path: "product.cu", Code: code})
	require.NoError(b, err)
	p, err := simt.Load("product.ptx", string(compiled.PTX))
	require.NoError(b, err)
	k, err := p.Kernel("mm")
	require.NoError(b, err)
	var args []simt.Arg
	var matrices [3][]float32
	for i := range matrices {
		matrices[i] = onHeap[float32](n * n)
		for j := range matrices[i] {
			matrices[i][j] = float32(j % 7)
		}
		args = append(args, simt.Arg{Bits: uint64(uintptr(unsafe.Pointer(&matrices[i][0]))), Pointer: true, Bytes: 4 * n * n})
	}
	args = append(args, simt.Arg{Bits: n})
	for level, name := range []string{"off", "fast", "full"} {
		b.Run(name, func(b *testing.B) {
			steps := uint64(0)
			for b.Loop() {
				r, err := k.Start(simt.Launch{Grid: [3]uint32{n / 16, n / 16, 1}, Block: [3]uint32{16, 16, 1}, Args: args, Check: simt.Check(level)})
				require.NoError(b, err)
				r.Work()
				require.Nil(b, r.Fault())
				steps += r.Steps()
			}
			b.ReportMetric(float64(steps)/1e6/b.Elapsed().Seconds(), "Minstr/s")
		})
	}
	runtime.KeepAlive(matrices)
}
