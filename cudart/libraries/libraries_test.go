// Tests of the calls on libraries whose functions are written here, in Go and column by column as the real ones are: what our matrices become must
// be what the Go versions of kernels/calls compute row by row.

//go:build linux && (amd64 || arm64)

package libraries

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/internal/dl"
	"github.com/dagrun/dagrun/kernels"
	"github.com/dagrun/dagrun/kernels/launch"
)

// columns is a matrix as libraries see it.
type columns struct {
	at, ld uintptr
	single bool
}

func (c columns) place(i, j uintptr) uintptr { return c.at + (j*c.ld+i)*c.size() }

func (c columns) size() uintptr {
	if c.single {
		return 4
	}
	return 8
}

func load(at uintptr, single bool) float64 {
	if single {
		return float64(**(**float32)(unsafe.Pointer(&at)))
	}
	return **(**float64)(unsafe.Pointer(&at))
}

func (c columns) get(i, j uintptr) float64 { return load(c.place(i, j), c.single) }

func (c columns) set(i, j uintptr, x float64) {
	at := c.place(i, j)
	if c.single {
		**(**float32)(unsafe.Pointer(&at)) = float32(x)
		return
	}
	**(**float64)(unsafe.Pointer(&at)) = x
}

func (c columns) op(transposed uintptr, i, j uintptr) float64 {
	if transposed != 0 {
		return c.get(j, i)
	}
	return c.get(i, j)
}

// inTriangle reports whether (i, j) lies in the lower triangle (0) or the upper one (1).
func inTriangle(uplo, i, j uintptr) bool {
	if uplo != 0 {
		return i <= j
	}
	return i >= j
}

var (
	fakeFailure uintptr // what products return
	fakeState   struct{ stream, workspace, bytes, math uintptr }
)

func fakeGemm(single bool) any {
	return func(_, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc uintptr) uintptr {
		x, y, z := columns{a, lda, single}, columns{b, ldb, single}, columns{c, ldc, single}
		for i := range m {
			for j := range n {
				s := 0.0
				for p := range k {
					s += x.op(ta, i, p) * y.op(tb, p, j)
				}
				s *= load(alpha, single)
				if by := load(beta, single); by != 0 {
					s += by * z.get(i, j)
				}
				z.set(i, j, s)
			}
		}
		return fakeFailure
	}
}

// fakeBatched makes several products, each of matrices that are so many elements further.
func fakeBatched(single bool) any {
	one := fakeGemm(single).(func(_, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc uintptr) uintptr)
	size := uintptr(8)
	if single {
		size = 4
	}
	return func(handle, ta, tb, m, n, k, alpha, a, lda, strideA, b, ldb, strideB, beta, c, ldc, strideC, batches uintptr) uintptr {
		for q := range batches {
			if status := one(handle, ta, tb, m, n, k, alpha, a+q*strideA*size, lda, b+q*strideB*size, ldb, beta, c+q*strideC*size, ldc); status != 0 {
				return status
			}
		}
		return 0
	}
}

func fakeSyrk(single bool) any {
	return func(_, uplo, trans, n, k, alpha, a, lda, beta, c, ldc uintptr) uintptr {
		x, z := columns{a, lda, single}, columns{c, ldc, single}
		for i := range n {
			for j := range n {
				if !inTriangle(uplo, i, j) {
					continue
				}
				s := 0.0
				for p := range k {
					s += x.op(trans, i, p) * x.op(trans, j, p)
				}
				s *= load(alpha, single)
				if by := load(beta, single); by != 0 {
					s += by * z.get(i, j)
				}
				z.set(i, j, s)
			}
		}
		return 0
	}
}

