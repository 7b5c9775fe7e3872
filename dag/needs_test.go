// Tests of what launches need: of a device, of arguments that are no memory, and of a module's variables.

package dag_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/dag/expr"
	"github.com/dagrun/dagrun/dag/internal/fakes"
	"github.com/dagrun/dagrun/dag/outline"
	"github.com/dagrun/dagrun/internal/words"
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

// tables is a module with variables.
type tables struct {
	nonsenseLibrary
	list []dag.Symbol
}

func (l tables) Symbols() []dag.Symbol { return l.list }

func (l tables) Symbol(name string) (dag.Symbol, error) {
	for _, s := range l.list {
		if s.Name == name || strings.HasSuffix(s.Name, "::"+name) {
			return s, nil
		}
	}
	if name == "twice" {
		return dag.Symbol{}, errors.New("two variables are called twice")
	}
	return dag.Symbol{}, fmt.Errorf("%w %q", dag.ErrUnknownSymbol, name)
}

// A buffer that stands for a variable fits it, is its only buffer on a device, and is called as the module calls it.
func TestBuffersThatStandForVariables(t *testing.T) {
	var many []dag.Symbol
	for k := range 9 {
		many = append(many, dag.Symbol{Name: "v" + strings.Repeat("x", 4*k+4)})
	}
	for _, c := range []struct {
		symbol, want string
		change       func(b *dag.Buffer)
	}{
		{"m.taps", "", nil},
		{"m.filters::taps", "", nil},
		{"mm.taps", `unknown module "mm"; did you mean "m"?`, nil},
		{"filters.taps", `unknown module "filters"; declare it under modules:`, nil},
		{"bare.taps", `module "bare" has no variables`, nil},
		{"m.taps", "a variable of a module is in device memory, not in host memory; write place: device", func(b *dag.Buffer) { b.Place = dag.Host }},
		{"m.count", `module "m" has no variable "count"; it has filters::taps`, nil},
		{"m.filters::tops", `module "m" has no variable "filters::tops"; did you mean "m.filters::taps"?`, nil},
		{"empty.count", `module "empty" has no variable "count"; it has none`, nil},
		{"many.count", `module "many" has no variable "count"; it has vxxxx, vxxxxxxxx, vxxxxxxxxxxxx, vxxxxxxxxxxxxxxxx, vxxxxxxxxxxxxxxxxxxxx, vxxxxxxxxxxxxxxxxxxxxxxxx, vxxxxxxxxxxxxxxxxxxxxxxxxxxxx, vxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx`, nil},
		{"m.twice", "two variables are called twice", nil},
		{"m.taps", `buffer "b" has elements of type i32, filters::taps (f.cu:2) has f32`, func(b *dag.Buffer) { b.DType = dag.I32 }},
		{"m.taps", `buffer "b" has 8 bytes, filters::taps (f.cu:2) has 16`, func(b *dag.Buffer) { b.Shape = []int64{2} }},
	} {
		b := dag.New("p")
		b.Module("m", "f.cu", tables{list: []dag.Symbol{{Name: "filters::taps", DType: dag.F32, Bytes: 16, Initialised: true, Place: "f.cu:2"}}})
		b.Module("bare", "b.ptx", moduleOf())
		b.Module("empty", "e.cu", tables{})
		b.Module("many", "e.cu", tables{list: many})
		buffer := dag.Buffer{Name: "b", Place: dag.Device, DType: dag.F32, Shape: []int64{4}, Symbol: c.symbol}
		if c.change != nil {
			c.change(&buffer)
		}
		id := b.Buffer(buffer)
		if buffer.Place == dag.Device {
			b.OnDevice(id, 1)
		}
		other := buffer
		other.Name = "on another device"
		if c.want == "" {
			require.Equal(t, "m.filters::taps", b.BufferAt(id).Symbol)
			require.True(t, b.BufferAt(id).Initialised)
			b.Buffer(other)
		}
		g, err := b.Graph()
		if c.want != "" {
			require.Error(t, err, c.want)
			first, _, _ := strings.Cut(err.Error(), "\n") // a pipeline by hand would be refused too
			require.Equal(t, `buffer "b": `+c.want, first)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, []dag.BufferID{1, 0, -1}, []dag.BufferID{g.SymbolBuffer("m.filters::taps", 0), g.SymbolBuffer("m.filters::taps", 1), g.SymbolBuffer("m.filters::taps", 2)})
		require.False(t, g.Buffers[0].InArena())
	}
	b := dag.New("p")
	b.Module("m", "f.cu", tables{list: []dag.Symbol{{Name: "filters::taps"}}})
	for _, name := range []string{"first", "second"} {
		b.Buffer(dag.Buffer{Name: name, Place: dag.Device, DType: dag.F32, Symbol: "m.taps"})
	}
	_, err := b.Graph()
	written := tables{nonsenseLibrary{&user{uses: []dag.SymbolUse{{Symbol: dag.Symbol{Name: "count"}, Mode: dag.Write}}}}, []dag.Symbol{{Name: "count"}}}
	declared := dag.New("p")
	declared.Module("m", "f.cu", written)
	declared.Buffer(dag.Buffer{Name: "c", Place: dag.Device, DType: dag.U32, Shape: []int64{2}, Symbol: "m.count"})
	declared.Kernel("k", "m.k", nil, dag.Grid(1), dag.Block(1))
	g, fine := declared.Graph()
	require.NoError(t, fine, "the buffer says how large the variable is")
	require.Equal(t, []dag.Access{{Range: dag.Range{Hi: 8}, Mode: dag.Write}}, g.Accesses(0))
	require.EqualError(t, err, `buffer "second": filters::taps is the buffer "first" already`)
	require.Equal(t, dag.BufferID(-1), (*dag.Pipeline)(nil).SymbolBuffer("m.taps", 0))
}

