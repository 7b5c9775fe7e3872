// Tests of the language's values and its errors, word for word.

package expr

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// names is a Scope of a few variables and buffers.
type names struct {
	variables map[string]Value
	lengths   map[string]int64
	shapes    map[string][]int64
}

func (s names) Variable(name string) (Value, bool) { v, ok := s.variables[name]; return v, ok }
func (s names) Shape(name string) ([]int64, bool) {
	n, ok := s.lengths[name]
	if shape, two := s.shapes[name]; two {
		return shape, true
	}
	if n < 0 {
		return nil, ok
	}
	return []int64{n}, ok
}

var scope = names{
	variables: map[string]Value{
		"n": Int(1000), "i": Int(3), "alpha": FloatValue(2), "half": must(Fraction(1, 2)), "debug": BoolValue(true), "größe": Int(7),
		"largest": Int(math.MaxInt64), "least": Int(math.MinInt64), "zero": Int(0),
	},
	lengths: map[string]int64{"x": 10, "part.3": 4, "one": -1, "max": 5, "a.0.b_1": 12},
	shapes:  map[string][]int64{"a": {8, 6}, "cube": {8, 6, 5}},
}

func must(v Value, err error) Value {
	if err != nil {
		panic(err)
	}
	return v
}

func TestValues(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"1", "1"}, {"0", "0"}, {"-5", "-5"}, {"+5", "5"}, {"--5", "5"}, {" 1 + 2\n* 3 ", "7"}, {"(1 + 2) * 3", "9"}, {"10 - 2 - 3", "5"},
		{"7 / 2", "7/2"}, {"6 / 2", "3"}, {"1/3 + 1/3 + 1/3", "1"}, {"1/3*n", "1000/3"}, {"-7 / 2", "-7/2"}, {"1 / -2", "-1/2"},
		{"floor(7 / 2)", "3"}, {"ceil(7 / 2)", "4"}, {"floor(-7 / 2)", "-4"}, {"ceil(-7 / 2)", "-3"}, {"floor(3)", "3"}, {"ceil(2.1)", "3"}, {"floor(-0.5)", "-1"},
		{"7 % 3", "1"}, {"-7 % 3", "2"}, {"7 % -3", "-2"}, {"-7 % -3", "-1"}, {"7/2 % 1", "1/2"}, {"-7/2 % 1", "1/2"}, {"-7.5 % 2", "0.5"}, {"7.5 % -2", "-0.5"},
		{"1.5", "1.5"}, {"2.0", "2.0"}, {"1e3", "1000.0"}, {"2.5e-3", "0.0025"}, {"1e-7", "1e-07"}, {"1e20", "1e+20"}, {"1 + 0.5", "1.5"}, {"0.1 + 0.2", "0.30000000000000004"},
		{"half + half", "1"}, {"half * alpha", "1.0"}, {"n/3*3", "1000"}, {"n * 0.5", "500.0"}, {"0e5", "0.0"},
		{"1 < 2", "true"}, {"2 <= 1", "false"}, {"1/3 < 0.34", "true"}, {"1/3 == 2/6", "true"}, {"1/3 != 1/4", "true"}, {"1/3 > 1/4", "true"}, {"1 == 1.0", "true"}, {"2 >= 3", "false"},
		{"largest - 1 < largest", "true"}, {"1/3 < 333333333333333333/1000000000000000000", "false"},
		{"true and false", "false"}, {"true or false", "true"}, {"not true", "false"}, {"not 1 > 2 and debug", "true"}, {"not not debug", "true"},
		{"n != 0 and 10/n < 1", "true"}, {"zero != 0 and 10/zero < 1", "false"}, {"zero == 0 or 10/zero < 1", "true"},
		{"(i > 2) * 5 + (i <= 2) * 7", "5"}, {"-(1 < 2)", "-1"}, {"(1 < 2) + half", "3/2"},
		{"min(3, 1, 2)", "1"}, {"max(3, 1/2)", "3"}, {"min(1, 0.5)", "0.5"}, {"max(2, 0.5)", "2.0"}, {"min(4)", "4"}, {"abs(-3)", "3"}, {"abs(-1/2)", "1/2"}, {"abs(-0.5)", "0.5"},
		{"pow(2, 10)", "1024"}, {"pow(2, -2)", "1/4"}, {"pow(2/3, 3)", "8/27"}, {"pow(-2, 63)", "-9223372036854775808"}, {"pow(2, 0.5)", "1.4142135623730951"}, {"pow(4, 1/2)", "2.0"},
		{"select(2 > 1, 5, 1/0)", "5"}, {"select(false, 1/0, 2.5)", "2.5"}, {"select(1 < 2, 2 < 1, 3)", "false"}, {"select(true, 3, 1) / 2", "3/2"}, {"pow(0, 0)", "1"}, {"pow(-1, 1000000000001)", "-1"}, {"pow(1, -5)", "1"}, {"pow(0, 9)", "0"}, {"pow(2, 62)", "4611686018427387904"},
		{"sqrt(16)", "4.0"}, {"sqrt(0)", "0.0"}, {"log2(n)", "9.965784284662087"}, {"floor(log2(n))", "9"}, {"log2(8)", "3.0"},
		{"len(x)", "10"}, {"len(x(2..5))", "3"}, {"len(x(..4))", "4"}, {"len(x(4..))", "6"}, {"len(x(i of 4))", "2"}, {"len(x(0 of 4))", "3"}, {"len(x(..))", "10"},
		{"len(part.$i)", "4"}, {"len(part.$(i))", "4"}, {"len(part.$(i+0)(1..))", "3"}, {"len(max)", "5"}, {"len(a.0.b_1)", "12"}, {"len( x ( 1 .. 2 ) )", "1"}, {"len(x(5..5))", "0"},
		{"rand(1, 2, 10) < 10", "true"}, {"rand(0, 0, 1)", "0"},
		{"größe + 1", "8"}, {"-9223372036854775808", "-9223372036854775808"}, {"9223372036854775807", "9223372036854775807"}, {"least + 1", "-9223372036854775807"},
		{"4611686018427387904 / 9223372036854775807 * 2", "9223372036854775808/9223372036854775807"},
	} {
		e, err := Parse(c.text)
		require.NoError(t, err, c.text)
		v, err := e.Eval(scope)
		if strings.Contains(c.want, "9223372036854775808/") {
			require.EqualError(t, err, "overflow: the result does not fit in 64 bits")
			continue
		}
		require.NoError(t, err, c.text)
		require.Equal(t, c.want, v.String(), c.text)
	}
}