// fakeTrsm solves by elimination over the whole matrix that the triangle stands for.
func fakeTrsm(single bool) any {
	return func(_, side, uplo, trans, diag, m, n, alpha, a, lda, b, ldb uintptr) uintptr {
		size := m
		if side != 0 {
			size = n
		}
		t, x := columns{a, lda, single}, columns{b, ldb, single}
		full := func(i, j uintptr) float64 {
			if trans != 0 {
				i, j = j, i
			}
			switch {
			case i == j && diag != 0:
				return 1
			case inTriangle(uplo, i, j):
				return t.get(i, j)
			}
			return 0
		}
		others := n
		if side != 0 {
			others = m
		}
		for r := range others {
			matrix, right := make([][]float64, size), make([]float64, size)
			for i := range size {
				matrix[i] = make([]float64, size)
				for j := range size {
					if side == 0 {
						matrix[i][j] = full(i, j)
					} else {
						matrix[i][j] = full(j, i)
					}
				}
				if side == 0 {
					right[i] = load(alpha, single) * x.get(i, r)
				} else {
					right[i] = load(alpha, single) * x.get(r, i)
				}
			}
			for i, v := range eliminated(matrix, right) {
				if side == 0 {
					x.set(uintptr(i), r, v)
				} else {
					x.set(r, uintptr(i), v)
				}
			}
		}
		return 0
	}
}

// eliminated solves a system by Gauss's elimination with pivots.
func eliminated(a [][]float64, b []float64) []float64 {
	n := len(b)
	for k := range n {
		p := k
		for i := k; i < n; i++ {
			if math.Abs(a[i][k]) > math.Abs(a[p][k]) {
				p = i
			}
		}
		a[k], a[p], b[k], b[p] = a[p], a[k], b[p], b[k]
		for i := k + 1; i < n; i++ {
			f := a[i][k] / a[k][k]
			for j := k; j < n; j++ {
				a[i][j] -= f * a[k][j]
			}
			b[i] -= f * b[k]
		}
	}
	for i := n - 1; i >= 0; i-- {
		for j := i + 1; j < n; j++ {
			b[i] -= a[i][j] * b[j]
		}
		b[i] /= a[i][i]
	}
	return b
}

func fakePotrf(single bool) any {
	return func(_, uplo, n, a, lda, _, _, info uintptr) uintptr {
		x := columns{a, lda, single}
		get, set := x.get, x.set
		if uplo != 0 {
			get, set = func(i, j uintptr) float64 { return x.get(j, i) }, func(i, j uintptr, v float64) { x.set(j, i, v) }
		}
		status := int32(0)
		for j := uintptr(0); j < n && status == 0; j++ {
			for i := j; i < n; i++ {
				s := get(i, j)
				for p := range j {
					s -= get(i, p) * get(j, p)
				}
				if i > j {
					s /= get(j, j)
				} else if s > 0 {
					s = math.Sqrt(s)
				} else {
					status = int32(j + 1)
					break
				}
				set(i, j, s)
			}
		}
		**(**int32)(unsafe.Pointer(&info)) = status
		return 0
	}
}

var fakes = sync.OnceValue(func() map[string]uintptr {
	create := func(handle uintptr) uintptr { **(**uintptr)(unsafe.Pointer(&handle)) = 77; return 0 }
	property := func(which, value uintptr) uintptr { **(**int32)(unsafe.Pointer(&value)) = 13 - int32(which); return 0 }
	size := func(_, _, n, _, _, need uintptr) uintptr { **(**int32)(unsafe.Pointer(&need)) = int32(n); return 0 }
	made := map[string]uintptr{}
	for name, f := range map[string]any{
		"cublasCreate_v2": create, "cublasDestroy_v2": func(uintptr) uintptr { return 0 }, "cublasGetProperty": property,
		"cublasSetStream_v2":    func(_, s uintptr) uintptr { fakeState.stream, fakeState.workspace = s, 0; return 0 },
		"cublasSetWorkspace_v2": func(_, p, n uintptr) uintptr { fakeState.workspace, fakeState.bytes = p, n; return 0 },
		"cublasSetMathMode":     func(_, m uintptr) uintptr { fakeState.math = m; return 0 },
		"cublasSgemm_v2":        fakeGemm(true), "cublasDgemm_v2": fakeGemm(false), "cublasSsyrk_v2": fakeSyrk(true), "cublasDsyrk_v2": fakeSyrk(false),
		"cublasSgemmStridedBatched": fakeBatched(true), "cublasDgemmStridedBatched": fakeBatched(false),
		"cublasStrsm_v2": fakeTrsm(true), "cublasDtrsm_v2": fakeTrsm(false),
		"cusolverDnCreate": create, "cusolverDnDestroy": func(uintptr) uintptr { return 0 }, "cusolverGetProperty": property,
		"cusolverDnSetStream":         func(_, _ uintptr) uintptr { return 0 },
		"cusolverDnSpotrf_bufferSize": size, "cusolverDnDpotrf_bufferSize": size, "cusolverDnSpotrf": fakePotrf(true), "cusolverDnDpotrf": fakePotrf(false),
	} {
		made[name] = dl.Callback(f)
	}
	return made
})

