// Tests of what launches need: of a device, of arguments that are no memory, and of a module's variables.

package dag_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/dag/outline"
)

// targeted is a kernel whose code was made for sm_89.
type targeted struct{ nonsense }

func (*targeted) Capability() int { return 89 }

// Each device runs what it has room and instructions for, and no more.
func TestLaunchesBeyondADevice(t *testing.T) {
	for _, c := range []struct {
		kernel     dag.LaunchKernel
		options    []dag.LaunchOption
		capability int
		want       string
	}{
		{&nonsense{}, nil, 50, ""},
		{&nonsense{}, []dag.LaunchOption{dag.Shared(48 << 10)}, 50, ""},
		{&nonsense{}, []dag.LaunchOption{dag.Shared(48<<10 + 1)}, 62, "takes 48 KiB of shared memory, and a block of sm_62 has at most 48 KiB"},
		{&nonsense{}, []dag.LaunchOption{dag.Shared(96 << 10)}, 70, ""},
		{&nonsense{}, []dag.LaunchOption{dag.Shared(96<<10 + 1)}, 72, "a block of sm_72 has at most 96 KiB"},
		{&nonsense{}, []dag.LaunchOption{dag.Shared(64 << 10)}, 75, ""},
		{&nonsense{}, []dag.LaunchOption{dag.Shared(64<<10 + 1)}, 75, "a block of sm_75 has at most 64 KiB"},
		{&nonsense{}, []dag.LaunchOption{dag.Shared(163 << 10)}, 80, ""},
		{&nonsense{}, []dag.LaunchOption{dag.Shared(163<<10 + 1)}, 80, "a block of sm_80 has at most 163 KiB"},
		{&nonsense{}, []dag.LaunchOption{dag.Shared(99 << 10)}, 86, ""},
		{&nonsense{}, []dag.LaunchOption{dag.Shared(99<<10 + 1)}, 86, "a block of sm_86 has at most 99 KiB"},
		{&nonsense{}, []dag.LaunchOption{dag.Shared(163 << 10)}, 87, ""},
		{&nonsense{}, []dag.LaunchOption{dag.Shared(99<<10 + 1)}, 89, "a block of sm_89 has at most 99 KiB"},
		{&nonsense{}, []dag.LaunchOption{dag.Shared(227 << 10)}, 90, ""},
		{&nonsense{}, []dag.LaunchOption{dag.Shared(227<<10 + 1)}, 103, "a block of sm_103 has at most 227 KiB"},
		{&nonsense{}, []dag.LaunchOption{dag.Shared(99<<10 + 1)}, 121, "a block of sm_121 has at most 99 KiB"},
		{&nonsense{}, []dag.LaunchOption{dag.Shared(1 << 30)}, 0, ""},
		{&nonsense{}, []dag.LaunchOption{dag.Cluster(2)}, 89, "is launched in clusters of [2] blocks, which sm_89 does not have; leave out cluster:, or use a GPU of sm_90 or newer"},
		{&nonsense{}, []dag.LaunchOption{dag.Cluster(2)}, 90, ""},
		{&nonsense{}, []dag.LaunchOption{dag.Cooperative()}, 53, "is a cooperative launch, which sm_53 does not have; leave out cooperative:, or use a GPU of sm_60 or newer"},
		{&nonsense{}, []dag.LaunchOption{dag.Cooperative()}, 60, ""},
		{&targeted{}, nil, 86, "launches code that was made for sm_89, which sm_86 does not load; compile it for sm_86, or use a GPU of sm_89 or newer"},
		{&targeted{}, nil, 89, ""},
		{&targeted{}, nil, 90, ""},
	} {
		b := dag.New("p")
		b.Module("m", "m.cu", nonsenseLibrary{c.kernel})
		b.Repeat("loop", dag.Loop{Times: 2}, func() {
			b.Kernel("k", "m.k", nil, append([]dag.LaunchOption{dag.Grid(2), dag.Block(1)}, c.options...)...)
		})
		g, err := b.Graph()
		require.NoError(t, err)
		beyond := g.Beyond(c.capability)
		if c.want == "" {
			require.Empty(t, beyond, "sm_%d", c.capability)
			continue
		}
		require.Len(t, beyond, 1, c.want)
		require.Equal(t, "k", beyond[0].Node.Name)
		require.Contains(t, beyond[0].Why+"; "+beyond[0].Fix, c.want)
	}
}

