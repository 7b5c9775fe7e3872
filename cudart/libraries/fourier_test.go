// Tests of cuFFT's calls on a library written here, which transforms by the definition: what plans describe must be what the Go versions of
// kernels/calls compute.

//go:build linux && (amd64 || arm64)

package libraries

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
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

// fakePlan is what the fake was told about a plan.
type fakePlan struct {
	automatic            bool
	n, ofX, ofY          []int64
	distanceX, distanceY int64
	batch                int64
	kind                 uintptr
	stream, workspace    uintptr
}

var fakeFourier struct {
	plans    map[uintptr]*fakePlan
	last     uintptr
	need     uint64
	makes    int
	executed *fakePlan
	failure  uintptr
}

func int64s(at uintptr, n uintptr) []int64 {
	return append([]int64{}, unsafe.Slice(*(**int64)(unsafe.Pointer(&at)), n)...)
}

// number is a complex or a real number in memory.
func number(at uintptr, index int64, double, real bool) *[2]float64 {
	size := int64(4)
	if double {
		size = 8
	}
	parts := int64(2)
	if real {
		parts = 1
	}
	v := &[2]float64{}
	for k := range parts {
		v[k] = load(at+uintptr((index*parts+k)*size), !double)
	}
	return v
}

func putNumber(at uintptr, index int64, double, real bool, v [2]float64) {
	size := int64(4)
	if double {
		size = 8
	}
	parts := int64(2)
	if real {
		parts = 1
	}
	for k := range parts {
		columns{at + uintptr((index*parts+k)*size), 1, !double}.set(0, 0, v[k])
	}
}

// transform computes a plan by the definition, in one or two dimensions.
func (p *fakePlan) transform(x, y uintptr, double, realX, realY bool, sign float64) {
	rows, columns := int64(1), p.n[len(p.n)-1]
	if len(p.n) == 2 {
		rows = p.n[0]
	}
	half := columns/2 + 1
	lengthX, lengthY := p.ofX[len(p.ofX)-1], p.ofY[len(p.ofY)-1]
	for b := range p.batch {
		in := make([][2]float64, rows*columns)
		for i := range rows {
			for j := range columns {
				switch {
				case realY && j >= half: // the conjugate of the element across
					v := number(x, b*p.distanceX+(rows-i)%rows*lengthX+columns-j, double, realX)
					in[i*columns+j] = [2]float64{v[0], -v[1]}
				default:
					in[i*columns+j] = *number(x, b*p.distanceX+i*lengthX+j, double, realX)
				}
			}
		}
		for r := range rows {
			for c := range columns {
				if realX && c >= half {
					continue
				}
				var sum [2]float64
				for i := range rows {
					for j := range columns {
						sin, cos := math.Sincos(sign * 2 * math.Pi * (float64(r*i%rows)/float64(rows) + float64(c*j%columns)/float64(columns)))
						v := in[i*columns+j]
						sum[0] += v[0]*cos - v[1]*sin
						sum[1] += v[0]*sin + v[1]*cos
					}
				}
				putNumber(y, b*p.distanceY+r*lengthY+c, double, realY, sum)
			}
		}
	}
}

var fourierFakes = sync.OnceValue(func() map[string]uintptr {
	plan := func(handle uintptr) *fakePlan { return fakeFourier.plans[handle&0xffffffff] }
	exec := func(double, realX, realY bool) func(handle, x, y uintptr) uintptr {
		return func(handle, x, y uintptr) uintptr {
			sign := -1.0
			if realY {
				sign = 1
			}
			fakeFourier.executed = plan(handle)
			plan(handle).transform(x, y, double, realX, realY, sign)
			return fakeFourier.failure
		}
	}
	both := func(double bool) func(handle, x, y, direction uintptr) uintptr {
		return func(handle, x, y, direction uintptr) uintptr {
			fakeFourier.executed = plan(handle)
			plan(handle).transform(x, y, double, false, false, float64(int32(direction)))
			return 0
		}
	}
	made := map[string]uintptr{}
	for name, f := range map[string]any{
		"cufftCreate": func(handle uintptr) uintptr {
			fakeFourier.last++
			fakeFourier.plans[fakeFourier.last] = &fakePlan{automatic: true}
			**(**int32)(unsafe.Pointer(&handle)) = int32(fakeFourier.last)
			return 0
		},
		"cufftDestroy":           func(handle uintptr) uintptr { delete(fakeFourier.plans, handle); return 0 },
		"cufftGetProperty":       func(which, value uintptr) uintptr { **(**int32)(unsafe.Pointer(&value)) = 12 - int32(which); return 0 },
		"cufftSetAutoAllocation": func(handle, on uintptr) uintptr { plan(handle).automatic = on != 0; return 0 },
		"cufftSetWorkArea":       func(handle, at uintptr) uintptr { plan(handle).workspace = at; return 0 },
		"cufftSetStream":         func(handle, stream uintptr) uintptr { plan(handle).stream = stream; return 0 },
		"cufftMakePlanMany64": func(handle, rank, n, ofX, strideX, distanceX, ofY, strideY, distanceY, kind, batch, need uintptr) uintptr {
			p := plan(handle)
			p.n, p.ofX, p.ofY, p.distanceX, p.distanceY = int64s(n, rank), int64s(ofX, rank), int64s(ofY, rank), int64(distanceX), int64(distanceY)
			p.kind, p.batch = kind, int64(batch)
			**(**uint64)(unsafe.Pointer(&need)) = fakeFourier.need
			fakeFourier.makes++
			if strideX != 1 || strideY != 1 {
				return 4
			}
			return fakeFourier.failure
		},
		"cufftExecC2C": both(false), "cufftExecZ2Z": both(true),
		"cufftExecR2C": exec(false, true, false), "cufftExecD2Z": exec(true, true, false),
		"cufftExecC2R": exec(false, false, true), "cufftExecZ2D": exec(true, false, true),
	} {
		made[name] = dl.Callback(f)
	}
	return made
})

