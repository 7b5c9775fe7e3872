// Tests of every reference against a second, simple definition in float64, on random data and edge sizes.

package library_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/kernels"
	"github.com/dagrun/dagrun/kernels/launch"
	"github.com/dagrun/dagrun/kernels/library"
)

// arrays are buffers' contents by parameter name.
type arrays map[string][]float64

// meaning defines what a kernel computes: from scalars and inputs (with the old contents of inout buffers) to outputs.
type meaning func(s map[string]float64, in arrays) arrays

func each(n float64, f func(i int) float64) []float64 {
	out := make([]float64, int(n))
	for i := range out {
		out[i] = f(i)
	}
	return out
}

func one(v float64) arrays { return arrays{"out": {v}} }

func sum(v []float64) (s float64) {
	for _, x := range v {
		s += x
	}
	return s
}

func dot(x, y []float64) (s float64) {
	for i := range x {
		s += x[i] * y[i]
	}
	return s
}

// unaryMeaning and binaryMeaning are elementwise.
func unaryMeaning(f func(x float64) float64) meaning {
	return func(s map[string]float64, in arrays) arrays {
		return arrays{"y": each(s["n"], func(i int) float64 { return f(in["x"][i]) })}
	}
}

func binaryMeaning(f func(x, y float64) float64) meaning {
	return func(s map[string]float64, in arrays) arrays {
		return arrays{"z": each(s["n"], func(i int) float64 { return f(in["x"][i], in["y"][i]) })}
	}
}

// byRow makes one result of each row of x.
func byRow(f func(row int, r []float64, in arrays) float64) meaning {
	return func(s map[string]float64, in arrays) arrays {
		cols := int(s["cols"])
		return arrays{"y": each(s["rows"], func(i int) float64 { return f(i, in["x"][i*cols:(i+1)*cols], in) })}
	}
}

func greatest(r []float64) float64 {
	m := math.Inf(-1)
	for _, v := range r {
		m = max(m, v)
	}
	return m
}

func placeOfGreatest(r []float64) float64 {
	at := -1.0
	for i, v := range r {
		if at < 0 || v > r[int(at)] {
			at = float64(i)
		}
	}
	return at
}

func product(s map[string]float64, a, b []float64, i, j int) (sum float64) {
	m, n, k := int(s["m"]), int(s["n"]), int(s["k"])
	for p := range k {
		x, y := i*k+p, p*n+j
		if s["ta"] != 0 {
			x = p*m + i
		}
		if s["tb"] != 0 {
			y = j*k + p
		}
		sum += a[x] * b[y]
	}
	return sum
}

// at returns a picture's point, zero outside.
func at(x []float64, s map[string]float64, r, c int) float64 {
	above, below := int(s["above"]), int(s["below"])
	if r < -above || c < 0 || r >= int(s["rows"])+below || c >= int(s["cols"]) {
		return 0
	}
	return x[(r+above)*int(s["cols"])+c]
}

func grid(s map[string]float64, f func(r, c int) float64) arrays {
	cols := int(s["cols"])
	return arrays{"y": each(s["rows"]*s["cols"], func(i int) float64 { return f(i/cols, i%cols) })}
}

func convolution(positive, margin bool) meaning {
	return func(s map[string]float64, in arrays) arrays {
		rows, cols, ci, co, size, stride, pad := int(s["rows"]), int(s["cols"]), int(s["in"]), int(s["out"]), int(s["size"]), int(s["stride"]), int(s["pad"])
		above, below := pad, pad
		if margin {
			above, below = int(s["above"]), int(s["below"])
		}
		high, wide := (rows+above+below-size)/stride+1, (cols+2*pad-size)/stride+1
		return arrays{"y": each(float64(high*wide*co), func(i int) float64 {
			o, c, r := i%co, i/co%wide, i/co/wide
			sum := 0.0
			for ky := range size {
				for kx := range size {
					a, b := r*stride+ky-above, c*stride+kx-pad
					if a < 0 || b < 0 || a >= rows || b >= cols {
						continue
					}
					for ch := range ci {
						sum += in["x"][(a*cols+b)*ci+ch] * in["weights"][((o*size+ky)*size+kx)*ci+ch]
					}
				}
			}
			if positive {
				sum = max(sum, 0)
			}
			return sum
		})}
	}
}

