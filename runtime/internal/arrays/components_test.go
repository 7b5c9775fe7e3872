// Tests of vectors and complex numbers: their contents, how they are compared, and their files.

package arrays

import (
	"context"
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/dag/expr"
)

func floats(values ...float32) []byte {
	var b []byte
	for _, v := range values {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	return b
}

func TestContentsOfComponents(t *testing.T) {
	tens, err := expr.Parse("10*i")
	require.NoError(t, err)
	vector := dag.Vector(dag.F32, 3)
	for name, c := range map[string]struct {
		dtype dag.DType
		init  dag.Init
		want  []byte
	}{
		"one number":        {vector, dag.Init{Kind: dag.InitValue, Value: expr.Int(2)}, floats(2, 2, 2, 2, 2, 2)},
		"components":        {vector, dag.Init{Kind: dag.InitValue, Values: []expr.Value{expr.Int(1), expr.Int(2), expr.Int(3)}}, floats(1, 2, 3, 1, 2, 3)},
		"expression":        {vector, dag.Init{Kind: dag.InitExpr, Expr: tens}, floats(0, 10, 20, 30, 40, 50)},
		"ramp":              {vector, dag.Init{Kind: dag.InitRamp, A: 1, B: 1}, floats(1, 2, 3, 4, 5, 6)},
		"complex":           {dag.C64, dag.Init{Kind: dag.InitValue, Value: expr.Int(2)}, floats(2, 0, 2, 0)},
		"parts":             {dag.C64, dag.Init{Kind: dag.InitValue, Values: []expr.Value{expr.Int(0), expr.Int(1)}}, floats(0, 1, 0, 1)},
		"complex by a ramp": {dag.C64, dag.Init{Kind: dag.InitRamp, A: 1, B: 1}, floats(1, 2, 3, 4)},
	} {
		b := &dag.Buffer{Name: "b", DType: c.dtype, Shape: []int64{2}, Init: &c.init}
		memory := make([]byte, 2*c.dtype.Size())
		require.NoError(t, Files{}.Generate(t.Context(), b, memory), name)
		require.Equal(t, c.want, memory, name)
	}
	b := &dag.Buffer{Name: "b", DType: vector, Shape: []int64{1}, Init: &dag.Init{Kind: dag.InitValue, Values: []expr.Value{expr.Int(1)}}}
	require.ErrorContains(t, Files{}.Generate(t.Context(), b, make([]byte, 12)), "init has 1 number, but an element of type f32x3 has 3, and all elements together have 3")
}

// A list may have the numbers of all elements.
func TestListedContents(t *testing.T) {
	listed := func(n int) (values []expr.Value) {
		for i := range n {
			values = append(values, expr.Int(int64(i)))
		}
		return values
	}
	for _, c := range []struct {
		dtype   dag.DType
		n       int
		want    []byte
		against string
	}{
		{dag.F32, 2, floats(0, 1), "value [0, 1]"},
		{dag.Vector(dag.F32, 2), 4, floats(0, 1, 2, 3), "value [0, 1, 2, 3]"},
		{dag.U8, 10, []byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, "value 10 listed numbers"},
	} {
		values := listed(c.n)
		b := &dag.Buffer{Name: "b", DType: c.dtype, Shape: []int64{int64(c.n / c.dtype.Components())}, Bytes: int64(len(c.want)),
			Init: &dag.Init{Kind: dag.InitValue, Values: values}, Expect: &dag.Expect{Kind: dag.ExpectValue, Values: values}}
		memory := make([]byte, len(c.want))
		require.NoError(t, Files{}.Generate(t.Context(), b, memory))
		require.Equal(t, c.want, memory)
		check, err := Files{}.CheckExpect(t.Context(), b, memory, nil)
		require.NoError(t, err)
		require.Zero(t, check.Wrong)
		require.Equal(t, c.against, check.Against)
		clear(memory)
		check, err = Files{}.CheckExpect(t.Context(), b, memory, nil)
		require.NoError(t, err)
		require.EqualValues(t, c.n-1, check.Wrong)
	}
}

// A part of a complex number may be off by as much as its number may, even where it should be 0.
func TestToleranceOfComplexNumbers(t *testing.T) {
	for name, c := range map[string]struct {
		dtype dag.DType
		got   []byte
		first string
	}{
		"within":    {dag.C64, floats(100, 0.01, 100, -0.01), ""},
		"beyond":    {dag.C64, floats(100, 0.01, 100, 0.2), "element [1, 1] is 0.200000003, want 0"},
		"of a pair": {dag.Vector(dag.F32, 2), floats(100, 0.01, 100, 0), "element [0, 1] is 0.00999999978, want 0"},
	} {
		b := &dag.Buffer{Name: "b", DType: c.dtype, Shape: []int64{2}, Bytes: 16,
			Expect: &dag.Expect{Kind: dag.ExpectValue, Values: []expr.Value{expr.Int(100), expr.Int(0)}, RTol: 1e-3}}
		check, err := Files{}.CheckExpect(context.Background(), b, c.got, nil)
		require.NoError(t, err)
		require.Equal(t, c.first, check.First, name)
		require.Equal(t, c.first == "", check.OK, name)
		require.EqualValues(t, 4, check.Elements)
		require.Equal(t, "value [100, 0]", check.Against)
	}
}

func TestFilesOfComponents(t *testing.T) {
	for _, c := range []struct {
		dtype   dag.DType
		header  string
		another string // the error of reading it as something else
	}{
		{dag.C64, "'descr': '<c8', 'fortran_order': False, 'shape': (2,)", `has elements of type "<c8", but the buffer has f32 ("<f4"); in NumPy, a.astype("<f4") converts an array a`},
		{dag.C128, "'descr': '<c16', 'fortran_order': False, 'shape': (2,)", `has elements of type "<c16", but the buffer has f32 ("<f4"); in NumPy, a.astype("<f4") converts an array a`},
		{dag.Vector(dag.F32, 4), "'descr': '<f4', 'fortran_order': False, 'shape': (2, 4)", "has shape (2, 4), but the buffer has (2,)"},
		{dag.Vector(dag.U8, 3), "'descr': '|u1', 'fortran_order': False, 'shape': (2, 3)", `has elements of type "|u1", but the buffer has f32 ("<f4"); in NumPy, a.astype("<f4") converts an array a`},
	} {
		path := filepath.Join(t.TempDir(), "x.npy")
		memory := make([]byte, 2*c.dtype.Size())
		for k := range memory {
			memory[k] = byte(k)
		}
		require.NoError(t, Files{}.Write(t.Context(), path, c.dtype, []int64{2}, memory))
		written, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Contains(t, string(written), c.header)
		back := make([]byte, len(memory))
		require.NoError(t, Files{}.read(t.Context(), path, c.dtype, []int64{2}, back))
		require.Equal(t, memory, back)
		require.NoError(t, CheckFile(t.Context(), path, c.dtype, []int64{2}))
		err = CheckFile(t.Context(), path, dag.F32, []int64{2})
		require.Error(t, err)
		require.Equal(t, c.another, strings.TrimPrefix(err.Error(), path+" "))
	}
}