func fakeLibrary(t testing.TB, name string) *Library {
	l, err := OpenWith(name, func(symbol string) (uintptr, error) {
		if at := fakes()[symbol]; at != 0 {
			return at, nil
		}
		return 0, errors.New("no such symbol")
	})
	require.NoError(t, err)
	return l
}

// matrix is one of ours, row by row, inside a larger one.
type matrix struct {
	rows, columns, ld int64
	data              []float64
}

func randomMatrix(r *rand.Rand, rows, cols int64) matrix {
	m := matrix{rows: rows, columns: cols, ld: cols + r.Int64N(3)}
	m.data = make([]float64, max(1, rows*m.ld))
	for i := range m.data {
		m.data[i] = 2*r.Float64() - 1
	}
	return m
}

// memory lays a matrix out in elements of a type.
func (m matrix) memory(t dag.DType) []byte {
	memory := make([]byte, int64(len(m.data))*t.Size())
	for i, x := range m.data {
		t.Store(memory, int64(i), t.FromFloat(x))
	}
	return memory
}

// use is one call with its arguments by name: matrices, numbers, and words as their places.
type use struct {
	name string
	args map[string]any
}

// compare makes a call both ways on the same memory and compares everything that it wrote.
func compare(t *testing.T, r *rand.Rand, session *Session, u use, dtype dag.DType) {
	entry := u.name + "_" + dtype.String()
	kernel := findCall(t, u.name, dtype)
	reference := kernel.Module().References[entry]
	var values []cudart.Value
	var ours []launch.Arg
	var theirs, mine [][]byte
	var names []string
	buffer := func(memory []byte) {
		other := slices.Clone(memory)
		theirs, mine = append(theirs, memory), append(mine, other)
		values = append(values, cudart.Value{Pointer: true, Ptr: cudart.Ptr(uintptr(unsafe.Pointer(&memory[0]))), Bytes: int64(len(memory)), Size: 8})
		ours = append(ours, launch.Arg{Memory: unsafe.Pointer(&other[0]), Bytes: int64(len(other))})
	}
	for _, p := range kernel.Params() {
		names = append(names, p.Name)
		of, what, measured := strings.Cut(p.Name, ".")
		switch m, isMatrix := u.args[of].(matrix); {
		case p.Scratch:
			buffer(make([]byte, 4096))
		case p.Status:
			buffer(make([]byte, 4))
		case measured:
			bits := map[string]int64{"rows": m.rows, "columns": m.columns, "ld": m.ld}[what]
			values, ours = append(values, cudart.Value{Bits: uint64(bits), Size: 8}), append(ours, launch.Arg{Bits: uint64(bits)})
		case isMatrix:
			buffer(m.memory(dtype))
		default:
			bits := uint64(0)
			if x, given := u.args[p.Name]; given {
				bits = p.DType.FromFloat(x.(float64))
			}
			values, ours = append(values, cudart.Value{Bits: bits, Size: uint8(p.DType.Size())}), append(ours, launch.Arg{Bits: bits})
		}
	}
	require.NoError(t, session.Call(&Arguments{Entry: entry, Stream: 5, Names: names, Values: values}))
	call := &launch.Call{Args: ours}
	spans := reference.Spans(call)
	for k := range spans {
		reference.Run(call, k, k+1)
	}
	if last := len(theirs) - 1; kernel.Params()[len(names)-1].Status {
		require.Equal(t, mine[last], theirs[last], "status of %v", u)
		if !bytes.Equal(theirs[last], make([]byte, 4)) {
			return // how far each got is its own matter
		}
		theirs, mine = theirs[:last], mine[:last]
	}
	for k := range theirs {
		if len(theirs[k]) == 4096 {
			continue // the workspace
		}
		for i := range int64(len(theirs[k])) / dtype.Size() {
			got, want := dtype.ToFloat(dtype.Load(theirs[k], i)), dtype.ToFloat(dtype.Load(mine[k], i))
			if math.Abs(got-want) > 2e-4*(1+math.Abs(want)) || got != got {
				require.Failf(t, "they differ", "%s: buffer %d, element %d: library %v, Go %v", entry, k, i, got, want)
			}
		}
	}
}