// The hidden buffer of a variable that nobody declared begins as the code says, and each device has its own.
func TestHiddenBuffersOfVariables(t *testing.T) {
	b := dag.New("p")
	b.Module("m", "m.cu", nonsenseLibrary{&user{uses: []dag.SymbolUse{{Symbol: dag.Symbol{Name: "count", Bytes: 1}, Mode: dag.ReadWrite}}}})
	b.Kernel("a", "m.k", nil, dag.Grid(1), dag.Block(1))
	b.Kernel("b", "m.k", nil, dag.Grid(1), dag.Block(1), dag.RunOn(1))
	b.Kernel("c", "m.k", nil, dag.Grid(1), dag.Block(1), dag.RunOn(1))
	g, err := b.Graph()
	require.NoError(t, err)
	hidden := dag.Buffer{Name: "m.count$symbol", Place: dag.Device, DType: dag.U8, Scratch: true, Symbol: "m.count", Initialised: true, Shape: []int64{1}, Bytes: 1}
	elsewhere := hidden
	elsewhere.Name, elsewhere.Device = "m.count$symbol1", 1
	require.Equal(t, []dag.Buffer{hidden, elsewhere}, g.Buffers)
	require.Equal(t, []dag.Edge{{From: 1, To: 2, Buffer: 1, Why: dag.RAW, Lo: 0, Hi: 1}}, g.Edges())
}

