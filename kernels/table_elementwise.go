// Rows of the elementwise kernels.

package kernels

func elementwiseRows() []row {
	return []row{
		{name: "fill", doc: "y = value", signature: "n i64, value S, y out T[n]",
			launch: packed("n"), versions: everything(fillChunk[float32], fillChunk[float64], fillChunk[int32])},
		{name: "copy", doc: "y = x", signature: "n i64, x in T[n], y out T[n]",
			launch: packed("n"), inPlace: true, versions: copies()},
		{name: "scale", doc: "x = alpha * x", signature: "n i64, alpha S, x inout T[n]", flops: "n",
			launch: packed("n"), inPlace: true, versions: everything(scaleChunk[float32], scaleChunk[float64], scaleChunk[int32])},
		{name: "add", doc: "z = x + y", signature: "n i64, x in T[n], y in T[n], z out T[n]", flops: "n",
			launch: packed("n"), inPlace: true, versions: everything(addChunk[float32], addChunk[float64], addChunk[int32])},
		{name: "axpy", alias: "saxpy", doc: "y = alpha * x + y", signature: "n i64, alpha S, x in T[n], y inout T[n]", flops: "2*n",
			launch: packed("n"), inPlace: true, versions: everything(axpyChunk[float32], axpyChunk[float64], axpyChunk[int32])},
	}
}

func copies() []version {
	versions := everything(copyChunk[float32], copyChunk[float64], copyChunk[int32])
	versions[0].run, versions[1].run = bits16, bits16
	return versions
}
