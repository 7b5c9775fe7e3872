// Tests of our own functions against the standard library's in float64, and of fma32 against exact arithmetic.

package numbers

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
)

// ulps32 is the distance of got from want in units of got's last place.
func ulps32(got float32, want float64) float64 {
	if got != got && want != want || float64(got) == want {
		return 0
	}
	if math.IsInf(want, 0) || math.IsInf(float64(got), 0) {
		if float32(want) == got {
			return 0
		}
		return math.Inf(1)
	}
	w := math.Abs(float64(float32(want)))
	unit := math.Ldexp(1, max(math.Ilogb(max(w, 0x1p-126))-23, -149))
	return math.Abs(float64(got)-want) / unit
}

func ulps64(got, want float64) float64 {
	if got != got && want != want || got == want {
		return 0
	}
	if math.IsInf(got, 0) || math.IsInf(want, 0) {
		return math.Inf(1)
	}
	unit := math.Ldexp(1, max(math.Ilogb(max(math.Abs(want), 0x1p-1022))-52, -1074))
	return math.Abs(got-want) / unit
}

func TestFunctionsWithinTheirUlps(t *testing.T) {
	sin := func(x float32) float32 { s, _ := sincos32(x); return s }
	cos := func(x float32) float32 { _, c := sincos32(x); return c }
	sin64 := func(x float64) float64 { s, _ := sincos64(x); return s }
	cos64 := func(x float64) float64 { _, c := sincos64(x); return c }
	for _, f := range []struct {
		name    string
		single  func(float32) float32
		double  func(float64) float64
		want    func(float64) float64
		scale   float64
		ulps    float64      // f32
		ulps64  float64      // one of which may be the standard library's error
		special [][2]float64 // computed with 700 digits: the standard library itself is wrong at some of these
	}{
		{"exp", exp32, exp64, math.Exp, 80, 2, 2, [][2]float64{{0.0, 1.0}, {88.7, 3.325986980250579e+38}, {-87.5, 9.982350930569248e-39}, {709.7, 1.6549840276802644e+308}, {709.78, 1.7928227943945155e+308}, {-708.5, 2.006132305331306e-308}, {-740.0, 4.2e-322}, {-745.1, 5e-324}, {1e-300, 1.0}}},
		{"log", Log32, Log64, math.Log, 0, 2, 2, [][2]float64{{1.0, 0.0}, {0.7071, -0.346583180371942}, {1.4142, 0.3465640001880033}, {1e-40, -92.10340371976183}, {5e-324, -744.4400719213812}, {1e-310, -713.8013788281542}, {1e300, 690.7755278982137}, {0.9999999999, -1.000000082790371e-10}}},
		{"sin", sin, sin64, math.Sin, 100, 2, 2, [][2]float64{{1e-30, 1e-30}, {3.1415927, -4.641020666628482e-08}, {1e5, 0.03574879797201651}, {1e10, -0.4875060250875107}, {4194305.5, 0.29005905346221145}, {1e15, 0.8582727931702359}, {3e38, -0.023678459894696413}, {1e22, -0.8522008497671888}, {5e300, 0.9970972810634189}, {0x1.6ac5b262ca1ffp+849, 1.0}}},
		{"cos", cos, cos64, math.Cos, 100, 2, 2, [][2]float64{{1e-30, 1.0}, {1.5707963267948966, 6.123233995736766e-17}, {1e5, -0.9993608074382124}, {1e10, 0.873119622676856}, {4194305.5, -0.957008748917483}, {1e15, -0.5131937377869703}, {3e38, 0.9997196259637076}, {1e22, 0.523214785395139}, {5e300, -0.07613811198038367}, {0x1.6ac5b262ca1ffp+849, -4.687165924254628e-19}}},
		{"tanh", tanh32, tanh64, math.Tanh, 3, 3, 3, [][2]float64{{0.625, 0.5545997223493823}, {0.6251, 0.5546689604240068}, {1e-30, 1e-30}, {20.0, 1.0}, {-0.6752199505465404, -0.5884030746776904}, {-100.0, -1.0}}},
		{"erf", erf32, erf64, math.Erf, 3, 3, 3, [][2]float64{{1.0, 0.8427007929497149}, {0.99999, 0.8426966418332298}, {2.0, 0.9953222650189527}, {3.9999, 0.9999999845700388}, {5.5, 0.9999999999999927}, {6.5, 1.0}, {1e-30, 1.1283791670955127e-30}, {-1.5, -0.9661051464753108}}},
	} {
		random := rand.New(rand.NewPCG(1, 2))
		worst32, worst64 := 0.0, 0.0
		at32, at64 := 0.0, 0.0
		inputs := []float64{math.Inf(1), math.Inf(-1), math.NaN(), 0}
		for range 60_000 {
			x := (random.Float64()*2 - 1) * f.scale
			if f.scale == 0 {
				x = math.Exp((random.Float64()*2 - 1) * 80)
			}
			inputs = append(inputs, x)
		}
		for _, x := range inputs {
			single := float32(x)
			if u := ulps32(f.single(single), f.want(float64(single))); u > worst32 {
				worst32, at32 = u, float64(single)
			}
			if u := ulps64(f.double(x), f.want(x)); u > worst64 {
				worst64, at64 = u, x
			}
		}
		for _, c := range f.special {
			assert.LessOrEqual(t, ulps64(f.double(c[0]), c[1]), f.ulps64, "%s64 at %v", f.name, c[0])
		}
		for _, c := range []float32{1e-45, 1e-40, 88.72, -87.5, -103.9, 3e38, 1e30, 12345.678} {
			want := f.want(float64(c))
			if f.name == "sin" || f.name == "cos" {
				s, c := sincos64(float64(c)) // the standard library loses digits far out; sincos64 is checked above
				want = map[string]float64{"sin": s, "cos": c}[f.name]
			}
			assert.LessOrEqual(t, ulps32(f.single(c), want), f.ulps, "%s32 at %v", f.name, c)
		}
		assert.LessOrEqual(t, worst32, f.ulps, "%s32 at %v", f.name, at32)
		assert.LessOrEqual(t, worst64, f.ulps64, "%s64 at %v", f.name, at64)
		t.Logf("%s: %.2f ulps in f32 (at %v), %.2f in f64 (at %v)", f.name, worst32, at32, worst64, at64)
	}
}