type callKernel interface {
	dag.LaunchKernel
	Module() *launch.Module
}

func findCall(t testing.TB, name string, dtype dag.DType) callKernel {
	calls := kernels.Library().(dag.CallLibrary).Calls()
	names, err := calls.ParameterNames(name)
	require.NoError(t, err)
	elems := make([]dag.DType, len(names))
	for i := range names {
		if len(names[i]) == 1 {
			elems[i] = dtype
		}
	}
	k, err := calls.Kernel(name, elems)
	require.NoError(t, err)
	return k.(callKernel)
}

func bit(r *rand.Rand) float64 { return float64(r.IntN(2)) }

func flipIf(condition float64, rows, cols int64) (int64, int64) {
	if condition != 0 {
		return cols, rows
	}
	return rows, cols
}

func TestCallsAreWhatTheGoVersionsCompute(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	blas, err := fakeLibrary(t, "cublas").NewSession()
	require.NoError(t, err)
	solver, err := fakeLibrary(t, "cusolver").NewSession()
	require.NoError(t, err)
	size := func() int64 { return 1 + r.Int64N(20) }
	for range 150 {
		for _, dtype := range []dag.DType{dag.F32, dag.F64} {
			m, n, k := size(), size(), size()
			ta, tb := bit(r), bit(r)
			am, ak := flipIf(ta, m, k)
			bk, bn := flipIf(tb, k, n)
			compare(t, r, blas, use{"cublas.gemm", map[string]any{"ta": ta, "tb": tb, "alpha": r.Float64(), "beta": bit(r) * r.Float64(),
				"a": randomMatrix(r, am, ak), "b": randomMatrix(r, bk, bn), "c": randomMatrix(r, m, n)}}, dtype)
			batches := 1 + r.Int64N(4)
			compare(t, r, blas, use{"cublas.gemm_batched", map[string]any{"batches": float64(batches), "ta": ta, "tb": tb, "alpha": r.Float64(), "beta": bit(r) * r.Float64(),
				"a": randomMatrix(r, batches*am, ak), "b": randomMatrix(r, batches*bk, bn), "c": randomMatrix(r, batches*m, n)}}, dtype)
			compare(t, r, blas, use{"cublas.syrk", map[string]any{"uplo": bit(r), "ta": ta, "alpha": r.Float64(), "beta": bit(r) * r.Float64(),
				"a": randomMatrix(r, am, ak), "c": randomMatrix(r, m, m)}}, dtype)
			right := bit(r)
			a := randomMatrix(r, m, m)
			for i := range m {
				a.data[i*a.ld+i] = 4 + r.Float64()
			}
			for i := range a.data { // ones on the diagonal need small elements beside it
				if a.data[i] < 2 {
					a.data[i] /= float64(m)
				}
			}
			bm, bn2 := flipIf(right, m, n)
			compare(t, r, blas, use{"cublas.trsm", map[string]any{"side": right, "uplo": bit(r), "ta": ta, "unit": bit(r), "alpha": r.Float64(), "a": a, "b": randomMatrix(r, bm, bn2)}}, dtype)
			shift := 4 * bit(r) * float64(m) // without it most are not positive definite
			for i := range m {
				a.data[i*a.ld+i] += shift - 4
			}
			compare(t, r, solver, use{"cusolver.potrf", map[string]any{"uplo": bit(r), "a": a}}, dtype)
		}
	}
	require.EqualValues(t, 5, fakeState.stream)
	require.NotZero(t, fakeState.workspace, "set after the stream, which resets it")
	require.EqualValues(t, 4096, fakeState.bytes)
	require.NoError(t, blas.Close())
	require.NoError(t, blas.Close(), "a second time")
	require.NoError(t, solver.Close())
}