func fourierSession(t *testing.T) *Session {
	fakeFourier.plans, fakeFourier.need, fakeFourier.makes, fakeFourier.failure = map[uintptr]*fakePlan{}, 64, 0, 0
	l, err := OpenWith("cufft", func(symbol string) (uintptr, error) {
		if at := fourierFakes()[symbol]; at != 0 {
			return at, nil
		}
		return 0, errors.New("no such symbol")
	})
	require.NoError(t, err)
	version, err := l.Version()
	require.NoError(t, err)
	require.Equal(t, "12.11.10", version)
	s, err := l.NewSession()
	require.NoError(t, err)
	return s
}

// transformUse is a call with matrices of random numbers, whose rows may be longer than what is transformed.
type transformUse struct {
	kind             string
	double, inverse  bool
	dims             int64
	rows, columns    int64
	lengthX, lengthY int64
	x, y, theirs     []byte
	names            []string
	values           []cudart.Value
	ours             []launch.Arg
	reference        launch.Reference
	entry            string
}

func newTransformUse(t *testing.T, r *rand.Rand, kind string, double bool, dims, rows, columns int64) *transformUse {
	u := &transformUse{kind: kind, double: double, dims: dims, rows: rows, columns: columns, inverse: r.IntN(2) == 1}
	complexes, reals := dag.C64, dag.F32
	if double {
		complexes, reals = dag.C128, dag.F64
	}
	typeX, typeY, columnsX, columnsY := complexes, complexes, columns, columns
	switch kind {
	case "r2c":
		typeX, columnsY = reals, columns/2+1
	case "c2r":
		typeY, columnsX = reals, columns/2+1
	}
	u.lengthX, u.lengthY = columnsX+r.Int64N(3), columnsY+r.Int64N(3)
	u.x, u.y = make([]byte, rows*u.lengthX*typeX.Size()), make([]byte, rows*u.lengthY*typeY.Size())
	part := typeX.Component()
	for i := range int64(len(u.x)) / part.Size() {
		part.Store(u.x, i, part.FromFloat(2*r.Float64()-1))
	}
	if kind == "c2r" { // what a transform of real numbers could be
		u.makeHermitian(part)
	}
	u.theirs = append([]byte{}, u.y...)
	calls := kernels.Library().(dag.CallLibrary).Calls()
	names, err := calls.ParameterNames("cufft." + kind)
	require.NoError(t, err)
	types := make([]dag.DType, len(names))
	types[len(names)-2], types[len(names)-1] = typeX, typeY
	found, err := calls.Kernel("cufft."+kind, types)
	require.NoError(t, err)
	k := found.(callKernel)
	u.entry = k.Entry()
	u.reference = k.Module().References[u.entry]
	workspace := make([]byte, 64)
	for _, p := range k.Params() {
		u.names = append(u.names, p.Name)
		switch p.Name {
		case "x":
			u.buffer(u.x, u.x)
		case "y":
			u.buffer(u.theirs, u.y)
		case "workspace":
			u.buffer(workspace, workspace)
		default:
			bits := map[string]int64{"dims": dims, "inverse": 0, "x.rows": rows, "y.rows": rows, "x.columns": columnsX, "y.columns": columnsY, "x.ld": u.lengthX, "y.ld": u.lengthY}[p.Name]
			if p.Name == "inverse" && u.inverse {
				bits = 1
			}
			u.values, u.ours = append(u.values, cudart.Value{Bits: uint64(bits), Size: uint8(p.DType.Size())}), append(u.ours, launch.Arg{Bits: uint64(bits)})
		}
	}
	return u
}

func (u *transformUse) buffer(theirs, ours []byte) {
	u.values = append(u.values, cudart.Value{Pointer: true, Ptr: cudart.Ptr(uintptr(unsafe.Pointer(&theirs[0]))), Bytes: int64(len(theirs)), Size: 8})
	u.ours = append(u.ours, launch.Arg{Memory: unsafe.Pointer(&ours[0]), Bytes: int64(len(ours))})
}