// A structure takes no buffer, no number and no texture in its place, and its pointers may be null.
func TestArgumentsForStructures(t *testing.T) {
	declare := func(arg func(b *dag.Builder, d dag.BufferID) any) (*dag.Graph, error) {
		b := dag.New("p")
		b.Module("m", "m.cu", sceneKernel())
		b.Kernel("k", "m.k", dag.Args{arg(b, b.Device("d", dag.F32, 8))}, dag.Grid(1), dag.Block(1))
		return b.Graph()
	}
	for _, c := range []struct {
		want string
		arg  func(b *dag.Builder, d dag.BufferID) any
	}{
		{`must be a structure, got the buffer "d"`, func(b *dag.Builder, d dag.BufferID) any { return b.In(d) }},
		{"must be a structure, got the number 3", func(*dag.Builder, dag.BufferID) any { return 3 }},
		{"must be a structure, got a texture", func(b *dag.Builder, d dag.BufferID) any { return b.Whole(d).Through(dag.Texture{}) }},
	} {
		_, err := declare(c.arg)
		require.EqualError(t, err, `node "k": argument s of kernel "m.k" `+c.want+`; write {struct: [eye, n, out, view, last]}`)
	}
	_, err := declare(func(*dag.Builder, dag.BufferID) any { return nil })
	require.EqualError(t, err, `node "k": argument s of kernel "m.k" is no pointer, so it cannot be null`)
	g, err := declare(func(b *dag.Builder, d dag.BufferID) any {
		return dag.Values{dag.Values{1, 2, 3}, 4, nil, dag.Values{dag.Values{5, 6, 7}, b.Slice(d, 0, 4)}, 8}
	})
	require.NoError(t, err)
	require.Equal(t, dag.Arg{DType: dag.U64, Within: 1, Offset: 16}, g.Nodes[0].Launch.Args[1])
	b := dag.New("p")
	b.Module("m", "m.cu", moduleOf(dag.KernelParam{Name: "s", Struct: scene, Size: scene.Size}))
	d := b.Device("d", dag.F32, 8)
	b.Kernel("k", "m.k", dag.Args{dag.Values{dag.Values{1, 2, 3}, 4, b.Whole(d), dag.Values{dag.Values{5, 6, 7}, nil}, 8}}, dag.Grid(1), dag.Block(1))
	_, err = b.Graph()
	require.ErrorContains(t, err, `node "k": the library describes the structure s of kernel "m.k" without its pointers`)
	for _, param := range []dag.KernelParam{{Size: 8, Buffer: true}, {Size: 8, Texture: true}, {Size: 8, DType: dag.I64}} {
		b := dag.New("p")
		b.Module("m", "m.cu", moduleOf(param))
		b.Kernel("k", "m.k", dag.Args{dag.Values{dag.Scalar{DType: dag.I64, Value: 1}}}, dag.Grid(1), dag.Block(1))
		_, err := b.Graph()
		require.ErrorContains(t, err, ", got a structure")
	}
}

// Members that the code does not name lie where a C compiler puts numbers of their types, and are nothing but such numbers.
func TestStructuresOfUnknownMembers(t *testing.T) {
	typed := func(dtype dag.DType, v any) dag.Scalar { return dag.Scalar{DType: dtype, Value: v} }
	for _, c := range []struct {
		size   int32
		values dag.Values
		bytes  string
		want   string
	}{
		{8, dag.Values{typed(dag.U8, 1), typed(dag.I32, 2)}, "\x01\x00\x00\x00\x02\x00\x00\x00", ""},
		{8, dag.Values{typed(dag.I32, 2), typed(dag.U8, 1)}, "\x02\x00\x00\x00\x01\x00\x00\x00", ""},
		{3, dag.Values{typed(dag.U8, 1), typed(dag.U8, 2), typed(dag.U8, 3)}, "\x01\x02\x03", ""},
		{16, dag.Values{typed(dag.U16, 258), typed(dag.F64, 0)}, "\x02\x01" + strings.Repeat("\x00", 14), ""},
		{4, dag.Values{typed(dag.U8, 1), typed(dag.I32, 2)}, "", "has 4 bytes, the members that are given have 8"},
		{1, dag.Values{typed(dag.I16, 2)}, "", "has 1 byte, the members that are given have 2"},
		{8, dag.Values{typed(dag.I32, 2), 3}, "", "has members that the code does not name; give a list of numbers with their types, such as {struct: [{f32: 1}, {i32: 2}]}"},
		{8, dag.Values{dag.Values{typed(dag.I32, 2)}}, "", "has members that the code does not name; give a list of numbers with their types, such as {struct: [{f32: 1}, {i32: 2}]}"},
		{8, dag.Values{typed(dag.I32, 2), nil}, "", "has members that the code does not name, so that a buffer cannot be one of them; name a source in CUDA C instead"},
		{8, dag.Values{typed(dag.I32, 2), typed(dag.U8, 256)}, "", "has a member 2, which is 256, which does not fit in u8"},
	} {
		b := dag.New("p")
		b.Module("m", "m.ptx", moduleOf(dag.KernelParam{Size: c.size}))
		b.Kernel("k", "m.k", dag.Args{c.values}, dag.Grid(1), dag.Block(1))
		g, err := b.Graph()
		if c.want != "" {
			require.EqualError(t, err, `node "k": argument 1 of kernel "m.k" `+c.want)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, dag.Arg{Struct: c.bytes}, g.Nodes[0].Launch.Args[0])
	}
}

