// Tests of the compiled form against the evaluator, on random expressions and on those of the fuzzer.

package expr

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestFunctionAgreesWithEval(t *testing.T) {
	at := []int64{0, 1, -1, 2, 7, 100, -1000, 1 << 31, 1<<53 + 1, math.MaxInt64, math.MinInt64}
	for _, text := range []string{
		"i", "1/(i+1)", "i*i % 1000003", "floor(i/3)", "ceil(i/-7)", "i/2 + i/3", "sqrt(abs(i))", "(i < 3)*2.0 - 1", "rand(1, i, 10) + 0.5", "i % 7 / 7", "max(i, 3)", "min(i, 0.5)",
		"pow(i, 2)", "pow(2, i)", "pow(i, i/2)", "not i > 3", "i > 0 and 1/i < 0.5", "i > 0 or 1/i < 0", "log2(i)", "-i", "-(i/2)", "abs(i/2)", "1/i", "i/(i - i)", "i + true", "0/(0-i-1)",
		"max(1, i/2, 0.25)", "i and true", "floor(i*0.5) % 2 == 0", "rand(i*0.5, 2, 3)", "1e300*i*1e300", "pow(i, 0.5)", "abs(-1.0*i)",
		"select(i > 3, i, 7)", "select(i > 0, 1/i, i)", "select(i == 0, 0.5, i*0.25)", "select(i % 2 == 0, i > 0, i)", "not select(i > 0, i > 5, i < -5)", "select(i, 1, 2)", "select(select(i > 0, true, i), 1, 2)",
		"floor(select(i > 0, i/2, 0.5))", "rand(1, select(i > 0, i > 1, i), 10)", "abs(select(i > 0, true, 1/2))", "select(i > 3, i*i*i, 0)",
	} {
		e, err := Parse(text)
		require.NoError(t, err)
		f, err := e.Compile("i")
		require.NoError(t, err)
		for _, i := range at {
			agree(t, f, e, i)
		}
	}
	e, err := Parse("i + n")
	require.NoError(t, err)
	_, err = e.Compile("i")
	require.EqualError(t, err, `unknown name "n"`)
}

type fataler interface {
	require.TestingT
	Helper()
}

func agree(t fataler, f *Function, e *Expr, i int64) {
	t.Helper()
	want, wantErr := e.Eval(oneVariable{"i", i})
	got, gotErr := f.Value(i)
	float, floatErr := f.Float(i)
	if wantErr != nil {
		require.EqualError(t, gotErr, wantErr.Error(), "%s at %d", e.Text, i)
		require.EqualError(t, floatErr, wantErr.Error(), "%s at %d", e.Text, i)
		return
	}
	require.NoError(t, gotErr, "%s at %d", e.Text, i)
	require.NoError(t, floatErr, "%s at %d", e.Text, i)
	require.Equal(t, want.String(), got.String(), "%s at %d", e.Text, i)
	require.Equal(t, math.Float64bits(want.Float()), math.Float64bits(float), "%s at %d: %v, %v", e.Text, i, want, float)
}

// anyExpr draws an expression over i.
func anyExpr() *rapid.Generator[string] {
	leaf := rapid.OneOf(
		rapid.Just("i"), rapid.Just("i"),
		rapid.Custom(func(t *rapid.T) string { return Int(rapid.Int64Range(-5, 20).Draw(t, "integer")).String() }),
		rapid.Custom(func(t *rapid.T) string { return Int(rapid.Int64().Draw(t, "large")).String() }),
		rapid.SampledFrom([]string{"0.5", "2.0", "1e10", "1e300", "true", "false"}),
	)
	var make func(depth int) *rapid.Generator[string]
	make = func(depth int) *rapid.Generator[string] {
		if depth == 0 {
			return leaf
		}
		below := make(depth - 1)
		binary := rapid.Custom(func(t *rapid.T) string {
			op := rapid.SampledFrom([]string{"+", "-", "*", "/", "%", "<", "<=", ">", ">=", "==", "!=", "and", "or"}).Draw(t, "operator")
			return "(" + below.Draw(t, "left") + ") " + op + " (" + below.Draw(t, "right") + ")"
		})
		unary := rapid.Custom(func(t *rapid.T) string {
			return rapid.SampledFrom([]string{"-", "not ", "abs", "floor", "ceil", "sqrt", "log2"}).Draw(t, "operator") + "(" + below.Draw(t, "operand") + ")"
		})
		call := rapid.Custom(func(t *rapid.T) string {
			name := rapid.SampledFrom([]string{"min", "max", "pow", "rand"}).Draw(t, "function")
			args := below.Draw(t, "first") + ", " + below.Draw(t, "second")
			if name == "rand" {
				args += ", 100"
			}
			return name + "(" + args + ")"
		})
		return rapid.OneOf(leaf, binary, binary, unary, call)
	}
	return make(4)
}