func TestMathMode(t *testing.T) {
	s, err := fakeLibrary(t, "cublas").NewSession()
	require.NoError(t, err)
	r := rand.New(rand.NewPCG(1, 1))
	for math, want := range []uintptr{blasDefaultMath, blasTF32Math} {
		compare(t, r, s, use{"cublas.gemm", map[string]any{"math": float64(math), "alpha": 1.0, "a": randomMatrix(r, 2, 3), "b": randomMatrix(r, 3, 2), "c": randomMatrix(r, 2, 2)}}, dag.F32)
		require.Equal(t, want, fakeState.math)
	}
}

func TestFailuresNameFunctionAndStatus(t *testing.T) {
	s, err := fakeLibrary(t, "cublas").NewSession()
	require.NoError(t, err)
	fakeFailure = 14
	defer func() { fakeFailure = 0 }()
	names := findCall(t, "cublas.gemm", dag.F64).Module().Parameters["cublas.gemm_f64"]
	values := make([]cudart.Value, len(names))
	require.EqualError(t, s.Call(&Arguments{Entry: "cublas.gemm_f64", Names: names, Values: values}), "cublasDgemm: CUBLAS_STATUS_INTERNAL_ERROR (14)")
	fakeFailure = 0
	require.EqualError(t, s.Call(&Arguments{Entry: "cublas.gem_f64"}), `cuBLAS: unknown call "cublas.gem_f64"`)
	require.EqualError(t, s.Call(&Arguments{Entry: "cublas.gemm_f64", Names: names}), fmt.Sprintf(`call "cublas.gemm_f64" takes %d arguments, got 0`, len(names)))
	for k := range names {
		if names[k] == "beta" {
			names[k] = "betta"
			require.ErrorContains(t, s.Call(&Arguments{Entry: "cublas.gemm_f64", Names: names, Values: values}), `call "cublas.gemm_f64" has no argument "beta"`)
			names[k] = "beta"
		}
	}
}

func TestLibrariesThatLackSomething(t *testing.T) {
	_, err := OpenWith("cublas", func(symbol string) (uintptr, error) {
		if symbol == "cublasStrsm_v2" {
			return 0, errors.New("no such symbol")
		}
		return 1, nil
	})
	require.EqualError(t, err, "cuBLAS (libcublas.so.13) has no cublasStrsm_v2; a newer one is needed")
	_, err = Open("curand")
	require.EqualError(t, err, `unknown library "curand"`)
	missing := vendors["cusolver"].missing(errors.New("libcusolver.so.12: cannot open shared object file"))
	require.ErrorIs(t, missing, ErrMissing)
	require.EqualError(t, missing, "cuSOLVER is not installed: libcusolver.so.12: cannot open shared object file; install the CUDA toolkit, or run pip install nvidia-cusolver; --backend cpu runs calls without it")
	version, err := fakeLibrary(t, "cublas").Version()
	require.NoError(t, err)
	require.Equal(t, "13.12.11", version)
	require.Equal(t, []string{"cublas", "cufft", "cusolver"}, Names())
	require.Equal(t, "cuSOLVER", Title("cusolver"))
}

func TestFoldersOfPackages(t *testing.T) {
	list := folders([]string{"cublas"}, func(name string) string { return map[string]string{"CUDA_HOME": "/opt/cuda"}[name] })
	require.Equal(t, "/opt/cuda/lib64", list[0])
	require.Contains(t, list, "/usr/local/cuda/lib64")
}