// shaped is a kernel with another form, which needs scratch.
type shaped struct {
	nonsense
	form *nonsense
}

func (s *shaped) Form([]dag.Arg) dag.LaunchKernel { return s.form }

// The form of a kernel that a launch takes may need scratch of its own; several scratch buffers are told apart by number.
func TestFormsOfKernels(t *testing.T) {
	memory, scratch := dag.KernelParam{Size: 8, Buffer: true, DType: dag.F32, Mode: dag.ReadWrite}, dag.KernelParam{Size: 8, Buffer: true, Scratch: true}
	form := &nonsense{params: []dag.KernelParam{memory, scratch, scratch, scratch}, info: dag.LaunchInfo{HasHint: true, Extents: []int64{4, 5, 0, 7}}}
	b := dag.New("p")
	b.Use(nonsenseLibrary{&shaped{nonsense: nonsense{params: []dag.KernelParam{memory}}, form: form}})
	d := b.Device("d", dag.F32, 8)
	b.Kernel("k", "k", dag.Args{b.Whole(d)})
	g, err := b.Graph()
	require.NoError(t, err)
	require.Equal(t, dag.LaunchKernel(form), g.Nodes[0].Launch.Kernel)
	var hidden []string
	for _, buffer := range g.Buffers[1:] {
		hidden = append(hidden, fmt.Sprint(buffer.Name, " ", buffer.Bytes, " ", buffer.Scratch))
	}
	require.Equal(t, []string{"k$scratch 5 true", "k$scratch2 0 true", "k$scratch3 7 true"}, hidden)
	require.Equal(t, []dag.Access{{Range: dag.Range{Buffer: 0, Lo: 0, Hi: 16}, Mode: dag.ReadWrite}, {Range: dag.Range{Buffer: 1, Lo: 0, Hi: 5}, Mode: dag.Write},
		{Range: dag.Range{Buffer: 2}, Mode: dag.Write}, {Range: dag.Range{Buffer: 3, Lo: 0, Hi: 7}, Mode: dag.Write}}, g.Accesses(0))
	form.info.Extents[2] = -1
	b = dag.New("p")
	b.Use(nonsenseLibrary{form})
	b.Kernel("k", "k", dag.Args{b.Whole(b.Device("d", dag.F32, 8))})
	_, err = b.Graph()
	require.EqualError(t, err, `node "k": the library describes the launch of kernel "k" wrongly: parameter 3 is scratch of -1 bytes`)
}