// blur and gradient count points outside the picture as zero; at handles the rows above and below.
func blur(s map[string]float64, in arrays) arrays {
	radius := int(s["diameter"]) / 2
	weight := func(i, j int) float64 { return math.Exp(-float64(i*i+j*j) / (2 * s["sigma"] * s["sigma"])) }
	all := 0.0
	for i := -radius; i <= radius; i++ {
		for j := -radius; j <= radius; j++ {
			all += weight(i, j)
		}
	}
	return grid(s, func(r, c int) (v float64) {
		for i := -radius; i <= radius; i++ {
			for j := -radius; j <= radius; j++ {
				v += weight(i, j) / all * at(in["x"], s, r+i, c+j)
			}
		}
		return v
	})
}

func gradient(s map[string]float64, in arrays) arrays {
	return grid(s, func(r, c int) float64 {
		h, v := 0.0, 0.0
		for i := -1; i <= 1; i++ {
			w := float64(2 - i*i)
			h += w * (at(in["x"], s, r+i, c+1) - at(in["x"], s, r+i, c-1))
			v += w * (at(in["x"], s, r+1, c+i) - at(in["x"], s, r-1, c+i))
		}
		return math.Hypot(h, v)
	})
}

// cumulative is the normal distribution.
func cumulative(d float64) float64 { return 0.5 * math.Erfc(-d/math.Sqrt2) }

// inOrder returns the indices of x in stable ascending order.
func inOrder(x []float64) []int {
	order := make([]int, len(x))
	for i := range order {
		order[i] = i
	}
	sort.SliceStable(order, func(a, b int) bool { return x[order[a]] < x[order[b]] })
	return order
}

func picked(x []float64, order []int) []float64 {
	return each(float64(len(x)), func(i int) float64 { return x[order[i]] })
}

// chosen are the elements that keep says, then zeros, and how many they are.
func chosen(x []float64, keep func(i int) bool) arrays {
	y := make([]float64, len(x))
	n := 0
	for i, v := range x {
		if keep(i) {
			y[n] = v
			n++
		}
	}
	return arrays{"y": y, "count": {float64(n)}}
}

