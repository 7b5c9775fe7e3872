// Tests of calls in pipelines: what files may say and what is wrong with them, what they read and write, and calls declared in Go.

package calls_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/dag/file"
	"github.com/dagrun/dagrun/dag/outline"
	"github.com/dagrun/dagrun/kernels"
	"github.com/dagrun/dagrun/kernels/calls"
)

const head = `version: 1
name: p
params: {n: 8, on: 1}
buffers:
  a: {place: device, dtype: f32, shape: [n, n], init: 1}
  b: {place: device, dtype: f32, shape: [n, n], init: 1}
  c: {place: device, dtype: f32, shape: [n, n], init: 0}
  d: {place: device, dtype: f64, shape: [n, n], init: 1}
  w: {place: device, dtype: f32, shape: [n, 3*n], init: 1}
  v: {place: device, dtype: f32, shape: [n], init: 1}
  i: {place: device, dtype: i32, shape: [n, n], init: 1}
  h: {place: host, dtype: f32, shape: [n, n], init: 1}
nodes:
`

func parse(nodes string) (*dag.Graph, error) {
	return file.Parse([]byte(head+nodes), file.Options{Name: "p.yaml", Library: kernels.Library()})
}

func TestMistakesInCalls(t *testing.T) {
	for _, c := range []struct{ node, want string }{
		{"call: cublas.gemm, args: {a: a, b: b}", `call "cublas.gemm" is given no c`},
		{"call: cublas.gem, args: {a: a, math: tf32}", `unknown call "cublas.gem"; did you mean "cublas.gemm"?`},
		{"call: gemm", `unknown call "gemm"; did you mean "cublas.gemm"?`},
		{"call: myHostFunction", `unknown call "myHostFunction"; there are cublas.gemm, cublas.gemm_batched, cublas.syrk, cublas.trsm, cufft.c2c, cufft.c2r, cufft.r2c, cusolver.potrf; a kernel is called by kernel:`},
		{"kernel: cublas.gemm, args: {a: a, b: b, c: c}", `unknown module "cublas"; cublas.gemm is a call; write call: cublas.gemm`},
		{"call: cublas.gemm, args: [a, b, c]", `the arguments of a call are given by name; write {a: x, b: y, c: z}`},
		{"call: cublas.gemm, args: {a: a, b: b, c: c, math: tf33}", `argument math of call "cublas.gemm" must be default or tf32, not tf33; did you mean "tf32"?`},
		{"call: cublas.syrk, args: {uplo: both, a: a, c: c}", `argument uplo of call "cublas.syrk" must be lower or upper, not both`},
		{"call: cublas.gemm, args: {a: a, b: b, c: c, gamma: 2}", `call "cublas.gemm" has no parameter "gamma"; it has ta, tb, alpha, a, b, beta, c, math`},
		{"call: cublas.gemm, args: {a: a, b: b, c: a}", `argument c of call "cublas.gemm" overlaps a in memory, and c is written; a is f32 [8, 8] on line 5`},
		{"call: cublas.gemm, args: {a: a, b: b, c: h}", `call "cublas.gemm" cannot use "h", which is in host memory; copy it to a device buffer first`},
		{"call: cublas.gemm, args: {a: a, b: b, c: d}", `call "cublas.gemm": has no version for a f32, b f32, c f64; there are: f32; f64; it fits with d as f32 (line 8)`},
		{"call: cublas.gemm, args: {a: i, b: i, c: i}", `call "cublas.gemm": has no version for a i32, b i32, c i32; there are: f32; f64`},
		{"call: cublas.gemm, args: {a: 1, b: b, c: c}", `argument a of call "cublas.gemm" must be a buffer, got a number`},
		{"call: cublas.gemm, args: {alpha: a, a: a, b: b, c: c}", `argument alpha of call "cublas.gemm" must be a number, got a buffer; a is f32 [8, 8] on line 5`},
		{"call: cublas.gemm, args: {a: v, b: b, c: c}", `argument a of call "cublas.gemm" must be a matrix, but "v" has 1 dimension; v is f32 [8] on line 10`},
		{"call: cublas.gemm, args: {a: w, b: b, c: c}", `argument b of call "cublas.gemm" is a matrix of 8 x 8; for a of 8 x 24 and c of 8 x 8 it must be 24 x 8; b is f32 [8, 8] on line 6`},
		{"call: cublas.gemm, args: {tb: true, a: a, b: b(0..3), c: c}", `argument b of call "cublas.gemm" is a matrix of 3 x 8; for a of 8 x 8 and c of 8 x 8 it must be 8 x 8; b is f32 [8, 8] on line 6`},
		{"call: cublas.gemm, args: {a: a(0..3), b: b, c: c}", `argument a of call "cublas.gemm" is a matrix of 3 x 8; for c of 8 x 8 it must be 8 x 8; a is f32 [8, 8] on line 5`},
		{"call: cublas.gemm, args: {a: d, b: d(..), c: d, math: tf32}", `argument math of call "cublas.gemm" is tf32, which is for f32; the matrices are f64`},
		{"call: cublas.gemm_batched, args: {a: a, b: b, c: c}", `call "cublas.gemm_batched" is given no batches`},
		{"call: cublas.gemm_batched, args: {batches: 0, a: a, b: b, c: c}", `argument batches of call "cublas.gemm_batched" is 0, but must be from 1 to 2147483647`},
		{"call: cublas.gemm_batched, args: {batches: 3, a: a, b: b, c: c}", `argument a of call "cublas.gemm_batched" has 8 rows, which is no multiple of 3 batches; a is f32 [8, 8] on line 5`},
		{"call: cublas.gemm_batched, args: {batches: 2, a: a, b: b, c: c}", `argument b of call "cublas.gemm_batched" is a matrix of 8 x 8; for a of 2 matrices of 4 x 8 and c of 2 matrices of 4 x 8 it must be 16 x 8; b is f32 [8, 8] on line 6`},
		{"call: cublas.gemm_batched, args: {batches: 2, a: a(0..4), b: b, c: c}", `argument a of call "cublas.gemm_batched" is a matrix of 4 x 8; for c of 2 matrices of 4 x 8 it must be 8 x 8; a is f32 [8, 8] on line 5`},
		{"call: cublas.trsm, args: {a: a(0..3), b: b}", `argument a of call "cublas.trsm" is a matrix of 3 x 8; for b of 8 x 8 it must be 8 x 8; a is f32 [8, 8] on line 5`},
		{"call: cublas.syrk, args: {a: w, c: c(0..3)(0..3)}", `argument c of call "cublas.syrk" is a matrix of 3 x 3; for a of 8 x 24 it must be 8 x 8; c is f32 [8, 8] on line 7`},
		{"call: cusolver.potrf, args: {a: w}", `argument a of call "cusolver.potrf" is a matrix of 8 x 24; it must be square; w is f32 [8, 24] on line 9`},
		{"call: cublas.gemm, args: {a: a, b: b, c: c}, grid: 3", `a call takes no grid`},
		{"call: cublas.gemm, kernel: gemm, args: []", `node "x" has two actions, kernel and call; make it two nodes`},
		{"call: cublas.gemm, args: {alpha: 1e300, a: a, b: b, c: c}", `argument alpha of call "cublas.gemm" is 1e+300, which does not fit in f32`},
	} {
		_, err := parse("  - {name: x, " + c.node + "}\n")
		require.Error(t, err, c.node)
		first, _, _ := strings.Cut(err.Error(), "\n")
		_, message, _ := strings.Cut(first, ": ")
		require.Equal(t, c.want, message, c.node)
	}
}