// What a node is launched with comes from the library unless the file says otherwise, and then the work does too.
func TestLaunchesTakeTheirSizesFromTheFile(t *testing.T) {
	hint := dag.LaunchInfo{HasHint: true, Grid: [3]uint32{2, 1, 1}, Block: [3]uint32{32, 1, 1}, Shared: 8, Work: dag.Work{Blocks: 7, Threads: 5, Shared: 3, Flops: 9}}
	for _, c := range []struct {
		options []dag.LaunchOption
		launch  dag.Launch
		work    dag.Work
	}{
		{nil, dag.Launch{Grid: [3]uint32{2, 1, 1}, Block: [3]uint32{32, 1, 1}, Shared: 8}, hint.Work},
		{[]dag.LaunchOption{dag.Grid(3, 2)}, dag.Launch{Grid: [3]uint32{3, 2, 1}, Block: [3]uint32{32, 1, 1}, Shared: 8}, dag.Work{Blocks: 6, Threads: 32, Shared: 8, Flops: 9}},
		{[]dag.LaunchOption{dag.Block(4, 1, 2)}, dag.Launch{Grid: [3]uint32{2, 1, 1}, Block: [3]uint32{4, 1, 2}, Shared: 8}, dag.Work{Blocks: 2, Threads: 8, Shared: 8, Flops: 9}},
		{[]dag.LaunchOption{dag.Shared(0)}, dag.Launch{Grid: [3]uint32{2, 1, 1}, Block: [3]uint32{32, 1, 1}}, dag.Work{Blocks: 2, Threads: 32, Flops: 9}},
		{[]dag.LaunchOption{dag.Grid(3, 0)}, dag.Launch{Grid: [3]uint32{0, 1, 1}, Block: [3]uint32{32, 1, 1}, Shared: 8}, dag.Work{Threads: 32, Shared: 8, Flops: 9}},
	} {
		b := dag.New("p")
		kernel := &nonsense{info: hint}
		b.Use(nonsenseLibrary{kernel})
		b.Kernel("k", "k", nil, c.options...)
		g, err := b.Graph()
		require.NoError(t, err)
		c.launch.Name, c.launch.Module, c.launch.Kernel, c.launch.Args = "k", -1, kernel, []dag.Arg{}
		require.Equal(t, &c.launch, g.Nodes[0].Launch)
		require.Equal(t, c.work, g.Nodes[0].Work)
	}
}

// failing is a library that says what is wrong with an argument.
type failing struct {
	nonsenseLibrary
	err error
}

func (f failing) Kernel(string, []dag.DType) (dag.LaunchKernel, error) { return nil, f.err }

// failingCalls are calls that say what is wrong with an argument.
type failingCalls struct {
	wordCalls
	err error
}

func (f failingCalls) Calls() dag.Calls                                     { return f }
func (f failingCalls) Kernel(string, []dag.DType) (dag.LaunchKernel, error) { return nil, f.err }