func TestErrors(t *testing.T) {
	for _, c := range []struct {
		text   string
		offset int
		want   string
	}{
		{"", 0, "expression ends where a number or a name is expected"},
		{"  ", 2, "expression ends where a number or a name is expected"},
		{"1 +", 3, "expression ends where a number or a name is expected"},
		{"(1", 2, `expression ends where ")" is expected`},
		{"1)", 1, `unexpected ")"; a "(" is missing before it`},
		{"1 2", 2, `unexpected "2"; is an operator or a comma missing before it?`},
		{"n n", 2, `unexpected "n"; is an operator or a comma missing before it?`},
		{"n mod 2", 2, `unexpected "mod"; write floor(a / b) or a % b`},
		{"* 2", 0, `unexpected "*"; expected a number or a name here`},
		{"1 ** 2", 2, `unexpected "**"; write pow(a, b)`},
		{"1 // 2", 2, `unexpected "//"; write floor(a / b)`},
		{"1 ^ 2", 2, `unexpected "^"; write pow(a, b)`},
		{"a && b", 2, `unexpected "&&"; write and`},
		{"a || b", 2, `unexpected "||"; write or`},
		{"!a", 0, `unexpected "!"; write not`},
		{"a = b", 2, `unexpected "="; write == to compare`},
		{"a ? 1 : 2", 2, `unexpected "?"; write select(c, a, b), which is a if c is true, else b`},
		{"$i", 0, `unexpected "$"; in an expression write i without the dollar`},
		{"x[0]", 1, `unexpected "["; a slice is written x(lo..hi)`},
		{"1 << 2", 2, `unexpected "<<"; shifts are pow(2, n) times or over`},
		{"a @ b", 2, `unexpected character '@'`},
		{"a \x00 b", 2, `unexpected character '\x00'`},
		{"a \xff b", 2, `unexpected character '�'`},
		{`"a"`, 0, `unexpected "\""; expressions hold numbers and names only`},
		{"x..y", 1, `unexpected ".."; a slice x(lo..hi) can stand for a buffer, or in len(...)`},
		{"i of 4", 2, `unexpected "of"; a slice x(i of k) can stand for a buffer, or in len(...)`},
		{"x(0..4)", 0, `a slice is not a number; its length is len(x(...))`},
		{"x(i of 4)", 0, `a slice is not a number; its length is len(x(...))`},
		{"010", 0, "number 010 has a leading zero; write 10"},
		{"00", 0, "number 00 has a leading zero; write 0"},
		{"00.5", 0, "number 00.5 has a leading zero; write 0.5"},
		{"1.", 0, `bad number "1."; write a digit after the point`},
		{".5", 0, `unexpected "."; write a digit before the point`},
		{"1e400", 0, "number 1e400 is too large for a 64-bit float"},
		{"1_000", 0, `bad number "1_000"; write 1000`},
		{"0xfg", 0, `bad number "0xfg"; a hexadecimal number has digits 0 to 9 and a to f`},
		{"0x8000000000000000", 0, `integer 0x8000000000000000 does not fit in 64 bits`},
		{"2n", 0, `bad number "2n"; write 2*n`},
		{"1e", 0, `bad number "1e"; write 1*e`},
		{"9223372036854775808", 0, "integer 9223372036854775808 does not fit in 64 bits"},
		{"99999999999999999999", 0, "integer 99999999999999999999 does not fit in 64 bits"},
		{"9223372036854775807 + 1", 20, "overflow: the result does not fit in 64 bits"},
		{"largest * 2", 8, "overflow: the result does not fit in 64 bits"},
		{"-least", 0, "overflow: the result does not fit in 64 bits"},
		{"least / -1", 6, "overflow: the result does not fit in 64 bits"},
		{"abs(least)", 0, "overflow: the result does not fit in 64 bits"},
		{"pow(10, 19)", 0, "overflow: the result does not fit in 64 bits"},
		{"1e308 * 10", 6, "overflow: the result is not a finite number"},
		{"ceil(1e30)", 0, "overflow: the result does not fit in 64 bits"},
		{"1 / 0", 2, "division by zero"},
		{"1 % 0", 2, "division by zero"},
		{"1.0 / 0", 4, "division by zero"},
		{"n / (i - 3)", 2, "division by zero"},
		{"pow(0, -1)", 0, "division by zero"},
		{"pow(0.0, -1)", 0, "division by zero"},
		{"pow(-8, 1/3)", 0, "pow of the negative number -8 with a fractional exponent"},
		{"sqrt(-1)", 0, "sqrt of the negative number -1"},
		{"log2(0)", 0, "log2 of 0, which is not above 0"},
		{"m + 1", 0, `unknown name "m"`},
		{"1 if n > 0 else 2", 2, `unexpected "if"; write select(c, a, b), which is a if c is true, else b`},
		{"if(n > 0, 1, 2)", 0, `unknown function "if"; write select(c, a, b), which is a if c is true, else b`},
		{"sqr(2)", 0, `unknown function "sqr"; did you mean "sqrt"?`},
		{"exp(1)", 0, "exp is only available in map: expressions"},
		{"pow(2)", 0, "pow takes 2 arguments, not 1"},
		{"select(true, 1)", 0, "select takes 3 arguments, not 2"},
		{"select(1, 2, 3)", 7, "expected true or false, not the number 1; compare it, as in n > 0"},
		{"min()", 0, "min takes 1 to 1024 arguments, not 0"},
		{"abs(1, 2)", 0, "abs takes 1 argument, not 2"},
		{"max(1,)", 6, `unexpected ")"; expected an argument here`},
		{"max(1 2)", 6, `unexpected "2"; a comma or an operator is missing before it`},
		{"rand(1, 2, 0)", 11, "the range of rand must be above 0, not 0"},
		{"rand(1, 1/2, 3)", 9, "the counter of rand must be an integer, not 1/2; use floor(...) or ceil(...)"},
		{"0 < i < 4", 6, "comparisons do not chain; write a < b and b < c"},
		{"n and true", 0, "expected true or false, not the number 1000; compare it, as in n > 0"},
		{"not 3", 4, "expected true or false, not the number 3; compare it, as in n > 0"},
		{"len(y)", 4, `unknown buffer "y"`},
		{"len(one)", 4, "one is a single element, it has no length"},
		{"len(3 + 4)", 6, `unexpected "+"; expected ")" here`},
		{"len()", 4, `unexpected ")"; expected a buffer's name here`},
		{"len(x[0:4])", 5, "a slice is not written with brackets; write x(0..4)"},
		{"len(x(0..11))", 9, "slice 0..11 is outside x, which has 10"},
		{"len(x(11..))", 6, "slice 11..10 is outside x, which has 10"},
		{"len(x(-1..2))", 6, "slice of x starts at -1, before its first element"},
		{"len(x(4..2))", 6, "slice 4..2 of x is reversed; write x(2..4)"},
		{"len(x(4 of 4))", 6, "part 4 of 4: parts are numbered 0 to 3"},
		{"len(x(0 of 0))", 11, "x cannot be cut into 0 parts"},
		{"len(x(0..n/3))", 10, "a slice must be an integer, not 1000/3; use floor(...) or ceil(...)"},
		{"len(x(3))", 5, `bad slice of "x"; write x(3..4) for one element`},
		{"len(x(0..4)", 11, `expression ends where ")" is expected`},
		{"len(part.${i})", 9, "a variable is not written with braces; write $i"},
		{"and", 0, `unexpected "and"; expected a number or a name here`},
		{strings.Repeat("(", 101) + "1" + strings.Repeat(")", 101), 100, "expression is nested deeper than 100 levels"},
		{strings.Repeat("-", 101) + "n", 100, "expression is nested deeper than 100 levels"},
		{strings.Repeat("not ", 101) + "n", 400, "expression is nested deeper than 100 levels"},
		{strings.Repeat("abs(", 101) + "n" + strings.Repeat(")", 101), 400, "expression is nested deeper than 100 levels"},
		{strings.Repeat("1+", 1<<15) + "1", 0, "expression of 65537 bytes is over the limit of 65536"},
	} {
		_, err := evaluate(c.text)
		var e *Error
		require.ErrorAs(t, err, &e, c.text)
		require.Equal(t, c.want, e.Error(), c.text)
		require.Equal(t, c.offset, e.Offset, c.text)
	}
}