// accessesOf is how a file's only node uses each buffer.
func accessesOf(t *testing.T, node string) string {
	g, err := parse("  - {name: x, " + node + "}\n")
	require.NoError(t, err, node)
	var list []string
	for _, a := range g.Accesses(0) {
		if b := &g.Buffers[a.Buffer]; !b.Scratch {
			list = append(list, a.Mode.String()+" "+g.RangeText(a.Range))
		}
	}
	return strings.Join(list, ", ")
}

func TestWhatCallsAccess(t *testing.T) {
	for node, want := range map[string]string{
		"call: cublas.gemm, args: {a: a, b: b, c: c}":                                           "in a, in b, out c",
		"call: cublas.gemm, args: {a: a, b: b, c: c, beta: 1}":                                  "in a, in b, inout c",
		"call: cublas.gemm, args: {a: a, b: b, c: c, beta: on - 1}":                             "in a, in b, out c",
		"call: cublas.gemm, args: {a: a(0..2)(4..8), b: a(4..8)(0..3), c: c(1..3)(5..8)}":       "in a(0..2)(4..8), in a(4..8)(0..3), out c(1..3)(5..8)",
		"call: cublas.gemm, args: {ta: true, a: w(..)(0..2), b: w(..)(2..5), c: c(0..2)(0..3)}": "in w(..)(0..2), in w(..)(2..5), out c(0..2)(0..3)",
		"call: cublas.gemm_batched, args: {batches: 2, tb: true, a: a, b: b, c: c(..)(0..4)}":   "in a, in b, out c(..)(0..4)",
		"call: cublas.syrk, args: {a: w, c: c}":                                                 "in w, inout c",
		"call: cublas.trsm, args: {side: right, a: a(0..4)(0..4), b: a(4..8)(0..4)}":            "in a(0..4)(0..4), inout a(4..8)(0..4)",
		"call: cusolver.potrf, args: {a: d(2..5)(2..5)}":                                        "inout d(2..5)(2..5)",
		"call: cublas.gemm, args: {a: a(3..3), b: b, c: c(3..3)}":                               "in a(3..3), in b, out c(3..3)",
	} {
		require.Equal(t, want, strings.ReplaceAll(accessesOf(t, node), "(0..8)", "(..)"), node)
	}
}

