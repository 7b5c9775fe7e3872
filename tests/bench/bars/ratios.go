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
	least   []float64 // of each pipeline: what the median is surely above
	pairs   int
	worst   string // the pipeline of the largest
}

func (r *ratios) add(name string, pairs []float64) {
	ratio := median(pairs)
	r.pairs += len(pairs)
	low, _ := surely(pairs)
	r.least = append(r.least, low)
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

// surely returns between which of the values the median of all that could be measured lies with a probability of 95%. How many values are left out at
// each end is decided by how few tails so many throws of a coin have. Up to five values say nothing: it may be anywhere.
func surely(values []float64) (low, high float64) {
	const outside = 0.025 // at each end
	n, left := len(values), -1
	for chance, sum := math.Pow(0.5, float64(n)), 0.0; ; left++ { // chance of left + 1 tails
		if sum += chance; sum > outside {
			break
		}
		chance *= float64(n-left-1) / float64(left+2)
	}
	if left < 0 {
		return 0, math.Inf(1)
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[left], sorted[n-1-left]
}

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
