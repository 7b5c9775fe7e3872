// Tests that the committed files hold the results of the formulas, and that the closed forms in pipelines are correct.

package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag/expr"
)

func TestCommittedFilesAreTheReferences(t *testing.T) {
	for name, size := range map[string]int{"img": 64, "dl": 64, "inception": 12} {
		values, shape := references[name](size)
		committed, err := os.ReadFile(filepath.Join("../../../pipelines/data", fmt.Sprintf("%s-%d.npy", name, size)))
		require.NoError(t, err)
		require.Equal(t, npy(values, shape), committed, "%s: make it again with `go run ./tests/pipelines/reference %s %d pipelines/data`", name, name, size)
	}
}

// callPrice returns the Black-Scholes price of bs.yaml by its five-term normal distribution.
func callPrice(x float64) float64 {
	const rate, volatility, strike = 0.08, 0.3, 60
	normal := func(d float64) float64 {
		k := 1 / (1 + 0.2316419*math.Abs(d))
		tail := math.Exp(-d*d/2) / math.Sqrt(2*math.Pi) * (0.31938153*k - 0.356563782*math.Pow(k, 2) + 1.781477937*math.Pow(k, 3) - 1.821255978*math.Pow(k, 4) + 1.330274429*math.Pow(k, 5))
		if d < 0 {
			return tail
		}
		return 1 - tail
	}
	d1 := (math.Log(x/strike) + rate + volatility*volatility/2) / volatility
	return x*normal(d1) - strike*math.Exp(-rate)*normal(d1-volatility)
}

type scope map[string]int64

func (s scope) Variable(name string) (expr.Value, bool) {
	v, ok := s[name]
	return expr.Int(v), ok
}
func (s scope) Shape(string) ([]int64, bool) { return nil, false }

func TestBlackScholesPolynomial(t *testing.T) {
	file, err := os.ReadFile("../../../pipelines/bs.yaml")
	require.NoError(t, err)
	_, text, found := strings.Cut(string(file), "expect: {expr: ")
	require.True(t, found)
	text, _, found = strings.Cut(text, ", rtol: ")
	require.True(t, found)
	polynomial, err := expr.Parse(text)
	require.NoError(t, err)
	const n = 500
	for i := range int64(n) {
		for _, s := range []int64{0, 9} {
			v, err := polynomial.Eval(scope{"i": i, "s": s, "n": n})
			require.NoError(t, err)
			want := callPrice(59.5 + float64(i+s)/(n+10))
			require.InEpsilon(t, want, v.Float(), 1e-13)
		}
	}
}

// VEC's sum over n terms against adding them up.
func TestVecTail(t *testing.T) {
	for _, n := range []int{1000, 65536} {
		sum := 0.0
		for i := n - 1; i >= 0; i-- {
			d := float64(i + 1)
			sum += 1/(d*d) - 4/(d*d)
		}
		require.InDelta(t, sum, 3/float64(n)-1.5/float64(n)/float64(n)-math.Pi*math.Pi/2, 2/math.Pow(float64(n), 3)+1e-12)
	}
}

// The links of hits.yaml: its second matrix is the first one's transpose, at the file's size and at the large one.
func TestHitsTranspose(t *testing.T) {
	for _, c := range [][3]int64{{4096, 2533, 3053}, {25000000, 15450849, 10951649}} {
		n, stride, inverse := c[0], c[1], c[2]
		require.Equal(t, int64(1), stride*inverse%n)
		require.Equal(t, int64(1), stride%4)
		require.Zero(t, n%4)
		for r := int64(0); r < n; r += max(1, n/1000) {
			for k := range int64(3) {
				to := (stride*r + k) % n
				back := ((inverse*(to-k))%n + n) % n
				require.Equal(t, r, back, "page %d, link %d", r, k)
			}
		}
	}
}
