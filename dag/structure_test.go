// Tests of structures that kernels take by value: their bytes, what is given for their pointers, and what does not fit.

package dag_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/dag/file"
)

var scene = &dag.Structure{Name: "Scene", Size: 56, Align: 8, Members: []dag.Member{
	{Name: "eye", DType: dag.Vector(dag.F32, 3)}, {Name: "n", Offset: 12, DType: dag.I16}, {Name: "out", Offset: 16, DType: dag.F32, Mode: dag.Write},
	{Name: "view", Offset: 24, Struct: &dag.Structure{Name: "View", Size: 24, Align: 8, Members: []dag.Member{{Name: "w", Offset: 4, Count: 3, DType: dag.U16}, {Name: "data", Offset: 16, DType: dag.F32, Mode: dag.Read}}}},
	{Name: "last", Offset: 48, DType: dag.F64}}}

// sceneKernel takes a scene by value, whose pointers are arguments of their own.
func sceneKernel() dag.Library { return moduleOf(sceneParams()...) }

// sceneParams are a scene, more parameters, and the pointers of the scene.
func sceneParams(more ...dag.KernelParam) []dag.KernelParam {
	params := append([]dag.KernelParam{{Name: "s", Struct: scene, Size: scene.Size}}, more...)
	for _, p := range scene.Pointers() {
		params = append(params, dag.KernelParam{Name: p.Path, Buffer: true, DType: p.DType, Mode: p.Mode, Size: 8, Within: 1, Offset: p.Offset})
	}
	return params
}

// Every member lies where the layout has it, by Go calls and in a file, with or without names, and all other bytes are 0.
func TestStructuresArePacked(t *testing.T) {
	want := make([]byte, scene.Size)
	for k, v := range []float32{1, -2, 0.5} {
		binary.LittleEndian.PutUint32(want[4*k:], math.Float32bits(v))
	}
	binary.LittleEndian.PutUint16(want[12:], uint16(1<<16-7))
	for k, v := range []uint16{3, 4, 65535} {
		binary.LittleEndian.PutUint16(want[24+4+2*k:], v)
	}
	binary.LittleEndian.PutUint64(want[48:], math.Float64bits(0.1))
	check := func(g *dag.Graph, outMode dag.Mode) {
		args := g.Nodes[0].Launch.Args
		require.Equal(t, string(want), args[0].Struct)
		require.Equal(t, dag.Arg{IsBuffer: true, Mode: outMode, DType: dag.F32, Range: dag.Range{Buffer: 0, Lo: 0, Hi: 32}, Within: 1, Offset: 16}, args[1])
		require.Equal(t, dag.Arg{IsBuffer: true, Mode: dag.Read, DType: dag.F32, Range: dag.Range{Buffer: 1, Lo: 8, Hi: 16}, Within: 1, Offset: 40}, args[2])
	}
	b := dag.New("p")
	b.Module("m", "m.cu", sceneKernel())
	d, e := b.Device("d", dag.F32, 8), b.Device("e", dag.F32, 8)
	b.Kernel("k", "m.k", dag.Args{dag.Values{dag.Values{1, -2, 0.5}, -7, b.Whole(d), dag.Values{dag.Values{3, 4, 65535}, b.Slice(e, 2, 4)}, dag.Scalar{DType: dag.F64, Value: 0.1}}}, dag.Grid(1), dag.Block(1))
	g, err := b.Graph()
	require.NoError(t, err)
	check(g, dag.Write)
	for _, members := range []string{
		"[[1, -2, 0.5], -7, d, [[3, 4, 65535], e(2..4)], 0.1]",
		"{eye: [1, -2, 0.5], n: -7, out: d, view: {w: [3, 4, 65535], data: e(2..4)}, last: 0.1}",
		"{last: 0.1, view: {data: {in: e(2..4)}, w: [3, 4, 65535]}, out: {out: d}, n: -7, eye: {z: 0.5, y: -2, x: 1}}",
	} {
		g, err := file.Parse([]byte("version: 1\nmodules: {m: {source: m.cu}}\nbuffers:\n  d: {place: device, dtype: f32, shape: [8]}\n  e: {place: device, dtype: f32, shape: [8]}\n"+
			"nodes:\n  - {name: k, kernel: m.k, args: [{struct: "+members+"}], grid: 1, block: 1}\n"), file.Options{Name: "p.yaml", OpenModule: func(dag.Module) (dag.Library, error) { return sceneKernel(), nil }})
		require.NoError(t, err, members)
		check(g, dag.Write)
	}
}