func TestRandomFunctionsAgreeWithEval(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := anyExpr().Draw(t, "expression")
		if strings.HasPrefix(text, "not") {
			text = "(" + text + ")"
		}
		e, err := Parse(text)
		if err != nil {
			t.Skip(err) // not is not allowed inside arithmetic
		}
		f, err := e.Compile("i")
		require.NoError(t, err)
		for _, i := range []int64{rapid.Int64Range(-10, 10).Draw(t, "i"), rapid.Int64().Draw(t, "large i")} {
			agree(t, f, e, i)
			bound, err := e.Bind(Empty{}, "i")
			v, evalErr := e.Eval(oneVariable{"i", i})
			if err != nil {
				require.Error(t, evalErr, "%s: binding found %v", text, err)
				continue
			}
			w, boundErr := bound.Eval(oneVariable{"i", i})
			require.Equal(t, evalErr == nil, boundErr == nil)
			require.Equal(t, v, w)
		}
	})
}

func FuzzExpr(f *testing.F) {
	for _, s := range []string{"1/(i+1)", "len(x(i of 4)) * 2.5e-3", "not a and b or c < 3", "rand(1, i, 10)", "pow(i, -3) % 7", "x[0:4]", "${i}", "-9223372036854775808", "len(a.$(i+1).$$(..4))", "a(i of 4 halo 1)(..4)", "cols(a(..)(1 of 2 halo n)) + ld(a) + 0x1F", "\xff", "((((", "1e999", "y = a*x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if template, err := ParseTemplate(text); err == nil {
			_, _ = template.Expand(scope)
		}
		if s, err := ParseSlice(text); err == nil {
			_, _, _ = s.Extent(scope, "x", []int64{10})
			_, _, _ = s.Extent(scope, "a", []int64{10, 7})
			_, err := ParseSlice(s.String())
			require.NoError(t, err, "%q printed as %q", text, s)
		}
		_, _, _ = ParseMap(text)
		e, err := Parse(text)
		if err != nil {
			var place *Error
			require.ErrorAs(t, err, &place)
			require.True(t, place.Offset >= 0 && place.Offset <= len(text), "offset %d of %q", place.Offset, text)
			return
		}
		printed := e.String()
		again, err := Parse(printed)
		require.NoError(t, err, "%q printed as %q", text, printed)
		require.Equal(t, printed, again.String())
		v, err := e.Eval(scope)
		w, errAgain := again.Eval(scope)
		require.Equal(t, err == nil, errAgain == nil, "%q and %q: %v, %v", text, printed, err, errAgain)
		require.Equal(t, v.String(), w.String(), "%q and %q", text, printed)
		if function, err := e.Compile("i"); err == nil {
			for _, i := range []int64{0, 1, -3, math.MaxInt64} {
				agree(t, function, e, i)
			}
		}
	})
}

func BenchmarkFunction(b *testing.B) {
	for _, text := range []string{"i", "1/(i+1)", "i % 7 * 0.5 + 1", "rand(1, i, 10)", "i/2 + i/3"} {
		b.Run(strings.ReplaceAll(text, "/", "÷"), func(b *testing.B) {
			e, err := Parse(text)
			require.NoError(b, err)
			f, err := e.Compile("i")
			require.NoError(b, err)
			b.ReportAllocs()
			var i int64
			for b.Loop() {
				_, _ = f.Float(i)
				i++
			}
		})
	}
}

func BenchmarkParse(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		_, _ = Parse("ceil(n/256) * (i + 1)")
	}
}