func TestHiddenBuffersOfCalls(t *testing.T) {
	g, err := parse("  - {name: x, call: cusolver.potrf, args: {a: d}}\n")
	require.NoError(t, err)
	var hidden []string
	for i := range g.Buffers {
		if b := &g.Buffers[i]; b.Scratch {
			hidden = append(hidden, b.Name)
			node, status := b.Status()
			require.Equal(t, b.Name == "x$status", status)
			require.True(t, !status || node == "x")
		}
	}
	require.Equal(t, []string{"x$scratch", "x$status"}, hidden)
	_, status := g.Buffers[0].Status()
	require.False(t, status)
}

func TestCallsAreWrittenAndReadBack(t *testing.T) {
	g, err := parse(`  - {name: one, call: cublas.gemm, args: {ta: true, alpha: 0.1, a: a(0..4)(2..8), b: b(0..4), beta: -2, c: w(2..8)(0..8), math: tf32}}
  - {name: two, call: cublas.trsm, args: {side: right, uplo: upper, unit: true, a: a, b: c}}
  - {name: three, call: cusolver.potrf, args: {a: d}, priority: high}
`)
	require.NoError(t, err)
	var text bytes.Buffer
	require.NoError(t, file.Write(&text, g.Pipeline))
	require.Contains(t, text.String(), `{name: two, call: cublas.trsm, args: {side: right, uplo: upper, ta: false, unit: true, alpha: 1, a: a, b: c}}`)
	again, err := file.Parse(text.Bytes(), file.Options{Name: "p.yaml", Library: kernels.Library()})
	require.NoError(t, err, text.String())
	require.Equal(t, g.Hash(), again.Hash())
	require.Equal(t, g.WorkHash(), again.WorkHash())
}