func TestTurnsAreExactAtQuarters(t *testing.T) {
	for k, want := range [][2]float32{{0, 1}, {1, 0}, {0, -1}, {-1, 0}, {0, 1}} {
		s, c := SincosTurns32(float32(k) / 4)
		assert.Equal(t, want[0], s+0)
		assert.Equal(t, want[1], c+0)
		s64, c64 := SincosTurns64(float64(k) / 4)
		assert.Equal(t, float64(want[0]), s64+0)
		assert.Equal(t, float64(want[1]), c64+0)
	}
}

func TestFMA32IsRoundedOnce(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	check := func(a, b, c float32) {
		exact := new(big.Float).SetPrec(2000).SetFloat64(float64(a))
		exact.Mul(exact, big.NewFloat(float64(b)))
		exact.Add(exact, big.NewFloat(float64(c)))
		want, _ := exact.Float32()
		if got := FMA32(a, b, c); got != want {
			t.Fatalf("fma32(%v, %v, %v) = %v, want %v", a, b, c, got, want)
		}
	}
	for range 40_000 {
		a := math.Float32frombits(random.Uint32()&0x007fffff | 0x3f800000)
		b := math.Float32frombits(random.Uint32()&0x007fffff | 0x3f800000)
		// Addends much smaller or larger make the first rounding land near the middle between two results.
		c := float32(math.Ldexp(random.Float64()*2-1, random.IntN(120)-80))
		check(a, b, c)
		check(a*0x1p-70, b*0x1p-60, c*0x1p-60)
	}
	check(1+0x1p-12, 1+0x1p-12, 0x1p-60) // the product ends in a tie that the addend breaks
	check(1+0x1p-12, 1+0x1p-12, -0x1p-60)
	check(0x1p-100, 0x1p-49, 0x1p-149)
	check(0, 1, 0)
	inf := float32(math.Inf(1))
	assert.Equal(t, inf, FMA32(inf, 1, 1))
	assert.True(t, math.IsNaN(float64(FMA32(inf, 0, 1))))
}

func TestPhiloxKnownAnswers(t *testing.T) {
	// From the authors' own list of known answers (Random123, kat_vectors, philox4x32 with 10 rounds).
	all := uint32(math.MaxUint32)
	assert.Equal(t, [4]uint32{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}, Philox([4]uint32{}, [2]uint32{}))
	assert.Equal(t, [4]uint32{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}, Philox([4]uint32{all, all, all, all}, [2]uint32{all, all}))
	assert.Equal(t, [4]uint32{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1},
		Philox([4]uint32{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, [2]uint32{0xa4093822, 0x299f31d0}))
}