var meanings = map[string]meaning{
	"fill": func(s map[string]float64, _ arrays) arrays {
		return arrays{"y": each(s["n"], func(int) float64 { return s["value"] })}
	},
	"iota": func(s map[string]float64, _ arrays) arrays {
		return arrays{"y": each(s["n"], func(i int) float64 { return s["start"] + s["step"]*float64(i) })}
	},
	"copy": unaryMeaning(func(x float64) float64 { return x }),
	"scale": func(s map[string]float64, in arrays) arrays {
		return arrays{"x": each(s["n"], func(i int) float64 { return s["alpha"] * in["x"][i] })}
	},
	"add": binaryMeaning(func(x, y float64) float64 { return x + y }),
	"sub": binaryMeaning(func(x, y float64) float64 { return x - y }),
	"mul": binaryMeaning(func(x, y float64) float64 { return x * y }),
	"div": binaryMeaning(func(x, y float64) float64 { return x / y }),
	"axpy": func(s map[string]float64, in arrays) arrays {
		return arrays{"y": each(s["n"], func(i int) float64 { return s["alpha"]*in["x"][i] + in["y"][i] })}
	},
	"square": unaryMeaning(func(x float64) float64 { return x * x }),
	"clamp": func(s map[string]float64, in arrays) arrays {
		return arrays{"y": each(s["n"], func(i int) float64 { return min(max(in["x"][i], s["low"]), s["high"]) })}
	},
	"relu": unaryMeaning(func(x float64) float64 { return max(x, 0) }),
	"abs":  unaryMeaning(math.Abs), "sqrt": unaryMeaning(math.Sqrt), "exp": unaryMeaning(math.Exp), "log": unaryMeaning(math.Log),
	"sin": unaryMeaning(math.Sin), "cos": unaryMeaning(math.Cos), "tanh": unaryMeaning(math.Tanh), "erf": unaryMeaning(math.Erf),
	"divide_by": func(s map[string]float64, in arrays) arrays {
		return arrays{"y": each(s["n"], func(i int) float64 { return in["x"][i] / in["d"][0] })}
	},
	"axpy_ratio": func(s map[string]float64, in arrays) arrays {
		return arrays{"y": each(s["n"], func(i int) float64 { return s["sign"]*in["p"][0]/in["q"][0]*in["x"][i] + in["y"][i] })}
	},
	"xpay_ratio": func(s map[string]float64, in arrays) arrays {
		return arrays{"y": each(s["n"], func(i int) float64 { return in["x"][i] + in["p"][0]/in["q"][0]*in["y"][i] })}
	},
	"unsharpen": func(s map[string]float64, in arrays) arrays {
		return arrays{"y": each(s["n"], func(i int) float64 {
			return min(1, max(0, in["image"][i]+s["amount"]*(in["image"][i]-in["blurred"][i])))
		})}
	},
	"extend": func(s map[string]float64, in arrays) arrays {
		return arrays{"x": each(s["n"], func(i int) float64 {
			return min(1, s["factor"]*(in["x"][i]-in["low"][0])/(in["high"][0]-in["low"][0]))
		})}
	},
	"combine": func(s map[string]float64, in arrays) arrays {
		return arrays{"z": each(s["n"], func(i int) float64 { return in["x"][i]*in["mask"][i] + in["y"][i]*(1-in["mask"][i]) })}
	},
	"black_scholes": unaryMeaning(func(x float64) float64 {
		d := (math.Log(x/60) + (0.08+0.3*0.3/2)*1) / 0.3
		return x*cumulative(d) - 60*math.Exp(-0.08)*cumulative(d-0.3)
	}),
	"reduce_sum": func(_ map[string]float64, in arrays) arrays { return one(sum(in["x"])) },
	"reduce_min": func(_ map[string]float64, in arrays) arrays {
		m := math.Inf(1)
		for _, v := range in["x"] {
			m = min(m, v)
		}
		return one(m)
	},
	"reduce_max":     func(_ map[string]float64, in arrays) arrays { return one(greatest(in["x"])) },
	"argmax":         func(_ map[string]float64, in arrays) arrays { return one(placeOfGreatest(in["x"])) },
	"dot":            func(_ map[string]float64, in arrays) arrays { return one(dot(in["x"], in["y"])) },
	"sum_difference": func(_ map[string]float64, in arrays) arrays { return one(sum(in["x"]) - sum(in["y"])) },
	"norm":           func(_ map[string]float64, in arrays) arrays { return one(math.Sqrt(dot(in["x"], in["x"]))) },
	"row_max":        byRow(func(_ int, r []float64, _ arrays) float64 { return greatest(r) }),
	"row_sum":        byRow(func(_ int, r []float64, _ arrays) float64 { return sum(r) }),
	"row_log_sum_exp": byRow(func(i int, r []float64, in arrays) float64 {
		return math.Log(sum(each(float64(len(r)), func(j int) float64 { return math.Exp(r[j] - in["most"][i]) }))) + in["most"][i]
	}),
	"row_normalise": func(s map[string]float64, in arrays) arrays {
		return arrays{"x": grid(s, func(r, c int) float64 { return math.Exp(at(in["x"], s, r, c) - in["l"][r]) })["y"]}
	},
	"softmax": func(s map[string]float64, in arrays) arrays {
		return grid(s, func(r, c int) float64 {
			all := 0.0
			for j := range int(s["cols"]) {
				all += math.Exp(at(in["x"], s, r, j))
			}
			return math.Exp(at(in["x"], s, r, c)) / all
		})
	},
	"row_argmax": byRow(func(_ int, r []float64, _ arrays) float64 { return placeOfGreatest(r) }),
	"row_argmax_sum": func(s map[string]float64, in arrays) arrays {
		cols := int(s["cols"])
		return arrays{"y": each(s["rows"], func(i int) float64 {
			return placeOfGreatest(each(s["cols"], func(j int) float64 { return float64(float32(in["a"][i*cols+j] + in["b"][i*cols+j])) }))
		})}
	},
	"add_bias": func(s map[string]float64, in arrays) arrays {
		return arrays{"x": grid(s, func(r, c int) float64 { return at(in["x"], s, r, c) + in["bias"][c] })["y"]}
	},
	"concat": func(s map[string]float64, in arrays) arrays {
		m, n := int(s["m"]), int(s["n"])
		return arrays{"z": each(s["rows"]*float64(m+n), func(i int) float64 {
			if r, j := i/(m+n), i%(m+n); j < m {
				return in["x"][r*m+j]
			} else {
				return in["y"][r*n+j-m]
			}
		})}
	},
	"gemm": func(s map[string]float64, in arrays) arrays {
		return arrays{"c": each(s["m"]*s["n"], func(i int) float64 {
			return s["alpha"]*product(s, in["a"], in["b"], i/int(s["n"]), i%int(s["n"])) + s["beta"]*in["c"][i]
		})}
	},
	"matmul_standardised": func(s map[string]float64, in arrays) arrays {
		n, k := int(s["n"]), int(s["k"])
		return arrays{"c": each(s["m"]*s["n"], func(i int) (v float64) {
			for p := range k {
				b := in["b"][p*n+i%n]
				if s["tb"] != 0 {
					b = in["b"][i%n*k+p]
				}
				v += (in["a"][i/n*k+p] - in["mean"][p]) * in["inverse"][p] * b
			}
			return v
		})}
	},
	"matmul": func(s map[string]float64, in arrays) arrays {
		return arrays{"c": each(s["m"]*s["n"], func(i int) float64 { return product(s, in["a"], in["b"], i/int(s["n"]), i%int(s["n"])) })}
	},
	"gemv": func(s map[string]float64, in arrays) arrays {
		n := int(s["n"])
		return arrays{"y": each(s["m"], func(i int) float64 {
			return s["alpha"]*dot(in["a"][i*n:(i+1)*n], in["x"]) + s["beta"]*in["y"][i]
		})}
	},
	"syrk": func(s map[string]float64, in arrays) arrays {
		n, k := int(s["n"]), int(s["k"])
		return arrays{"c": each(s["n"]*s["n"], func(i int) float64 {
			r, c := i/n, i%n
			if c > r {
				return in["c"][i]
			}
			return s["alpha"]*dot(in["a"][r*k:(r+1)*k], in["a"][c*k:(c+1)*k]) + s["beta"]*in["c"][i]
		})}
	},
	"transpose": func(s map[string]float64, in arrays) arrays {
		rows := int(s["rows"])
		return arrays{"y": each(s["rows"]*s["cols"], func(i int) float64 { return at(in["x"], s, i%rows, i/rows) })}
	},
	"spmv_csr": func(s map[string]float64, in arrays) arrays {
		return arrays{"y": each(s["rows"], func(i int) (sum float64) {
			for j := int(in["offsets"][i]); j < int(in["offsets"][i+1]); j++ {
				k := j - int(in["offsets"][0])
				sum += in["values"][k] * in["x"][int(in["columns"][k])]
			}
			return sum
		})}
	},
	"potrf": func(s map[string]float64, in arrays) arrays {
		n := int(s["n"])
		a := append([]float64(nil), in["a"]...)
		for i := range n {
			for j := range i + 1 {
				v := a[i*n+j] - dot(a[i*n:i*n+j], a[j*n:j*n+j])
				if i == j {
					a[i*n+j] = math.Sqrt(v)
				} else {
					a[i*n+j] = v / a[j*n+j]
				}
			}
		}
		return arrays{"a": a}
	},
	"trsm": func(s map[string]float64, in arrays) arrays {
		m, n := int(s["m"]), int(s["n"])
		x := append([]float64(nil), in["x"]...)
		for i := range m {
			for j := range n {
				x[i*n+j] = (x[i*n+j] - dot(x[i*n:i*n+j], in["l"][j*n:j*n+j])) / in["l"][j*n+j]
			}
		}
		return arrays{"x": x}
	},
	"gaussian_blur": blur, "gaussian_blur_rows": blur, "sobel": gradient, "sobel_rows": gradient,
	"stencil5": func(s map[string]float64, in arrays) arrays {
		return grid(s, func(r, c int) float64 {
			v := at(in["x"], s, r, c)
			if r == 0 || c == 0 || r == int(s["rows"])-1 || c == int(s["cols"])-1 {
				return v
			}
			return v + s["alpha"]*(at(in["x"], s, r-1, c)+at(in["x"], s, r+1, c)+at(in["x"], s, r, c-1)+at(in["x"], s, r, c+1)-4*v)
		})
	},
	"stencil5_halo": func(s map[string]float64, in arrays) arrays {
		cols := int(s["cols"])
		x := func(r, c int) float64 { return in["x"][(r+1)*cols+c] }
		return grid(s, func(r, c int) float64 {
			if c == 0 || c == cols-1 {
				return x(r, c)
			}
			return x(r, c) + s["alpha"]*(x(r-1, c)+x(r+1, c)+x(r, c-1)+x(r, c+1)-4*x(r, c))
		})
	},
	"stencil3": func(s map[string]float64, in arrays) arrays {
		return arrays{"y": each(s["n"], func(i int) float64 {
			x := in["x"]
			if i == 0 || i == len(x)-1 {
				return x[i]
			}
			return x[i] + s["alpha"]*(x[i-1]+x[i+1]-2*x[i])
		})}
	},
	"conv2d": convolution(false, false), "conv2d_relu": convolution(true, false), "conv2d_rows": convolution(false, true), "conv2d_relu_rows": convolution(true, true),
	"mean_pool": func(s map[string]float64, in arrays) arrays {
		rows, cols, ch, size, stride := int(s["rows"]), int(s["cols"]), int(s["channels"]), int(s["size"]), int(s["stride"])
		high, wide := (rows-size)/stride+1, (cols-size)/stride+1
		return arrays{"y": each(float64(high*wide*ch), func(i int) (v float64) {
			for a := range size {
				for b := range size {
					v += in["x"][((i/ch/wide*stride+a)*cols+i/ch%wide*stride+b)*ch+i%ch] / float64(size*size)
				}
			}
			return v
		})}
	},
	"column_standardise": func(s map[string]float64, in arrays) arrays {
		rows, cols := int(s["rows"]), int(s["cols"])
		return arrays{"z": each(s["rows"]*s["cols"], func(i int) float64 {
			mean, square := 0.0, 0.0
			for r := range rows {
				mean += in["x"][r*cols+i%cols] / s["rows"]
			}
			for r := range rows {
				d := in["x"][r*cols+i%cols] - mean
				square += d * d / s["rows"]
			}
			if square < 1e-20 {
				return 0
			}
			return (in["x"][i] - mean) / math.Sqrt(square)
		})}
	},
	"column_sums": func(s map[string]float64, in arrays) arrays {
		rows, cols := int(s["rows"]), int(s["cols"])
		return arrays{"sums": each(2*s["cols"], func(i int) (v float64) {
			for r := range rows {
				d := in["x"][r*cols+i%cols] - in["pivot"][i%cols]
				v += math.Pow(d, float64(1+i/cols))
			}
			return v
		})}
	},
	"column_moments": func(s map[string]float64, in arrays) arrays {
		cols := int(s["cols"])
		moment := func(c, k int) (v float64) {
			for part := range int(s["parts"]) {
				v += in["sums"][(2*part+k)*cols+c] / s["rows"]
			}
			return v
		}
		return arrays{"mean": each(s["cols"], func(c int) float64 { return in["pivot"][c] + moment(c, 0) }),
			"inverse": each(s["cols"], func(c int) float64 {
				if v := moment(c, 1) - moment(c, 0)*moment(c, 0); v > 0 {
					return 1 / math.Sqrt(v)
				}
				return 1
			})}
	},
	"exclusive_scan": func(s map[string]float64, in arrays) arrays {
		before := 0.0
		return arrays{"y": each(s["n"], func(i int) float64 {
			v := before
			before += in["x"][i]
			return v
		})}
	},
	"inclusive_scan": func(s map[string]float64, in arrays) arrays {
		all := 0.0
		return arrays{"y": each(s["n"], func(i int) float64 {
			all += in["x"][i]
			return all
		})}
	},
	"sort": func(_ map[string]float64, in arrays) arrays { return arrays{"y": picked(in["x"], inOrder(in["x"]))} },
	"sort_pairs": func(_ map[string]float64, in arrays) arrays {
		order := inOrder(in["keys"])
		return arrays{"sorted": picked(in["keys"], order), "moved": picked(in["values"], order)}
	},
	"compact": func(_ map[string]float64, in arrays) arrays {
		return chosen(in["x"], func(i int) bool { return in["keep"][i] != 0 })
	},
	"unique": func(_ map[string]float64, in arrays) arrays {
		return chosen(in["x"], func(i int) bool { return i == 0 || in["x"][i] != in["x"][i-1] })
	},
	"gather": func(s map[string]float64, in arrays) arrays {
		return arrays{"y": each(s["n"], func(i int) float64 {
			if at := in["index"][i]; at >= 0 && at < s["m"] {
				return in["x"][int(at)]
			}
			return 0
		})}
	},
	"scatter": func(s map[string]float64, in arrays) arrays {
		y := slices.Clone(in["y"])
		for i, at := range in["index"] {
			if at >= 0 && at < s["m"] {
				y[int(at)] = in["x"][i]
			}
		}
		return arrays{"y": y}
	},
	"segment_sum": func(s map[string]float64, in arrays) arrays {
		return arrays{"y": each(s["segments"], func(i int) float64 {
			clamped := func(v float64) int { return int(min(max(v, 0), s["n"])) }
			from, to := clamped(in["offsets"][i]), clamped(in["offsets"][i+1])
			return sum(in["x"][from:max(from, to)])
		})}
	},
	"histogram": func(s map[string]float64, in arrays) arrays {
		out := make([]float64, int(s["bins"]))
		for _, v := range in["x"] {
			if v >= s["low"] && v <= s["high"] {
				out[min(int((v-s["low"])*(s["bins"]/(s["high"]-s["low"]))), len(out)-1)]++
			}
		}
		return arrays{"out": out}
	},
}