func TestStructuresThatDoNotFit(t *testing.T) {
	for members, want := range map[string]string{
		"[[1, -2, 0.5], -7, d, [[3, 4, 5], d]]":                                                         "needs 5 members of Scene {eye, n, out, view, last}, got 4",
		"{eye: [1, 2, 3], n: 1, out: d, view: [[1, 2, 3], d]}":                                          `is given no member "last" of Scene {eye, n, out, view, last}`,
		"{eye: [1, 2, 3], n: 1, out: d, view: [[1, 2, 3], d], lost: 1}":                                 `has no member "lost": Scene {eye, n, out, view, last}; did you mean "last"?`,
		"[[1, 2], -7, d, [[3, 4, 5], d], 0.1]":                                                          "has a member eye, which needs 3 members of f32x3 {x, y, z}, got 2",
		"[5, -7, d, [[3, 4, 5], d], 0.1]":                                                               "has a member eye, which needs the members of f32x3 {x, y, z}, got the number 5",
		"[[1, 2, 3], [7], d, [[3, 4, 5], d], 0.1]":                                                      "has a member n, which is a number (i16), got a list",
		"[[1, 2, 3], d, d, [[3, 4, 5], d], 0.1]":                                                        "has a member n, which is a number (i16), got a buffer",
		"[[1, 2, 3], null, d, [[3, 4, 5], d], 0.1]":                                                     "has a member n, which is a number (i16), got null",
		"[[1, 2, 3], 32768, d, [[3, 4, 5], d], 0.1]":                                                    "has a member n, which is 32768, which does not fit in i16",
		"[[1, 2, 3], 7, 8, [[3, 4, 5], d], 0.1]":                                                        "has a member out, which is a pointer, which needs a buffer, a slice or null",
		"[[1, 2, 3], 7, d, [[3, 4], d], 0.1]":                                                           "has a member view.w, which is an array, which needs a list of 3",
		"[[1, 2, 3], 7, d, [4, d], 0.1]":                                                                "has a member view.w, which is an array, which needs a list of 3",
		"[[1, 2, 3], 7, d, [{a: 1, b: 2, c: 3}, d], 0.1]":                                               "has a member view.w, which is an array, which needs a list of 3",
		"[[1, 2, 3], 7, d, [[3, 4, 65536], d], 0.1]":                                                    "has a member view.w[2], which is 65536, which does not fit in u16",
		"{eye: [1, 2, 3], n: 1, out: d, view: {w: [1, 2, 3], date: d}, last: 1}":                        `has a member view, which has no member "date": View {w, data}; did you mean "data"?`,
		"{eye: {x: 1, y: 2, z: 3, w: 4}, n: 1, out: d, view: {w: [1, 2, 3], data: d}, last: 1}":         `has a member eye, which has no member "w": f32x3 {x, y, z}`,
		"{eye: {x: 1, y: 2, z: 3}, n: 1, out: {out: d}, view: {w: [1, 2, 3], data: {out: d}}, last: 1}": "",
	} {
		text := fmt.Sprintf("version: 1\nmodules: {m: {source: m.cu}}\nbuffers:\n  d: {place: device, dtype: f32, shape: [8]}\nnodes:\n  - {name: k, kernel: m.k, args: [{struct: %s}], grid: 1, block: 1}\n", members)
		_, err := file.Parse([]byte(text), file.Options{Name: "p.yaml", OpenModule: func(dag.Module) (dag.Library, error) { return sceneKernel(), nil }})
		require.ErrorContains(t, err, want, members)
	}
}