// makeHermitian gives a half spectrum the symmetry of real numbers' in the columns that are their own mirror.
func (u *transformUse) makeHermitian(part dag.DType) {
	own := []int64{0}
	if u.columns%2 == 0 {
		own = append(own, u.columns/2)
	}
	at := func(i, j, k int64) int64 { return 2*(i*u.lengthX+j) + k }
	for _, j := range own {
		for i := range u.rows {
			mirror := i
			if u.dims == 2 {
				mirror = (u.rows - i) % u.rows
			}
			if mirror == i {
				part.Store(u.x, at(i, j, 1), 0)
				continue
			}
			part.Store(u.x, at(mirror, j, 0), part.Load(u.x, at(i, j, 0)))
			part.Store(u.x, at(mirror, j, 1), part.FromFloat(-part.ToFloat(part.Load(u.x, at(i, j, 1)))))
		}
	}
}

func (u *transformUse) arguments() *Arguments {
	return &Arguments{Entry: u.entry, Stream: 9, Names: u.names, Values: u.values}
}

func (u *transformUse) String() string {
	return fmt.Sprintf("%s, inverse %t, %d dimensions, %d x %d, rows of %d and %d", u.entry, u.inverse, u.dims, u.rows, u.columns, u.lengthX, u.lengthY)
}

func TestTransformsAreThoseOfTheGoVersions(t *testing.T) {
	r := rand.New(rand.NewPCG(16, 16))
	s := fourierSession(t)
	lengths := []int64{1, 2, 3, 4, 5, 7, 8, 12, 30, 61, 64, 67, 90, 128, 131, 142}
	for _, kind := range []string{"c2c", "r2c", "c2r"} {
		for _, double := range []bool{false, true} {
			for _, columns := range lengths {
				for dims := int64(1); dims <= 2; dims++ {
					u := newTransformUse(t, r, kind, double, dims, 1+r.Int64N(7), columns)
					require.NoError(t, s.Prepare(u.arguments()), u)
					require.NoError(t, s.Call(u.arguments()), u)
					p := fakeFourier.executed
					require.False(t, p.automatic, "cuFFT allocates no workspace of its own")
					require.Equal(t, uintptr(9), p.stream)
					require.NotZero(t, p.workspace)
					call := &launch.Call{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{1, 1, 1}, Args: u.ours}
					u.reference.Run(call, 0, u.reference.Spans(call))
					part, limit := dag.F32, 2e-6
					if double {
						part, limit = dag.F64, 1e-12
					}
					largest := 0.0
					for i := range int64(len(u.y)) / part.Size() {
						largest = max(largest, math.Abs(part.ToFloat(part.Load(u.theirs, i))))
					}
					for i := range int64(len(u.y)) / part.Size() {
						require.InDelta(t, part.ToFloat(part.Load(u.theirs, i)), part.ToFloat(part.Load(u.y, i)), limit*max(1, largest), "%s: number %d", u, i)
					}
				}
			}
		}
	}
	made := fakeFourier.makes
	require.Len(t, fakeFourier.plans, made)
	require.NoError(t, s.Close())
	require.Empty(t, fakeFourier.plans)
}

// A plan is made once for each shape, whatever the memory, and before a capture.
func TestPlansBelongToShapes(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	s := fourierSession(t)
	u := newTransformUse(t, r, "c2c", false, 1, 3, 8)
	for range 3 {
		require.NoError(t, s.Prepare(u.arguments()))
		require.NoError(t, s.Call(u.arguments()))
		u.inverse = !u.inverse
	}
	require.Equal(t, 1, fakeFourier.makes)
	fakeFourier.need = 65
	other := newTransformUse(t, r, "r2c", true, 2, 3, 10)
	require.EqualError(t, s.Call(other.arguments()), "this version of cuFFT needs 65 bytes of workspace for a matrix of 3 x 10, and 64 are planned")
	fakeFourier.failure = 8
	require.EqualError(t, s.Prepare(newTransformUse(t, r, "c2r", true, 1, 3, 10).arguments()), "cufftMakePlanMany64: CUFFT_INVALID_SIZE (8)")
	fakeFourier.failure = 0
	require.Len(t, fakeFourier.plans, 2, "a plan that could not be made is given back")
	broken := u.arguments()
	broken.Names = append([]string{}, broken.Names...)
	broken.Names[len(broken.Names)-1] = "space"
	require.ErrorContains(t, s.Call(broken), `call "cufft.c2c_c64" has no argument "workspace"`)
	require.NoError(t, s.Close())
	require.NoError(t, s.Close(), "again")
	require.Empty(t, fakeFourier.plans)
	require.True(t, strings.HasPrefix(Title("cufft"), "cu"))
}