// A problem of a launch names its argument, where it is one argument's, so that a file can point at it.
func TestProblemsNameTheirArguments(t *testing.T) {
	whole := []dag.ArgumentSpec{{IsBuffer: true, Range: dag.Range{Buffer: 0, Hi: 32}}, {Value: expr.Int(3)}}
	wrong := func(index int) error { return &dag.ArgumentError{Param: "n", Index: index, Problem: "is odd"} }
	fake := func(name string) *dag.LaunchSpec {
		return &dag.LaunchSpec{Label: name, Kernel: name, Module: -1, Device: -1, Args: whole}
	}
	call := &dag.LaunchSpec{Label: "k", Kernel: "k", Module: -1, Device: -1, Call: true, Names: []string{"x", "a", "b", "c", "d"}, Args: []dag.ArgumentSpec{whole[0], whole[1], whole[1], whole[1], whole[1]}}
	for _, c := range []struct {
		library dag.Library
		spec    *dag.LaunchSpec
		want    dag.LaunchProblem
	}{
		{failing{err: wrong(1)}, fake("k"), dag.LaunchProblem{Part: dag.PartArg, Arg: 1, Message: `argument n of kernel "k" is odd`}},
		{failing{err: wrong(0)}, fake("k"), dag.LaunchProblem{Part: dag.PartArg, Arg: 0, Message: `argument n of kernel "k" is odd`}},
		{failing{err: wrong(2)}, fake("k"), dag.LaunchProblem{Part: dag.PartArgs, Arg: -1, Message: `argument n of kernel "k" is odd`}},
		{failing{err: wrong(-1)}, fake("k"), dag.LaunchProblem{Part: dag.PartArgs, Arg: -1, Message: `argument n of kernel "k" is odd`}},
		{failing{err: errors.New("it is gone")}, fake("k"), dag.LaunchProblem{Part: dag.PartArgs, Arg: -1, Message: `kernel "k": it is gone`}},
		{failingCalls{err: wrong(4)}, call, dag.LaunchProblem{Part: dag.PartArgs, Arg: -1, Message: `argument n of call "k" is odd`}}, // e was left out
		{failingCalls{err: wrong(5)}, call, dag.LaunchProblem{Part: dag.PartArg, Arg: 0, Message: `argument n of call "k" is odd`}},
		{fakes.Kernels, fake("saxpi"), dag.LaunchProblem{Part: dag.PartKernel, Arg: -1, Message: `unknown kernel "saxpi"`, Hint: `did you mean "saxpy"?`}},
		{fakes.Kernels, fake("tiny"), dag.LaunchProblem{Part: dag.PartArg, Arg: 0, Message: `argument k of kernel "tiny" must be a number (u8), got the buffer "d"`}},
		{nil, fake("k"), dag.LaunchProblem{Part: dag.PartKernel, Arg: -1, Message: `kernel "k": there is no library to find it in`}},
		{fakes.Kernels, &dag.LaunchSpec{Label: "sum", Kernel: "sum", Module: -1, Device: -1, Args: whole, Names: []string{"x", "m"}},
			dag.LaunchProblem{Part: dag.PartArg, Arg: 1, Message: `kernel "sum" has no parameter "m"`, Hint: `it has n, x, result`}},
		{fakes.Kernels, &dag.LaunchSpec{Label: "saxpy", Kernel: "saxpy", Module: -1, Device: -1, Args: whole, Names: []string{"x", "alpah"}},
			dag.LaunchProblem{Part: dag.PartArg, Arg: 1, Message: `kernel "saxpy" has no parameter "alpah"`, Hint: `did you mean "alpha"?`}},
		{fakes.Kernels, &dag.LaunchSpec{Label: "sum", Kernel: "sum", Module: -1, Device: -1, Args: whole, Names: []string{"x", "n"}},
			dag.LaunchProblem{Part: dag.PartArgs, Arg: -1, Message: `kernel "sum" is given no result`}},
		{fakes.Kernels, &dag.LaunchSpec{Label: "sun", Kernel: "sun", Module: -1, Device: -1, Args: whole, Names: []string{"x", "n"}},
			dag.LaunchProblem{Part: dag.PartKernel, Arg: -1, Message: `unknown kernel "sun"`, Hint: `did you mean "sum"?`}},
		{moduleOf(), &dag.LaunchSpec{Label: "k", Kernel: "k", Module: -1, Device: -1, Args: whole, Names: []string{"x", "n"}},
			dag.LaunchProblem{Part: dag.PartArgs, Arg: -1, Message: `kernel "k" has no names for its parameters`, Hint: "give its arguments as a list"}},
	} {
		b := dag.New("p")
		b.Device("d", dag.F32, 8)
		node := &dag.Node{Name: "k"}
		accesses, problems := dag.DraftOf(b).Launch(c.library, node, c.spec)
		require.Empty(t, accesses)
		require.Equal(t, []dag.LaunchProblem{c.want}, problems)
		require.Equal(t, &dag.Node{Name: "k"}, node, "a node with a problem stays as it was")
		require.False(t, dag.DraftOf(b).Fits(c.library, *node, c.spec))
	}
	b := dag.New("p")
	b.Device("d", dag.F32, 8)
	spec := &dag.LaunchSpec{Label: "sum", Kernel: "sum", Module: -1, Device: -1, Names: []string{"result", "n", "x"}, Args: []dag.ArgumentSpec{
		{IsBuffer: true, Range: dag.Range{Buffer: 0, Hi: 4}, Mode: dag.Write}, whole[1], {IsBuffer: true, Range: dag.Range{Buffer: 0, Lo: 4, Hi: 32}}}}
	require.True(t, dag.DraftOf(b).Fits(fakes.Kernels, dag.Node{}, spec))
	_, problems := dag.DraftOf(b).Launch(fakes.Kernels, &dag.Node{Name: "k"}, spec)
	require.Empty(t, problems)
	require.Equal(t, []int{1, 2, 0, -1}, spec.Origin)
	require.Equal(t, []dag.Mode{0, 0, dag.Write, 0}, spec.Declared)
}