// elsewhere names the kernels that other tests give a meaning: they compute no function of their inputs alone, or one stage.
var elsewhere = map[string]bool{"noop": true, "spin": true, "philox_uniform": true, "philox_normal": true, "philox_bits": true, "fft_stage": true}

var (
	vectorSizes = []map[string]float64{{"n": 0}, {"n": 1}, {"n": 7}, {"n": 1023}, {"n": 70_001}}
	matrixSizes = []map[string]float64{{"rows": 0, "cols": 3}, {"rows": 1, "cols": 1}, {"rows": 13, "cols": 10}, {"rows": 6, "cols": 77}, {"rows": 90, "cols": 33}}
	otherSizes  = map[string][]map[string]float64{
		"gemm":                {{"m": 0, "n": 2, "k": 2}, {"m": 1, "n": 1, "k": 1}, {"m": 33, "n": 18, "k": 21}, {"m": 20, "n": 30, "k": 11, "ta": 1}, {"m": 20, "n": 30, "k": 11, "tb": 1, "beta0": 1}, {"m": 9, "n": 5, "k": 40, "ta": 1, "tb": 1}},
		"matmul":              {{"m": 2, "n": 3, "k": 0}, {"m": 1, "n": 1, "k": 1}, {"m": 33, "n": 10, "k": 200, "tb": 1}, {"m": 20, "n": 30, "k": 11, "ta": 1}},
		"matmul_standardised": {{"m": 2, "n": 3, "k": 0}, {"m": 1, "n": 1, "k": 1}, {"m": 33, "n": 10, "k": 200, "tb": 1}, {"m": 20, "n": 30, "k": 11}},
		"column_moments":      {{"parts": 1, "rows": 1, "cols": 2}, {"parts": 3, "rows": 100, "cols": 0}, {"parts": 1, "rows": 50, "cols": 7}, {"parts": 5, "rows": 1000, "cols": 300}},
		"gemv":                {{"m": 0, "n": 4}, {"m": 1, "n": 1}, {"m": 37, "n": 129}, {"m": 3, "n": 1000}},
		"syrk":                {{"n": 1, "k": 1}, {"n": 35, "k": 13}},
		"spmv_csr":            {{"rows": 0, "cols": 1, "nnz": 0}, {"rows": 1, "cols": 1, "nnz": 1}, {"rows": 101, "cols": 77, "nnz": 303}, {"rows": 10, "cols": 500, "nnz": 2000}},
		"potrf":               {{"n": 0}, {"n": 1}, {"n": 7}, {"n": 40}},
		"trsm":                {{"m": 0, "n": 5}, {"m": 1, "n": 1}, {"m": 9, "n": 33}},
		"concat":              {{"rows": 1, "m": 0, "n": 0}, {"rows": 1, "m": 100, "n": 33}, {"rows": 77, "m": 8, "n": 5}},
		"gather":              {{"n": 0, "m": 3}, {"n": 5, "m": 0}, {"n": 7, "m": 1}, {"n": 5000, "m": 777}},
		"scatter":             {{"n": 0, "m": 3}, {"n": 5, "m": 0}, {"n": 7, "m": 1}, {"n": 5000, "m": 777}, {"n": 100, "m": 5000}},
		"segment_sum":         {{"n": 0, "segments": 0}, {"n": 0, "segments": 3}, {"n": 100, "segments": 1}, {"n": 100, "segments": 40}, {"n": 5000, "segments": 7}},
		"histogram":           {{"n": 0, "bins": 3}, {"n": 1, "bins": 1}, {"n": 5000, "bins": 256}},
		"gaussian_blur":       {{"rows": 0, "cols": 3, "diameter": 3}, {"rows": 1, "cols": 1, "diameter": 5}, {"rows": 40, "cols": 37, "diameter": 5}},
		"gaussian_blur_rows":  {{"rows": 0, "cols": 3, "diameter": 3, "above": 1}, {"rows": 1, "cols": 1, "diameter": 5, "above": 2, "below": 2}, {"rows": 40, "cols": 37, "diameter": 5, "above": 2}, {"rows": 33, "cols": 5, "diameter": 7, "above": 1, "below": 3}},
		"sobel_rows":          {{"rows": 1, "cols": 1, "above": 1, "below": 1}, {"rows": 13, "cols": 10, "below": 1}, {"rows": 6, "cols": 77, "above": 1}, {"rows": 9, "cols": 5}},
		"conv2d_rows":         {{"rows": 3, "cols": 1, "in": 1, "out": 1, "size": 3, "stride": 1, "pad": 1}, {"rows": 13, "cols": 17, "in": 1, "out": 9, "size": 3, "stride": 2, "pad": 1, "above": 1}, {"rows": 9, "cols": 11, "in": 3, "out": 5, "size": 3, "stride": 1, "pad": 2, "below": 1}},
		"conv2d":              {{"rows": 1, "cols": 1, "in": 1, "out": 1, "size": 1, "stride": 1}, {"rows": 13, "cols": 17, "in": 1, "out": 8, "size": 3, "stride": 2}, {"rows": 9, "cols": 11, "in": 3, "out": 5, "size": 3, "stride": 1, "pad": 1}},
		"mean_pool":           {{"rows": 1, "cols": 1, "channels": 1, "size": 1, "stride": 1}, {"rows": 23, "cols": 20, "channels": 3, "size": 5, "stride": 5}},
	}
	scalarValues = map[string]float64{"value": 7, "start": 3, "step": 2, "alpha": 3, "beta": -2, "low": -1, "high": 1.5, "sign": -1, "amount": 0.5, "factor": 5,
		"rate": 0.08, "volatility": 0.3, "time": 1, "strike": 60, "sigma": 1.5}
)