// Null stands for a pointer of a kernel of a module, and for nothing else.
func TestNullArguments(t *testing.T) {
	for _, c := range []struct {
		param dag.KernelParam
		want  string
	}{
		{dag.KernelParam{Size: 8, Buffer: true, Mode: dag.Read, DType: dag.F32}, ""},
		{dag.KernelParam{Size: 8}, ""},
		{dag.KernelParam{Size: 4}, "is no pointer, so it cannot be null"},
		{dag.KernelParam{Size: 8, DType: dag.I64}, "is no pointer, so it cannot be null"},
		{dag.KernelParam{Size: 8, Texture: true}, "is no pointer, so it cannot be null"},
		{dag.KernelParam{Size: 8, Code: dag.CodeUse{Fetch: dag.Fetch{Seen: true}}}, "is no pointer, so it cannot be null"},
	} {
		for _, ofModule := range []bool{true, false} {
			b := dag.New("p")
			name, want := "k", "must not be null; only kernels of modules take null pointers"
			if b.Use(moduleOf(c.param)); ofModule {
				b.Module("m", "m.cu", moduleOf(c.param))
				name, want = "m.k", c.want
			}
			b.Kernel("k", name, dag.Args{nil}, dag.Grid(1), dag.Block(1))
			if _, err := b.Graph(); want == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, want, "%+v", c.param)
			}
		}
	}
}

// The pointers of a structure lie where its members do, those of arrays and of structures within it too.
func TestPointersInStructures(t *testing.T) {
	inner := &dag.Structure{Name: "View", Size: 24, Align: 8, Members: []dag.Member{
		{Name: "n", DType: dag.I32}, {Name: "data", Offset: 8, Count: 2, DType: dag.F32, Mode: dag.ReadWrite}}}
	outer := &dag.Structure{Name: "Scene", Size: 72, Align: 8, Members: []dag.Member{
		{Name: "eye", DType: dag.F32, Count: 3}, {Name: "out", Offset: 16, Mode: dag.Write}, {Name: "views", Offset: 24, Count: 2, Struct: inner}}}
	require.Equal(t, []dag.Pointer{{"data[0]", 8, dag.F32, dag.ReadWrite}, {"data[1]", 16, dag.F32, dag.ReadWrite}}, inner.Pointers())
	require.Equal(t, []dag.Pointer{{"out", 16, dag.InvalidDType, dag.Write},
		{"views[0].data[0]", 32, dag.F32, dag.ReadWrite}, {"views[0].data[1]", 40, dag.F32, dag.ReadWrite}, {"views[1].data[0]", 56, dag.F32, dag.ReadWrite}, {"views[1].data[1]", 64, dag.F32, dag.ReadWrite}}, outer.Pointers())
	require.Equal(t, "Scene {eye, out, views}", outer.String())
	for _, dtype := range []dag.DType{dag.Vector(dag.F32, 3), dag.Vector(dag.F16, 2), dag.C128} {
		s := dag.VectorStructure(dtype)
		require.EqualValues(t, dtype.Size(), s.Size)
		require.Len(t, s.Members, dtype.Components())
		for k, m := range s.Members {
			require.Equal(t, dag.Member{Name: "xyzw"[k : k+1], Offset: int32(k) * int32(dtype.Component().Size()), DType: dtype.Component()}, m)
			require.EqualValues(t, dtype.Component().Size(), m.Size())
		}
	}
	require.Nil(t, dag.VectorStructure(dag.F32))
	require.Nil(t, dag.VectorStructure(99))
}

// user is a kernel that uses variables of its module.
type user struct {
	nonsense
	uses []dag.SymbolUse
}

func (u *user) SymbolUses() []dag.SymbolUse { return u.uses }