func evaluate(text string) (Value, error) {
	e, err := Parse(text)
	if err != nil {
		return Value{}, err
	}
	return e.Eval(scope)
}

func TestLongSumsDoNotCountAsNested(t *testing.T) {
	v, err := evaluate(strings.Repeat("1+", 30000) + "1")
	require.NoError(t, err)
	require.Equal(t, Int(30001), v)
}

func TestCanonicalText(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"1+2*3", "1 + 2 * 3"}, {"(1+2)*3", "(1 + 2) * 3"}, {"1-(2-3)", "1 - (2 - 3)"}, {"(1-2)-3", "1 - 2 - 3"}, {"a/(b*c)", "a / (b * c)"}, {"((a))", "a"},
		{"--a", "--a"}, {"-(3)", "-3"}, {"--3", "3"}, {"-(0)", "0"}, {"--9223372036854775808", "-(-9223372036854775808)"}, {"-a*b", "-a * b"}, {"-(a*b)", "-(a * b)"},
		{"not(a==b)", "not a == b"}, {"(not a)==b", "(not a) == b"}, {"a and(b or c)", "a and (b or c)"}, {"(a and b)or c", "a and b or c"}, {"(a<b)==c", "(a < b) == c"},
		{"max(a,b+1)", "max(a, b + 1)"}, {"len(x.$i( 0 .. n/2 ))", "len(x.$i(0..n / 2))"}, {"len(x(i of 4))", "len(x(i of 4))"}, {"len(x(..))", "len(x(..))"}, {"1e6", "1000000.0"},
	} {
		e, err := Parse(c.text)
		require.NoError(t, err, c.text)
		require.Equal(t, c.want, e.String())
		again, err := Parse(c.want)
		require.NoError(t, err, c.want)
		require.Equal(t, c.want, again.String())
	}
}

