// Rows of the random-number kernels.

package library

import (
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/kernels/internal/describe"
)

func randomRows() []row {
	return []row{
		{name: "philox_uniform", doc: "y = uniform random numbers in [low, high); element i depends only on seed, offset and i",
			signature: "n i64, seed u64, offset u64, low S, high S, y out T[n]", flops: "30*n", launch: drawn,
			versions: draws(uniformUnits[float32], uniformUnits[float64])},
		{name: "philox_normal", doc: "y = normally distributed random numbers; element i depends only on seed, offset and i",
			signature: "n i64, seed u64, offset u64, mean S, deviation S, y out T[n]", flops: "60*n", launch: drawn,
			versions: draws(normalUnits[float32], normalUnits[float64])},
		{name: "philox_bits", doc: "y = random bits: the words of Philox 4x32-10 for counter {i/4, offset} and key seed",
			signature: "n i64, seed u64, offset u64, y out T[n]", flops: "25*n", launch: drawn,
			versions: []version{{bind{T: dag.U32}, philoxBits}}},
	}
}

// drawn has each thread make 16 bytes of random bits at a time.
func drawn(k *libraryKernel, v scalars, info *dag.LaunchInfo) {
	describe.Spread(info, v.of("n"), describe.BlockSize*16/max(computedIn(k.types.T).Size(), 4))
}
