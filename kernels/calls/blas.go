// cuBLAS: products of matrices, and triangular systems.

package calls

import (
	"fmt"
	"math"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/kernels/internal/describe"
	"github.com/dagrun/dagrun/kernels/launch"
)

// reals are the versions for f32 and f64.
var reals = []binding{{T: dag.F32}, {T: dag.F64}}

func productCalls() []call {
	return []call{
		{
			name: "cublas.gemm", doc: "c = alpha*a*b + beta*c, where a and b may be transposed",
			notes:  "math: tf32 rounds f32 factors to 10 bits of mantissa, for tensor cores. With beta 0 the old c is not read.",
			params: []param{flag("ta"), flag("tb"), scale("alpha", 1), in("a"), in("b"), scale("beta", 0), inout("c"), oneOf("math", "default", "tf32")},
			types:  reals, describe: describeGemm, run: runOf(gemm[float32], gemm[float64]),
		},
		{
			name: "cublas.gemm_batched", doc: "c = alpha*a*b + beta*c for each of several matrices that lie one below the other in a, b and c",
			notes: "Each of a, b and c is cut into batches of equally many rows. Otherwise like cublas.gemm.",
			params: []param{{name: "batches", kind: integer}, flag("ta"), flag("tb"), scale("alpha", 1), in("a"), in("b"), scale("beta", 0), inout("c"),
				oneOf("math", "default", "tf32")},
			types: reals, describe: describeGemmBatched, run: runOf(gemmBatched[float32], gemmBatched[float64]),
		},
		{
			name: "cublas.syrk", doc: "one triangle of c = alpha*a*aT + beta*c, or with ta of alpha*aT*a + beta*c",
			notes:  "uplo says which triangle of c; the other is left as it is.",
			params: []param{oneOf("uplo", "lower", "upper"), flag("ta"), scale("alpha", 1), in("a"), scale("beta", 0), inout("c")},
			types:  reals, describe: describeSyrk, run: runOf(syrk[float32], syrk[float64]),
		},
		{
			name: "cublas.trsm", doc: "solve a*x = alpha*b, or with side: right x*a = alpha*b, for a triangular a, in place of b",
			notes:  "uplo says which triangle of a is read, ta that it is transposed, unit that its diagonal is taken to be ones.",
			params: []param{oneOf("side", "left", "right"), oneOf("uplo", "lower", "upper"), flag("ta"), flag("unit"), scale("alpha", 1), in("a"), inout("b")},
			types:  reals, describe: describeTrsm, run: runOf(trsm[float32], trsm[float64]),
		},
	}
}

// runOf chooses a Go version by type: single or double precision, real or complex.
func runOf(f, d func(*version) launch.Reference) func(*version) launch.Reference {
	return func(v *version) launch.Reference {
		if v.types.T == dag.F64 || v.types.T == dag.C128 {
			return d(v)
		}
		return f(v)
	}
}

// blasWorkspace bounds what cuBLAS asks for: partial sums of a product of rows x columns. Kernels that split a sum over blocks need it,
// and cuBLAS chooses others where it is too small.
func blasWorkspace(info *dag.LaunchInfo, rows, columns int64, t dag.DType) {
	const least, most = 4 << 20, 32 << 20
	info.Scratch = most
	if partial := 64 * t.Size(); rows*columns <= most/partial {
		info.Scratch = max(least, rows*columns*partial)
	}
}

// tiles is the shape of a launch that computes a matrix in tiles of 128 x 128.
func tiles(info *dag.LaunchInfo, s shape) {
	const side = 128
	info.Work.Blocks = max(1, (s.rows+side-1)/side*((s.columns+side-1)/side))
	info.Work.Threads, info.Work.Shared = 256, 64<<10
}

// nothing makes a call that has nothing to compute one that is not launched.
func nothing(info *dag.LaunchInfo) { info.Grid[0] = 0 }

func describeGemm(v *values, info *dag.LaunchInfo) error {
	return describeProducts(v, info, 1, v.shape("a"), v.shape("b"), v.shape("c"))
}

func describeGemmBatched(v *values, info *dag.LaunchInfo) error {
	batches := v.integer("batches")
	if batches < 1 || batches > math.MaxInt32 {
		return describe.Wrong("batches", "is %d, but must be from 1 to %d", batches, math.MaxInt32)
	}
	var one [3]shape
	for i, name := range []string{"a", "b", "c"} {
		if one[i] = v.shape(name); one[i].rows%batches != 0 {
			return describe.Wrong(name, "has %d rows, which is no multiple of %d batches", one[i].rows, batches)
		}
		one[i].rows /= batches
	}
	return describeProducts(v, info, batches, one[0], one[1], one[2])
}

// describeProducts describes so many products of matrices of these shapes.
func describeProducts(v *values, info *dag.LaunchInfo, batches int64, ownA, ownB, c shape) error {
	a, b := ownA.flip(v.truth("ta")), ownB.flip(v.truth("tb"))
	each := func(s shape) string {
		if batches > 1 {
			return fmt.Sprintf("%d matrices of %s", batches, s)
		}
		return s.String()
	}
	must := func(name string, want shape, because string) error {
		want.rows *= batches
		return v.must(name, want, because)
	}
	if a.rows != c.rows {
		return must("a", shape{c.rows, a.columns}.flip(v.truth("ta")), "for c of "+each(c))
	}
	if want := (shape{a.columns, c.columns}); b != want {
		return must("b", want.flip(v.truth("tb")), "for a of "+each(ownA)+" and c of "+each(c))
	}
	tf32 := v.integer("math") != 0
	if tf32 && v.types.T != dag.F32 {
		return describe.Wrong("math", "is tf32, which is for f32; the matrices are %s", v.types.T)
	}
	if v.zero("beta") {
		info.Modes[v.at("c")] = dag.Write
	}
	blasWorkspace(info, batches*c.rows, c.columns, v.types.T)
	tiles(info, c)
	info.Work.Blocks *= batches
	if info.Work.Flops = 2 * batches * c.rows * c.columns * a.columns; tf32 {
		info.Work.Flops /= 8 // tensor cores are that much faster
	}
	if c.rows == 0 || c.columns == 0 {
		nothing(info)
	}
	return nil
}

func describeSyrk(v *values, info *dag.LaunchInfo) error {
	a, c := v.shape("a").flip(v.truth("ta")), v.shape("c")
	if err := v.must("c", shape{a.rows, a.rows}, "for a of "+v.shape("a").String()); err != nil {
		return err
	}
	blasWorkspace(info, c.rows, c.columns, v.types.T)
	tiles(info, c)
	info.Work.Flops = a.rows * (a.rows + 1) * a.columns
	if c.rows == 0 {
		nothing(info)
	}
	return nil
}

func describeTrsm(v *values, info *dag.LaunchInfo) error {
	b := v.shape("b")
	n, others := b.rows, b.columns
	if v.integer("side") != 0 {
		n, others = others, n
	}
	if err := v.must("a", shape{n, n}, "for b of "+b.String()); err != nil {
		return err
	}
	blasWorkspace(info, b.rows, b.columns, v.types.T)
	tiles(info, b)
	info.Work.Flops = n * n * others
	if n == 0 || others == 0 {
		nothing(info)
	}
	return nil
}
