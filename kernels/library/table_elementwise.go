// Rows of the elementwise kernels.

package library

import "github.com/dagrun/dagrun/internal/numbers"

func elementwiseRows() []row {
	return []row{
		{name: "fill", doc: "y = value", signature: "n i64, value S, y out T[n]", launch: packed("n"),
			versions: everything(fillChunk[float32], fillChunk[float64], fillChunk[int32])},
		{name: "iota", doc: "y[i] = start + step * i", signature: "n i64, start S, step S, y out T[n]", flops: "2*n", launch: packed("n"),
			versions: floatsAndI32(iotaChunk[float32], iotaChunk[float64], iotaChunk[int32])},
		{name: "copy", doc: "y = x", signature: "n i64, x in T[n], y out T[n]", launch: packed("n"), inPlace: true, versions: copies()},
		{name: "scale", doc: "x = alpha * x", signature: "n i64, alpha S, x inout T[n]", flops: "n", launch: packed("n"), inPlace: true,
			versions: everything(scaleChunk[float32], scaleChunk[float64], scaleChunk[int32])},
		{name: "add", doc: "z = x + y", signature: "n i64, x in T[n], y in T[n], z out T[n]", flops: "n", launch: packed("n"), inPlace: true,
			versions: everything(addChunk[float32], addChunk[float64], addChunk[int32])},
		{name: "sub", doc: "z = x - y", signature: "n i64, x in T[n], y in T[n], z out T[n]", flops: "n", launch: packed("n"), inPlace: true,
			versions: everything(subChunk[float32], subChunk[float64], subChunk[int32])},
		{name: "mul", doc: "z = x * y", signature: "n i64, x in T[n], y in T[n], z out T[n]", flops: "n", launch: packed("n"), inPlace: true,
			versions: everything(mulChunk[float32], mulChunk[float64], mulChunk[int32])},
		{name: "div", doc: "z = x / y", signature: "n i64, x in T[n], y in T[n], z out T[n]", flops: "n", launch: packed("n"), inPlace: true,
			versions: halves(divChunk[float32], divChunk[float64])},
		{name: "axpy", alias: "saxpy", doc: "y = alpha * x + y", signature: "n i64, alpha S, x in T[n], y inout T[n]", flops: "2*n", launch: packed("n"),
			inPlace: true, versions: everything(axpyChunk[float32], axpyChunk[float64], axpyChunk[int32])},
		{name: "square", doc: "y = x * x", signature: "n i64, x in T[n], y out T[n]", flops: "n", launch: packed("n"), inPlace: true,
			versions: everything(squareChunk[float32], squareChunk[float64], squareChunk[int32])},
		{name: "clamp", doc: "y = x, clamped to low..high", signature: "n i64, low S, high S, x in T[n], y out T[n]", flops: "2*n", launch: packed("n"),
			inPlace: true, versions: everything(clampChunk[float32], clampChunk[float64], clampChunk[int32])},
		{name: "relu", doc: "y = max(x, 0)", signature: "n i64, x in T[n], y out T[n]", flops: "n", launch: packed("n"), inPlace: true,
			versions: everything(reluChunk[float32], reluChunk[float64], reluChunk[int32])},
		{name: "abs", doc: "y = |x|", signature: "n i64, x in T[n], y out T[n]", flops: "n", launch: packed("n"), inPlace: true,
			versions: everything(unary(numbers.Abs[float32]), unary(numbers.Abs[float64]), unary(numbers.Abs[int32]))},
		{name: "sqrt", doc: "y = the square root of x", signature: "n i64, x in T[n], y out T[n]", flops: "n", launch: packed("n"), inPlace: true,
			versions: halves(unary(numbers.Sqrt[float32]), unary(numbers.Sqrt[float64]))},
		{name: "exp", doc: "y = e to the power of x", signature: "n i64, x in T[n], y out T[n]", flops: "20*n", steps: operationSteps(20), launch: packed("n"),
			inPlace: true, versions: halves(unary(numbers.Exp[float32]), unary(numbers.Exp[float64]))},
		{name: "log", doc: "y = the natural logarithm of x", signature: "n i64, x in T[n], y out T[n]", flops: "25*n", steps: operationSteps(25), launch: packed("n"),
			inPlace: true, versions: floats(unary(numbers.Log[float32]), unary(numbers.Log[float64]))},
		{name: "sin", doc: "y = sin x", signature: "n i64, x in T[n], y out T[n]", flops: "25*n", steps: operationSteps(25), launch: packed("n"), inPlace: true,
			versions: floats(unary(numbers.Sin[float32]), unary(numbers.Sin[float64]))},
		{name: "cos", doc: "y = cos x", signature: "n i64, x in T[n], y out T[n]", flops: "25*n", steps: operationSteps(25), launch: packed("n"), inPlace: true,
			versions: floats(unary(numbers.Cos[float32]), unary(numbers.Cos[float64]))},
		{name: "tanh", doc: "y = the hyperbolic tangent of x", signature: "n i64, x in T[n], y out T[n]", flops: "25*n", steps: operationSteps(25),
			launch: packed("n"), inPlace: true, versions: floats(unary(numbers.Tanh[float32]), unary(numbers.Tanh[float64]))},
		{name: "erf", doc: "y = the error function of x", signature: "n i64, x in T[n], y out T[n]", flops: "30*n", steps: operationSteps(30), launch: packed("n"),
			inPlace: true, versions: floats(unary(numbers.Erf[float32]), unary(numbers.Erf[float64]))},
		{name: "divide_by", doc: "y = x / d[0]", signature: "n i64, d in T[1], x in T[n], y out T[n]", flops: "n", steps: fixed(8), launch: packed("n"),
			inPlace: true, versions: floats(divideByChunk[float32], divideByChunk[float64])},
		{name: "axpy_ratio", doc: "y = sign * (p[0] / q[0]) * x + y", signature: "n i64, sign S, p in T[1], q in T[1], x in T[n], y inout T[n]", flops: "2*n",
			steps: fixed(7), launch: packed("n"), inPlace: true, versions: floats(axpyRatioChunk[float32], axpyRatioChunk[float64])},
		{name: "xpay_ratio", doc: "y = x + (p[0] / q[0]) * y", signature: "n i64, p in T[1], q in T[1], x in T[n], y inout T[n]", flops: "2*n", steps: fixed(7),
			launch: packed("n"), inPlace: true, versions: floats(xpayRatioChunk[float32], xpayRatioChunk[float64])},
		{name: "unsharpen", doc: "y = image + amount * (image - blurred), clamped to 0..1", signature: "n i64, amount S, image in T[n], blurred in T[n], y out T[n]",
			flops: "5*n", launch: packed("n"), inPlace: true, versions: floats(unsharpenChunk[float32], unsharpenChunk[float64])},
		{name: "extend", doc: "x = factor * (x - low[0]) / (high[0] - low[0]), at most 1", signature: "n i64, factor S, low in T[1], high in T[1], x inout T[n]",
			flops: "4*n", steps: fixed(11), launch: packed("n"), inPlace: true, versions: floats(extendChunk[float32], extendChunk[float64])},
		{name: "combine", doc: "z = x * mask + y * (1 - mask)", signature: "n i64, x in T[n], y in T[n], mask in T[n], z out T[n]", flops: "4*n", launch: packed("n"),
			inPlace: true, versions: floats(combineChunk[float32], combineChunk[float64])},
		{name: "black_scholes", doc: "y = the Black-Scholes price of a European call option, x being the price of the stock",
			signature: "n i64, rate S, volatility S, time S, strike S, x in T[n], y out T[n]", flops: "150*n", steps: operationSteps(150), launch: packed("n"),
			inPlace: true, versions: floats(blackScholesChunk[float32], blackScholesChunk[float64])},
	}
}

func copies() []version {
	versions := everything(copyChunk[float32], copyChunk[float64], copyChunk[int32])
	versions[0].run, versions[1].run = bits16, bits16
	return versions
}
