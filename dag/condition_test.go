// Tests of the value of conditions. cudart/host has the same kernels decide on the CPU device, and cmd/dagrun has their mistakes.

package dag_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
)

// conditioned is a graph with one branch, on elements of buffers of every kind.
func conditioned(t *testing.T, text string) *dag.Condition {
	t.Helper()
	b := dag.New("p")
	for name, dtype := range map[string]dag.DType{"x": dag.F32, "y": dag.F64, "i": dag.I32, "l": dag.I64, "u": dag.U8, "w": dag.U32, "s": dag.I8, "t": dag.Bool} {
		b.Device(name, dtype, 1)
	}
	d := b.Device("d", dag.F32, 1)
	b.If("c", text, func() { b.Memset("set", b.Whole(d), 0) }, nil)
	g, err := b.Graph()
	require.NoError(t, err, text)
	return g.Nodes[0].Control.Condition
}

// Integers are exact in 64 bits with the sign of their type, floats are IEEE's, and nothing is less than NaN, equal to it or different from it.
func TestConditionsHold(t *testing.T) {
	nan := math.NaN()
	f32, f64 := func(v float32) uint64 { return uint64(math.Float32bits(v)) }, math.Float64bits
	for _, c := range []struct {
		text  string
		value []uint64 // of the operands, in the order in which the text names them
		want  bool
	}{
		{"x < 1", []uint64{f32(0.5)}, true}, {"x < 1", []uint64{f32(1)}, false}, {"x <= 1", []uint64{f32(1)}, true}, {"x > 1", []uint64{f32(1)}, false}, {"x >= 1", []uint64{f32(1)}, true},
		{"x == 1", []uint64{f32(1)}, true}, {"x != 1", []uint64{f32(1)}, false}, {"x != 1", []uint64{f32(0.5)}, true}, {"x == 0", []uint64{f32(float32(math.Copysign(0, -1)))}, true},
		{"x < 1", []uint64{f32(float32(nan))}, false}, {"x >= 1", []uint64{f32(float32(nan))}, false}, {"x == x", []uint64{f32(float32(nan))}, false}, {"x != x", []uint64{f32(float32(nan))}, false},
		{"not (x == x)", []uint64{f32(float32(nan))}, true},
		{"i < 0", []uint64{1<<32 - 1}, true}, {"w < 0", []uint64{1<<32 - 1}, false}, {"w == 4294967295", []uint64{1<<32 - 1}, true}, {"s == -1", []uint64{255}, true}, {"u == 255", []uint64{255}, true},
		{"l == 9007199254740993", []uint64{9007199254740992}, false}, {"l == 9007199254740993", []uint64{9007199254740993}, true}, {"l > 9007199254740992", []uint64{9007199254740993}, true},
		{"l + 1 < 0", []uint64{math.MaxInt64}, true}, {"-l < 0", []uint64{1 << 63}, true}, {"-l == 5", []uint64{uint64(1<<64 - 5)}, true}, {"-i < 0", []uint64{5}, true}, {"abs(l) > 4", []uint64{uint64(1<<64 - 5)}, true}, {"l * l == 25", []uint64{uint64(1<<64 - 5)}, true},
		{"i - l == -2", []uint64{1, 3}, true}, {"i / l > 0.3", []uint64{1, 3}, true}, {"i / l < 0.34", []uint64{1, 3}, true}, {"sqrt(i) == 3", []uint64{9}, true},
		{"x + y == 0.75", []uint64{f32(0.5), f64(0.25)}, true}, {"x * i == 1.5", []uint64{f32(0.5), 3}, true}, {"-x < 0", []uint64{f32(0.5)}, true}, {"abs(x) == 0.5", []uint64{f32(-0.5)}, true},
		{"floor(y) == -2", []uint64{f64(-1.5)}, true}, {"ceil(y) == -1", []uint64{f64(-1.5)}, true}, {"floor(i) == 5", []uint64{5}, true}, {"x - y > 0", []uint64{f32(0.5), f64(0.25)}, true},
		{"t", []uint64{1}, true}, {"t", []uint64{0}, false}, {"t", []uint64{256}, false}, {"not t", []uint64{0}, true}, {"t == (i > 2)", []uint64{2, 3}, true}, {"t != (i > 2)", []uint64{1, 2}, true},
		{"t and i > 2", []uint64{1, 3}, true}, {"t and i > 2", []uint64{0, 3}, false}, {"t and i > 2", []uint64{1, 2}, false}, {"t or i > 2", []uint64{0, 3}, true}, {"t or i > 2", []uint64{1, 2}, true}, {"t or i > 2", []uint64{0, 2}, false},
		{"min(i, l) == 2", []uint64{2, 3}, true}, {"min(i, l) == 2", []uint64{3, 2}, true}, {"max(i, l) == 3", []uint64{2, 3}, true}, {"max(i, l) == 3", []uint64{3, 2}, true}, {"max(i, l) == 3", []uint64{3, 3}, true},
		{"max(i) == 3", []uint64{3}, true}, {"min(x) == 3", []uint64{f32(3)}, true}, {"max(i, l, w) == 5", []uint64{3, 4, 5}, true}, {"max(i, l, w) == 5", []uint64{5, 4, 3}, true}, {"max(i, l, w) == 5", []uint64{4, 5, 3}, true},
		{"min(i, l, w) == 3", []uint64{3, 4, 5}, true}, {"min(i, l, w) == 3", []uint64{5, 4, 3}, true}, {"min(i, l, w, u) == 2", []uint64{5, 4, 3, 2}, true},
		{"max(x, y) == 0.5", []uint64{f32(0.5), f64(0.25)}, true}, {"min(x, y) == 0.25", []uint64{f32(0.5), f64(0.25)}, true}, {"min(x, y) == 0.25", []uint64{f32(float32(nan)), f64(0.25)}, true},
		{"max(x, y) == 0.25", []uint64{f32(float32(nan)), f64(0.25)}, true}, {"min(x, y) == 0.25", []uint64{f32(0.25), f64(nan)}, false}, {"max(x, i) == 2", []uint64{f32(0.5), 2}, true},
	} {
		condition := conditioned(t, c.text)
		require.Len(t, condition.Operands, len(c.value), c.text)
		require.Equal(t, c.want, condition.Holds(func(k int) uint64 { return c.value[k] }), "%s of %v", c.text, c.value)
	}
	for text, want := range map[string]dag.NumberKind{
		"i > 0": dag.IntegerNumber, "x > 0": dag.FloatNumber, "t == true": dag.TruthNumber, "2 < i": dag.IntegerNumber, "0.5 < i": dag.FloatNumber, "i + 2 > 0": dag.IntegerNumber, "i + 0.5 > 0": dag.FloatNumber,
		"i / 2 > 0": dag.FloatNumber, "sqrt(i) > 0": dag.FloatNumber, "max(i, l) > 0": dag.IntegerNumber, "max(i, x) > 0": dag.FloatNumber, "-u > 0": dag.IntegerNumber, "abs(y) > 0": dag.FloatNumber,
		"(i > 0) == t": dag.TruthNumber, "(not t) == t": dag.TruthNumber, "true == t": dag.TruthNumber,
	} {
		condition := conditioned(t, text)
		require.Equal(t, want, condition.Kind(condition.Expr.Root.Args[0]), text)
		require.Equal(t, dag.TruthNumber, condition.Kind(condition.Expr.Root), text)
	}
	number := conditioned(t, "x > 3")
	number.Expr.Root = number.Expr.Root.Args[0]
	require.False(t, number.Holds(func(int) uint64 { return 1 }), "a number is no truth")
	require.False(t, (*dag.Condition)(nil).Holds(func(int) uint64 { return 1 }))
	require.False(t, conditioned(t, "t").Holds(nil))
	require.False(t, (&dag.Condition{}).Holds(func(int) uint64 { return 1 }))
}
