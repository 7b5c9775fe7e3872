// Chunk functions: what each elementwise kernel computes, with the same operations as cuda/elementwise.cu. Products are converted
// before they are added, which keeps the compiler from fusing them.

package library

import "github.com/dagrun/dagrun/internal/numbers"

func fillChunk[C numbers.Element](_ int64, k []C, out []C, _ [][]C) {
	for i := range out {
		out[i] = k[0]
	}
}

func iotaChunk[C numbers.Element](first int64, k []C, out []C, _ [][]C) {
	for i := range out {
		out[i] = k[0] + C(k[1]*C(first+int64(i)))
	}
}

func scaleChunk[C numbers.Element](_ int64, k []C, out []C, in [][]C) {
	x := in[0][:len(out)]
	for i := range out {
		out[i] = k[0] * x[i]
	}
}

func addChunk[C numbers.Element](_ int64, _ []C, out []C, in [][]C) {
	x, y := in[0][:len(out)], in[1][:len(out)]
	for i := range out {
		out[i] = x[i] + y[i]
	}
}

func subChunk[C numbers.Element](_ int64, _ []C, out []C, in [][]C) {
	x, y := in[0][:len(out)], in[1][:len(out)]
	for i := range out {
		out[i] = x[i] - y[i]
	}
}

func mulChunk[C numbers.Element](_ int64, _ []C, out []C, in [][]C) {
	x, y := in[0][:len(out)], in[1][:len(out)]
	for i := range out {
		out[i] = x[i] * y[i]
	}
}

func divChunk[C numbers.Element](_ int64, _ []C, out []C, in [][]C) {
	x, y := in[0][:len(out)], in[1][:len(out)]
	for i := range out {
		out[i] = x[i] / y[i]
	}
}

func axpyChunk[C numbers.Element](_ int64, k []C, out []C, in [][]C) {
	x, y := in[0][:len(out)], in[1][:len(out)]
	for i := range out {
		out[i] = C(k[0]*x[i]) + y[i]
	}
}

func squareChunk[C numbers.Element](_ int64, _ []C, out []C, in [][]C) {
	x := in[0][:len(out)]
	for i := range out {
		out[i] = x[i] * x[i]
	}
}

func reluChunk[C numbers.Element](_ int64, _ []C, out []C, in [][]C) {
	x := in[0][:len(out)]
	for i := range out {
		if x[i] < 0 {
			out[i] = 0
		} else {
			out[i] = x[i]
		}
	}
}

func divideByChunk[C numbers.Element](_ int64, k []C, out []C, in [][]C) {
	x := in[0][:len(out)]
	for i := range out {
		out[i] = x[i] / k[0]
	}
}

func combineChunk[C numbers.Element](_ int64, _ []C, out []C, in [][]C) {
	x, y, z := in[0][:len(out)], in[1][:len(out)], in[2][:len(out)]
	for i := range out {
		out[i] = C(x[i]*z[i]) + C(y[i]*(1-z[i]))
	}
}

func copyChunk[C numbers.Element](_ int64, _ []C, out []C, in [][]C) { copy(out, in[0]) }

func clampChunk[C numbers.Element](_ int64, k []C, out []C, in [][]C) {
	x := in[0][:len(out)]
	for i := range out {
		switch {
		case x[i] < k[0]:
			out[i] = k[0]
		case x[i] > k[1]:
			out[i] = k[1]
		default:
			out[i] = x[i]
		}
	}
}

// unary turns a function of one element into a chunk function.
func unary[C numbers.Element](f func(C) C) chunk[C] {
	return func(_ int64, _ []C, out []C, in [][]C) {
		x := in[0][:len(out)]
		for i := range out {
			out[i] = f(x[i])
		}
	}
}

func axpyRatioChunk[C numbers.Element](_ int64, k []C, out []C, in [][]C) {
	x, y, alpha := in[0][:len(out)], in[1][:len(out)], k[0]*(k[1]/k[2])
	for i := range out {
		out[i] = C(alpha*x[i]) + y[i]
	}
}

func xpayRatioChunk[C numbers.Element](_ int64, k []C, out []C, in [][]C) {
	x, y, beta := in[0][:len(out)], in[1][:len(out)], k[0]/k[1]
	for i := range out {
		out[i] = x[i] + C(beta*y[i])
	}
}

func unsharpenChunk[C numbers.Element](_ int64, k []C, out []C, in [][]C) {
	x, y, amount := in[0][:len(out)], in[1][:len(out)], k[0]
	for i := range out {
		v := C(x[i]*(1+amount)) - C(y[i]*amount)
		switch {
		case v < 0:
			v = 0
		case v > 1:
			v = 1
		}
		out[i] = v
	}
}

func extendChunk[C numbers.Element](_ int64, k []C, out []C, in [][]C) {
	x, factor, from, span := in[0][:len(out)], k[0], k[1], k[2]-k[1]
	for i := range out {
		v := C(factor*(x[i]-from)) / span
		if !(v < 1) {
			v = 1
		}
		out[i] = v
	}
}

// normalBelow is the cumulative normal distribution in five terms (Abramowitz and Stegun 26.2.17).
func normalBelow[C numbers.Element](d C) C {
	a := d
	if d < 0 {
		a = -d
	}
	k := 1 / (1 + C(constant[C](0.2316419)*a))
	p := constant[C](1.330274429)
	p = C(p*k) + constant[C](-1.821255978)
	p = C(p*k) + constant[C](1.781477937)
	p = C(p*k) + constant[C](-0.356563782)
	p = C(p*k) + constant[C](0.31938153)
	tail := C(constant[C](0.39894228040143267794)*numbers.Exp(C(constant[C](-0.5)*a)*a)) * C(p*k)
	if d < 0 {
		return tail
	}
	return 1 - tail
}

// constant is a number rounded to the type.
func constant[C numbers.Element](x float64) C { return C(x) }

func blackScholesChunk[C numbers.Element](_ int64, k []C, out []C, in [][]C) {
	rate, volatility, time, strike := k[0], k[1], k[2], k[3]
	spread := volatility * numbers.Sqrt(time)
	drift := (rate + C(C(volatility*volatility)*constant[C](0.5))) * time
	paid := strike * numbers.Exp(C(-rate*time))
	for i, x := range in[0][:len(out)] {
		d := (numbers.Log(x/strike) + drift) / spread
		out[i] = C(x*normalBelow(d)) - C(paid*normalBelow(d-spread))
	}
}