func TestMap(t *testing.T) {
	out, e, err := ParseMap("y = a*exp(-x) + tanh(b)")
	require.NoError(t, err)
	require.Equal(t, "y", out)
	require.Equal(t, "a * exp(-x) + tanh(b)", e.String())
	require.Equal(t, []string{"a", "x", "b"}, e.Variables())
	for text, want := range map[string]string{
		"":                `missing the name of the result; an elementwise computation is written "y = a*x + b"`,
		"a*x":             `missing "=" after "a"; an elementwise computation is written "y = a*x + b"`,
		"y == x":          `missing "=" after "y"; an elementwise computation is written "y = a*x + b"`,
		"y(0..4) = x":     `a slice cannot stand in the expression; name the slice in with: and use the name here`,
		"y = x(0..4)":     `a slice is not a number; its length is len(x(...))`,
		"y = rand(1,2,3)": `rand is not available in map: expressions; fill a buffer with init: {expr: ...} and use it here`,
		"y =":             `expression ends where a number or a name is expected`,
		"and = 3":         `missing the name of the result; an elementwise computation is written "y = a*x + b"`,
	} {
		_, _, err := ParseMap(text)
		require.EqualError(t, err, want, text)
	}
}

func TestTemplates(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"up.$i", "up.3"}, {"up.$(i+1)_x", "up.4_x"}, {"$$i", "$i"}, {"a$$", "a$"}, {"", ""}, {"plain", "plain"}, {"$i$i", "33"}, {"$(n*0.5)", "500"}, {"$(1/3)", "1/3"}, {"out/$(i % 2).npy", "out/1.npy"},
		{"$größe", "7"}, {"$(len(x(0..2)))", "2"},
	} {
		p, err := ParseTemplate(c.text)
		require.NoError(t, err, c.text)
		got, err := p.Expand(scope)
		require.NoError(t, err, c.text)
		require.Equal(t, c.want, got)
	}
	for text, want := range map[string]string{
		"up.${i}":   "3: a variable is not written with braces; write $i",
		"up.${i+1}": "3: a variable is not written with braces; write $(i+1)",
		"up.${":     "3: a variable is not written with braces; write $i or $(i+1)",
		"cost $":    "5: lone $; write $i, $(i+1), or $$ for a dollar",
		"$5":        "0: lone $; write $i, $(i+1), or $$ for a dollar",
		"$(i":       `3: expression ends where ")" is expected`,
		"a.$j":      `3: unknown name "j"`,
	} {
		p, err := ParseTemplate(text)
		if err == nil {
			_, err = p.Expand(scope)
		}
		var e *Error
		require.ErrorAs(t, err, &e, text)
		require.Equal(t, want, fmt.Sprintf("%d: %s", e.Offset, e), text)
	}
}

