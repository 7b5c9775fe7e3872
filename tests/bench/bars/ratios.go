// Medians, spreads and counts of what was measured.

package main

import (
	"fmt"
	"math"
	"slices"
)

// ratios are those of several pipelines.
type ratios struct {
	medians []float64 // of each pipeline
	pairs   int
	worst   string // the pipeline of the largest
}

func (r *ratios) add(name string, pairs []float64) {
	ratio := median(pairs)
	r.pairs += len(pairs)
	if r.medians = append(r.medians, ratio); ratio >= quantile(r.medians, 1) {
		r.worst = name
	}
}

// above is how many of the values are above a bar.
func above(values []float64, most float64) (n int) {
	for _, v := range values {
		if v > most {
			n++
		}
	}
	return n
}

// median returns the value in the middle.
func median(values []float64) float64 { return quantile(values, 0.5) }

// quantile returns the value below which a part of all values lies, between its neighbours; 0 of none.
func quantile(values []float64, part float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	at := part * float64(len(sorted)-1)
	low := int(at)
	high := min(low+1, len(sorted)-1)
	return sorted[low] + (at-float64(low))*(sorted[high]-sorted[low])
}

// spread prints the least and the greatest of values.
func spread(values []float64) string {
	return fmt.Sprintf("%.3g to %.3g", slices.Min(values), slices.Max(values))
}

// geometricMean returns the geometric mean of values, all above 0.
func geometricMean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += math.Log(v)
	}
	return math.Exp(sum / float64(len(values)))
}

// off returns how far a ratio is from 1, as a factor of at least 1.
func off(ratio float64) float64 { return max(ratio, 1/ratio) }