// A call is told how large its matrices are: the rows and columns of a slice, and where its next row begins.
func TestMeasuresOfArguments(t *testing.T) {
	measure := func(what dag.Measure) dag.KernelParam {
		return dag.KernelParam{Size: 8, DType: dag.I64, Measured: dag.Measured{Of: 1, What: what}}
	}
	memory := dag.KernelParam{Size: 8, Buffer: true, DType: dag.F32, Mode: dag.Read, Tile: true}
	length := dag.KernelParam{Size: 8, DType: dag.I64, LengthOf: 1}
	for _, c := range []struct {
		shape []int64
		of    func(b *dag.Builder, d dag.BufferID) dag.Range
		want  []int64 // elements, rows, columns, row length; row length of a tile
	}{
		{[]int64{4, 8}, (*dag.Builder).Whole, []int64{32, 4, 8, 8, 0}},
		{[]int64{4, 8}, func(b *dag.Builder, d dag.BufferID) dag.Range { return b.Slice(d, 1, 3) }, []int64{16, 2, 8, 8, 0}},
		{[]int64{4, 8}, func(b *dag.Builder, d dag.BufferID) dag.Range { return b.Tile(d, 1, 4, 2, 7) }, []int64{15, 3, 5, 8, 8}},
		{[]int64{4, 8}, func(b *dag.Builder, d dag.BufferID) dag.Range { return b.Tile(d, 1, 2, 2, 7) }, []int64{5, 1, 5, 8, 0}},
		{[]int64{0, 8}, (*dag.Builder).Whole, []int64{0, 0, 0, 0, 0}},
		{[]int64{4, 0}, (*dag.Builder).Whole, []int64{0, 4, 0, 0, 0}},
		{[]int64{4, 8}, func(_ *dag.Builder, d dag.BufferID) dag.Range { return dag.Range{Buffer: d, Lo: 8, Hi: 64} }, nil},
		{[]int64{4, 8}, func(_ *dag.Builder, d dag.BufferID) dag.Range { return dag.Range{Buffer: d, Lo: 0, Hi: 40} }, nil},
		{[]int64{8}, (*dag.Builder).Whole, nil},
		{[]int64{2, 2, 2}, (*dag.Builder).Whole, nil},
	} {
		b := dag.New("p")
		b.Module("m", "m.cu", moduleOf(memory, measure(dag.Elements), measure(dag.Rows), measure(dag.Columns), measure(dag.RowLength), length))
		d := b.Device("d", dag.F32, c.shape...)
		b.Kernel("k", "m.k", dag.Args{c.of(b, d)}, dag.Grid(1), dag.Block(1))
		g, err := b.Graph()
		if c.want == nil {
			require.EqualError(t, err, fmt.Sprintf(`node "k": argument 1 of kernel "m.k" must be a matrix, but "d" has %s`, words.Count(int64(len(c.shape)), "dimension", "dimensions")))
			continue
		}
		require.NoError(t, err)
		for k, want := range c.want {
			require.Equal(t, dag.Arg{DType: dag.I64, Bits: uint64(want)}, g.Nodes[0].Launch.Args[1+k], "%v, %d", c.shape, k)
		}
	}
	for _, param := range []dag.KernelParam{{Scratch: true}, {Status: true}, {LengthOf: 1}, {Measured: dag.Measured{Of: 1}}, {Within: 1}} {
		require.True(t, param.Hidden(), "%+v", param)
	}
	status := dag.Buffer{Name: "multiply$status", Scratch: true, Expect: &dag.Expect{}}
	node, ok := status.Status()
	require.Equal(t, "multiply", node)
	require.True(t, ok)
	for _, other := range []dag.Buffer{{Name: "multiply$status", Scratch: true}, {Name: "multiply$status", Expect: status.Expect}, {Name: "multiply$scratch", Scratch: true, Expect: status.Expect}} {
		_, ok := other.Status()
		require.False(t, ok, "%+v", other)
	}
	require.False(t, (&dag.KernelParam{Size: 8, Buffer: true}).Hidden())
	require.False(t, (*dag.KernelParam)(nil).Hidden())
}