func TestReferencesMeanWhatTheySay(t *testing.T) {
	otherSizes["conv2d_relu"], otherSizes["conv2d_relu_rows"] = otherSizes["conv2d"], otherSizes["conv2d_rows"]
	for _, d := range library.Docs() {
		if elsewhere[d.Name] {
			continue
		}
		want := meanings[d.Name]
		require.NotNil(t, want, "%s has no meaning here", d.Name)
		cases := otherSizes[d.Name]
		if cases == nil {
			cases = vectorSizes
			if d.Params[0].Name == "rows" {
				cases = matrixSizes
			}
		}
		for _, v := range d.Variants {
			for n, sizes := range cases {
				if testing.Short() && n != len(cases)/2 {
					continue // each size takes the same path, and the largest takes most of the time
				}
				checkMeaning(t, d, v, sizes, want, rand.New(rand.NewPCG(uint64(n), 9)))
			}
		}
	}
}

func checkMeaning(t *testing.T, d library.Doc, v library.Variant, sizes map[string]float64, want meaning, random *rand.Rand) {
	what := fmt.Sprintf("%s %v", v.Entry, sizes)
	k, err := kernels.Library().Kernel(d.Name, v.Elems)
	require.NoError(t, err)
	scalars := map[string]float64{}
	for name, x := range scalarValues {
		scalars[name] = x
	}
	for name, x := range sizes {
		scalars[name] = x
	}
	if sizes["beta0"] != 0 {
		scalars["beta"] = 0
	}
	var args []dag.Arg
	for i, p := range k.Params() {
		a := dag.Arg{IsBuffer: p.Buffer, Mode: p.Mode, DType: p.DType, Range: dag.Range{Buffer: dag.BufferID(i), Hi: 1 << 50}}
		if !p.Buffer {
			if p.DType.Float() || p.DType == dag.I32 && strings.HasSuffix(v.Entry, "_i32") {
				if d.Name != "black_scholes" {
					scalars[p.Name] = math.Trunc(scalars[p.Name]*64) / 64 // what every type can hold
				}
				if p.DType == dag.I32 {
					scalars[p.Name] = math.Trunc(scalars[p.Name])
				}
			}
			a.Bits = encode(p.DType, scalars[p.Name])
		}
		args = append(args, a)
	}
	info, err := k.Describe(args)
	require.NoError(t, err, what)
	in := arrays{}
	call := &launch.Call{Grid: info.Grid, Block: info.Block}
	lowest := dag.F64 // the least precise type decides the tolerance
	for i, p := range k.Params() {
		if !p.Buffer {
			call.Args = append(call.Args, launch.Arg{Bits: args[i].Bits})
			continue
		}
		n := info.Extents[i]
		memory := make([]uint64, n*p.DType.Size()/8+2)
		a := launch.Arg{Memory: unsafe.Pointer(&memory[0]), Bytes: n * p.DType.Size()}
		if p.Scratch {
			a.Memory = unsafe.Pointer(&memory[0])
		} else {
			values := contents(d.Name, p, scalars, n, random)
			for j, x := range values {
				encodeAt(p.DType, a.Memory, j, x)
				values[j] = decodeAt(p.DType, a.Memory, j)
			}
			in[p.Name] = values
			if p.DType.Float() && (p.DType.Size() < lowest.Size() || p.DType == dag.BF16) {
				lowest = p.DType
			}
		}
		call.Args = append(call.Args, a)
	}
	outputs := want(scalars, in)
	if info.Grid[0] > 0 {
		r := library.Module(v.Entry).References[v.Entry]
		spans := r.Spans(call)
		for lo := spans - 1; lo >= 0; lo-- { // spans are independent: any order will do
			r.Run(call, lo, lo+1)
		}
	}
	scale := 1.0
	for _, x := range in {
		for _, y := range x {
			scale = max(scale, math.Abs(y))
		}
	}
	digits := map[dag.DType]float64{dag.F16: 1e-3, dag.BF16: 8e-3, dag.F32: 2e-6, dag.F64: 1e-13}[lowest]
	if d.Name == "black_scholes" { // its five terms are good to 7.5e-8 of the distribution
		digits = max(digits, 2e-7)
		scale = 120
	}
	for i, p := range k.Params() {
		if p.Mode&dag.Write == 0 || p.Scratch {
			continue
		}
		expected := outputs[p.Name]
		require.Len(t, expected, int(info.Extents[i]), "%s: %s", what, p.Name)
		for j, w := range expected {
			got := decodeAt(p.DType, call.Args[i].Memory, j)
			if got == w || got != got && w != w {
				continue
			}
			tolerance := digits * (math.Abs(w) + scale)
			switch d.Name {
			case "reduce_sum", "sum_difference", "dot", "norm", "exclusive_scan", "inclusive_scan", "segment_sum", "gemm", "matmul", "matmul_standardised", "column_sums", "gemv", "spmv_csr", "syrk":
				tolerance *= 4 * math.Sqrt(1+float64(len(in["x"])+len(in["a"])))
			}
			if !p.DType.Float() {
				tolerance = 0
				if math.IsInf(w, 0) { // the minimum or maximum of no elements
					w = min(max(w, math.MinInt32), math.MaxInt32)
				}
			}
			if !(math.Abs(got-w) <= tolerance) {
				assert.Fail(t, "differs", "%s: %s[%d] = %v, want %v", what, p.Name, j, got, w)
				return
			}
		}
	}
}