func TestSlices(t *testing.T) {
	for k := int64(1); k < 13; k++ {
		at := int64(0)
		for i := range k {
			s, err := ParseSlice(fmt.Sprintf("x(%d of %d)", i, k))
			require.NoError(t, err)
			rows, columns, err := s.Extent(scope, "x", []int64{10})
			require.NoError(t, err)
			require.Equal(t, Span{0, 1}, columns)
			require.Equal(t, at, rows.Lo)
			require.Contains(t, []int64{10 / k, (10 + k - 1) / k}, rows.Len())
			at = rows.Hi
		}
		require.EqualValues(t, 10, at)
	}
	for text, want := range map[string]string{
		"x[1:2]":      `1: a slice is not written with brackets; write x(1..2)`,
		"x[:n]":       `1: a slice is not written with brackets; write x(..n)`,
		"x[3]":        `1: a slice is not written with brackets; write x(3..4)`,
		"x(3)":        `1: bad slice of "x"; write x(3..4) for one element`,
		"(0..4)":      `0: a buffer's name is missing`,
		"x(0..4,2)":   `6: unexpected ","; expected ")" here`,
		"a b(1..2)":   ``,
		"f(x)(1..2)":  `1: bad slice of "f"; write x(lo..hi), x(..hi), x(lo..) or x(i of k)`,
		"d.$(i+1)":    ``,
		"x.$i.(0..2)": ``,
	} {
		_, err := ParseSlice(text)
		if want == "" {
			require.NoError(t, err, text)
			continue
		}
		var e *Error
		require.ErrorAs(t, err, &e, text)
		require.Equal(t, want, fmt.Sprintf("%d: %s", e.Offset, e), text)
	}
}