// Launches that share a variable which one of them writes are ordered, whether somebody has declared it or not; those of another device have their own.
func TestLaunchesThatShareAVariable(t *testing.T) {
	symbol := dag.Symbol{Name: "count", Bytes: 4}
	reads := &user{uses: []dag.SymbolUse{{Symbol: symbol, Mode: dag.Read}}}
	writes := &user{uses: []dag.SymbolUse{{Symbol: symbol, Mode: dag.Write}}}
	for _, c := range []struct {
		first, second *user
		device        int
		edges         int
	}{{reads, reads, 0, 0}, {writes, reads, 0, 1}, {reads, writes, 0, 0}, {writes, writes, 0, 1}, {writes, reads, 1, 0}} { // who reads first reads what the module brought
		b := dag.New("p")
		b.Module("m", "m.cu", pickLibrary{"a": c.first, "b": c.second})
		b.Kernel("a", "m.a", nil, dag.Grid(1), dag.Block(1))
		b.Kernel("b", "m.b", nil, dag.Grid(1), dag.Block(1), dag.RunOn(c.device))
		g, err := b.Graph()
		require.NoError(t, err)
		require.Len(t, g.Preds(1), c.edges, "%v", c)
		for _, a := range g.Accesses(0) {
			require.Equal(t, [2]int64{0, 4}, [2]int64{a.Lo, a.Hi}, "all of the variable")
		}
	}
	for _, symbol := range []string{"count", ".count", "m.", "."} {
		b := dag.New("p")
		b.Module("m", "m.cu", moduleOf())
		b.Buffer(dag.Buffer{Name: "c", Place: dag.Device, DType: dag.U32, Shape: []int64{1}, Symbol: symbol})
		_, err := b.Graph()
		require.EqualError(t, err, `buffer "c": "`+symbol+`" is no variable of a module; write symbol: MODULE.VARIABLE`)
	}
	for _, c := range []struct {
		symbol dag.Symbol
		buffer dag.Buffer
		want   string
	}{
		{dag.Symbol{Name: "x", Bytes: 1, DType: dag.U8}, dag.Buffer{Name: "b", DType: dag.U8, Bytes: 1}, ""},
		{dag.Symbol{Name: "x", Bytes: 1, DType: dag.U8}, dag.Buffer{Name: "b", DType: dag.U8, Bytes: 2}, `buffer "b" has 2 bytes, x has 1`},
		{dag.Symbol{Name: "x"}, dag.Buffer{Name: "b", DType: dag.U8, Bytes: 2}, ""},
		{dag.Symbol{Name: "x", Place: "k.cu:3", Bytes: 8, DType: dag.F32}, dag.Buffer{Name: "b", DType: dag.I32, Bytes: 8}, `buffer "b" has elements of type i32, x (k.cu:3) has f32`},
		{dag.Symbol{Name: "x", Bytes: 8, DType: dag.F32}, dag.Buffer{Name: "b", DType: dag.C64, Bytes: 8}, ""},
	} {
		require.Equal(t, c.want, c.symbol.Problem(&c.buffer))
	}
}

// pickLibrary has kernels by name.
type pickLibrary map[string]*user

func (l pickLibrary) Names() []string { return nil }
func (l pickLibrary) Kernel(name string, _ []dag.DType) (dag.LaunchKernel, error) {
	return l[name], nil
}
func (l pickLibrary) Map(*dag.MapSpec) (dag.LaunchKernel, error) { return nil, dag.ErrUnknownKernel }