// contents returns values that every type can hold and that are valid for the kernel.
func contents(kernel string, p dag.KernelParam, s map[string]float64, n int64, random *rand.Rand) []float64 {
	v := make([]float64, n)
	for i := range v {
		v[i] = math.Trunc((random.Float64()*4-2)*64) / 64
		switch {
		case p.DType == dag.I32:
			v[i] = float64(random.IntN(200) - 100)
		case kernel == "log" || kernel == "sqrt" || kernel == "black_scholes":
			v[i] = math.Abs(v[i])*30 + 0.5
		case kernel == "div" && v[i] == 0:
			v[i] = 1
		case p.Name == "d" || p.Name == "q":
			v[i] = 1.25
		case p.Name == "inverse" && p.DType.Float():
			v[i] = 0.75 + float64(i%3)/4
		case p.Name == "low":
			v[i] = -2
		case p.Name == "high":
			v[i] = 2.5
		}
	}
	switch {
	case p.Name == "index":
		for i := range v {
			v[i] = float64(random.IntN(int(s["m"])+4) - 2) // a few are outside
		}
	case p.Name == "keep":
		for i := range v {
			v[i] = float64(random.IntN(3))
		}
	case kernel == "segment_sum" && p.Name == "offsets":
		for i := range v {
			v[i] = float64(random.IntN(int(s["n"])+5) - 2)
		}
		sort.Float64s(v)
		if n > 3 { // one segment ends before it begins
			v[1], v[2] = v[2], v[1]
		}
	case kernel == "unique" || kernel == "sort_pairs" && p.Name == "keys":
		for i := range v {
			v[i] = float64(random.IntN(5))
		}
	case kernel == "spmv_csr" && p.Name == "columns":
		for i := range v {
			v[i] = float64(random.IntN(int(s["cols"])))
		}
	case kernel == "spmv_csr" && p.Name == "offsets":
		for i := range v {
			v[i] = float64(random.IntN(int(s["nnz"]) + 1))
		}
		v[0], v[n-1] = 0, s["nnz"]
		sort.Float64s(v)
		for i := range v {
			v[i] += 3 // as if other rows came before these
		}
	case kernel == "potrf" || kernel == "trsm" && p.Name == "l":
		for i := range v {
			r, c := i/int(s["n"]), i%int(s["n"])
			if v[i] = 1 / float64(1+max(r-c, c-r)); r == c {
				v[i] = 4 + float64(r%3)
			}
		}
	}
	return v
}