func TestBind(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"1/(i+1)", "1 / (i + 1)"}, {"n*half + i", "500 + i"}, {"len(x)*i", "10 * i"}, {"zero != 0 and 1/zero > i", "false and 1 / 0 > i"}, {"i*alpha + sqrt(16)", "i * 2.0 + 4.0"},
	} {
		e, err := Parse(c.text)
		require.NoError(t, err)
		bound, err := e.Bind(without{scope, "i"}, "i")
		require.NoError(t, err, c.text)
		require.Equal(t, c.want, bound.String())
		require.Equal(t, c.text, bound.Text)
	}
	e, err := Parse("i + 1/zero")
	require.NoError(t, err)
	_, err = e.Bind(without{scope, "i"}, "i")
	require.EqualError(t, err, "division by zero")
	_, err = e.Bind(without{scope, "i"})
	require.EqualError(t, err, `unknown name "i"`)
}

type without struct {
	Scope
	hidden string
}

func (s without) Variable(name string) (Value, bool) {
	if name == s.hidden {
		return Value{}, false
	}
	return s.Scope.Variable(name)
}

// The sequence of random numbers is part of the format.
func TestRandNeverChanges(t *testing.T) {
	var got []int64
	for i := range int64(8) {
		got = append(got, Rand(1, i, 1000))
	}
	require.Equal(t, []int64{862, 368, 943, 45, 777, 219, 774, 626}, got)
	require.Equal(t, int64(0), Rand(-5, math.MinInt64, 1))
	count := make([]int, 10)
	for i := range int64(100000) {
		count[Rand(7, i, 10)]++
	}
	for _, c := range count {
		require.InDelta(t, 10000, c, 500)
	}
}

func TestValueInt(t *testing.T) {
	for _, f := range []float64{math.Inf(1), math.NaN(), 1 << 63, -1 << 64, 0.5} {
		_, ok := FloatValue(f).Int()
		require.False(t, ok, f)
	}
	n, ok := FloatValue(-1 << 63).Int()
	require.True(t, ok)
	require.EqualValues(t, math.MinInt64, n)
	_, ok = BoolValue(true).Int()
	require.False(t, ok)
	require.Equal(t, 1.0, BoolValue(true).Float())
	require.Equal(t, Value{}, Int(0))
	_, err := Fraction(1, 0)
	require.True(t, errors.Is(err, ErrDivZero))
}