// What a launch is given must fit its kernel: grids, block sizes, elements, and uses that the code shows.
func TestLaunchesFitTheirKernels(t *testing.T) {
	number, memory := dag.KernelParam{Size: 8, DType: dag.I64}, dag.KernelParam{Size: 8, Buffer: true, DType: dag.F32, Mode: dag.ReadWrite}
	code := func(mode dag.Mode, decided bool) dag.KernelParam {
		return dag.KernelParam{Size: 8, Code: dag.CodeUse{Decided: decided, Mode: mode, Written: "k.cu:3"}}
	}
	const shape = "is only correct with its own grid, block and shared memory; leave grid:, block: and shared: out"
	fixed := dag.LaunchInfo{Fixed: true, HasHint: true, Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{1, 1, 1}}
	grid := []dag.LaunchOption{dag.Grid(1), dag.Block(1)}
	type launch struct {
		kernel  *nonsense
		args    func(b *dag.Builder, d dag.BufferID) dag.Args
		options []dag.LaunchOption
		want    string
	}
	whole := func(b *dag.Builder, d dag.BufferID) dag.Args { return dag.Args{b.Whole(d)} }
	as := func(mode dag.Mode) func(*dag.Builder, dag.BufferID) dag.Args {
		return func(b *dag.Builder, d dag.BufferID) dag.Args {
			return dag.Args{dag.Access{Range: b.Whole(d), Mode: mode}}
		}
	}
	none := func(*dag.Builder, dag.BufferID) dag.Args { return nil }
	for _, c := range []launch{
		{&nonsense{}, none, nil, `kernel "m.k" needs a grid; write grid: and the number of blocks`},
		{&nonsense{}, none, grid, ""},
		{&nonsense{info: fixed}, none, nil, ""},
		{&nonsense{info: fixed}, none, []dag.LaunchOption{dag.Grid(1)}, shape},
		{&nonsense{info: fixed}, none, []dag.LaunchOption{dag.Block(1)}, shape},
		{&nonsense{info: fixed}, none, []dag.LaunchOption{dag.Shared(0)}, shape},
		{&nonsense{params: []dag.KernelParam{memory}, info: dag.LaunchInfo{Extents: []int64{8}}}, as(dag.ReadWrite), grid, ""},
		{&nonsense{params: []dag.KernelParam{memory}, info: dag.LaunchInfo{Extents: []int64{9}}}, as(dag.ReadWrite), grid, "touches 9 elements, d has 8"},
		{&nonsense{params: []dag.KernelParam{memory}, info: dag.LaunchInfo{Extents: []int64{-1}}}, as(dag.ReadWrite), grid, ""},
		{&nonsense{params: []dag.KernelParam{number}, info: dag.LaunchInfo{Extents: []int64{9}}}, func(*dag.Builder, dag.BufferID) dag.Args { return dag.Args{5} }, grid, ""},
		{&nonsense{params: []dag.KernelParam{memory}}, as(9), grid, "an access must be in, out, inout or unused"},
		{&nonsense{params: []dag.KernelParam{memory}}, as(0), grid, "an access must be in, out, inout or unused"},
		{&nonsense{params: []dag.KernelParam{memory}}, as(dag.Untouched), grid, ""},
		{&nonsense{params: []dag.KernelParam{code(dag.Write, true)}}, whole, grid, ""},
		{&nonsense{params: []dag.KernelParam{code(dag.Write, true)}}, as(dag.Read), grid, "is written (k.cu:3), but the file declares {in: d}"},
		{&nonsense{params: []dag.KernelParam{code(dag.Write, false)}}, as(dag.Read), grid, "is written (k.cu:3), but the file declares {in: d}"},
		{&nonsense{params: []dag.KernelParam{code(dag.Read, true)}}, as(dag.Write), grid, "is never written, but the file declares {out: d}"},
		{&nonsense{params: []dag.KernelParam{code(dag.Read, false)}}, as(dag.Write), grid, ""},
		{&nonsense{params: []dag.KernelParam{code(dag.Read, true)}}, as(dag.Read), grid, ""},
		{&nonsense{params: []dag.KernelParam{{Size: 8, Buffer: true, DType: dag.F32, Mode: dag.Read, Code: dag.CodeUse{Mode: dag.Write, Written: "k.cu:3"}}}}, whole, grid, "is written (k.cu:3), although its type is a pointer to const"},
	} {
		b := dag.New("p")
		b.Module("m", "m.cu", nonsenseLibrary{c.kernel})
		b.Kernel("k", "m.k", c.args(b, b.Device("d", dag.F32, 8)), c.options...)
		if _, err := b.Graph(); c.want == "" {
			require.NoError(t, err, "%+v", c.kernel)
		} else {
			require.ErrorContains(t, err, c.want)
		}
	}
	for _, bytes := range []int64{0, 4} {
		b := dag.New("p")
		b.Module("m", "m.cu", nonsenseLibrary{&user{uses: []dag.SymbolUse{{Symbol: dag.Symbol{Name: "app::count", Bytes: bytes}, Mode: dag.Write}}}})
		b.Kernel("k", "m.k", nil, grid...)
		if _, err := b.Graph(); bytes > 0 {
			require.NoError(t, err)
		} else {
			require.ErrorContains(t, err, `kernel "m.k" uses the variable app::count, which launches share and whose size is not known; declare it under buffers: count: {place: device, symbol: m.app::count, dtype: ..., shape: [...]}`)
		}
	}
	b := dag.New("p")
	named := number
	named.Name = "n"
	b.Module("m", "m.cu", moduleOf(number, named))
	node := b.Kernel("k", "m.k", dag.Args{5, 6}, grid...)
	g, err := b.Graph()
	require.NoError(t, err)
	require.Equal(t, []string{"kernel=m.k", "argument 1=5", "n=6", "grid=[1 1 1]", "block=[1 1 1]"}, outline.Parts(g, node)[:5])
}