func TestArgumentsArePartOfTheWork(t *testing.T) {
	hash := func(args string) string {
		g, err := parse("  - {name: x, call: cublas.gemm, args: {a: a, b: b, c: c, " + args + "}}\n")
		require.NoError(t, err)
		require.Contains(t, outline.Parts(g, 0), "call=cublas.gemm")
		return g.WorkHash()
	}
	seen := []string{hash("alpha: 1")}
	for _, args := range []string{"alpha: 2", "ta: true", "tb: true", "math: tf32"} {
		h := hash(args)
		require.NotContains(t, seen, h, args)
		seen = append(seen, h)
	}
	require.Equal(t, seen[0], hash("ta: false"), "left out is the same as given")
}

func TestCallsInGo(t *testing.T) {
	build := func(args dag.CallArgs, call string, options ...dag.LaunchOption) (*dag.Graph, error) {
		b := dag.New("p")
		b.Use(kernels.Library())
		for _, name := range []string{"a", "b", "c"} {
			b.Device(name, dag.F32, 8, 8)
		}
		for name, value := range args {
			if text, ok := value.(string); ok && len(text) == 1 {
				args[name] = b.Whole(dag.BufferID(strings.Index("abc", text)))
			}
		}
		b.Call("x", call, args, options...)
		return b.Graph()
	}
	g, err := build(dag.CallArgs{"a": "a", "b": "b", "c": "c", "tb": true, "math": "tf32", "alpha": 0.5}, "cublas.gemm")
	require.NoError(t, err)
	require.Equal(t, dag.Call, g.Nodes[0].Kind)
	require.Equal(t, "cublas.gemm", g.Nodes[0].Launch.Name)
	for _, c := range []struct {
		args dag.CallArgs
		call string
		want string
	}{
		{dag.CallArgs{"a": "a"}, "cublas.gemm", `node "x": call "cublas.gemm" is given no b, c`},
		{dag.CallArgs{"a": "a", "b": "b", "c": "c", "math": "half"}, "cublas.gemm", `node "x": argument math of call "cublas.gemm" must be default or tf32, not half`},
		{dag.CallArgs{"a": "a", "b": "b", "c": "c", "alpha": "two"}, "cublas.gemm", `node "x": argument alpha of call "cublas.gemm" is a number or a buffer, not a word`},
		{dag.CallArgs{"a": []int{1}}, "cublas.gemm", `node "x": argument a of call "cublas.gemm": a []int is neither a Range or Access nor a number`},
		{nil, "cublas.gemm3", `node "x": unknown call "cublas.gemm3"; did you mean "cublas.gemm"?`},
	} {
		_, err := build(c.args, c.call)
		require.ErrorContains(t, err, c.want)
	}
	_, err = build(dag.CallArgs{"a": "a", "b": "b", "c": "c"}, "cublas.gemm", dag.Grid(3))
	require.ErrorContains(t, err, `node "x": call "cublas.gemm" takes no option but RunOn`)
}

func TestCatalog(t *testing.T) {
	var c calls.Catalog
	names := c.Names()
	require.True(t, slices.IsSorted(names))
	require.Contains(t, names, "cublas.gemm")
	for _, d := range calls.Docs() {
		require.Contains(t, names, d.Name)
		require.NotEmpty(t, d.Text)
		require.NotEmpty(t, d.Types)
		params, err := c.ParameterNames(d.Name)
		require.NoError(t, err)
		require.Len(t, d.Params, len(params))
	}
	_, err := c.ParameterNames("x")
	require.ErrorIs(t, err, dag.ErrUnknownKernel)
	_, err = c.Kernel("x", nil)
	require.ErrorIs(t, err, dag.ErrUnknownKernel)
	_, err = c.Kernel("cublas.gemm", nil)
	require.EqualError(t, err, "takes 8 arguments, got 0")
	_, err = c.Map(nil)
	require.Error(t, err)
	_, _, optional := c.Argument("x", "y")
	require.False(t, optional)
	k, err := c.Kernel("cublas.gemm", []dag.DType{0, 0, 0, dag.F32, dag.F32, 0, dag.F32, 0})
	require.NoError(t, err)
	_, err = k.Describe(nil)
	require.Error(t, err)
}
