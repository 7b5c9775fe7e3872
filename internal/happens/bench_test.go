// Benchmarks of a million steps on 64 lanes.

package happens

import (
	"math/rand/v2"
	"runtime"
	"testing"
)

// Each lane fills buffers of its own and reads those of others, after an event of theirs: nothing races, and every wait matters.
func BenchmarkMillionStepsOn64Lanes(b *testing.B) {
	for b.Loop() {
		millionSteps(b, func(p Pair) { b.Fatal(p) })
	}
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	b.ReportMetric(float64(memory.Sys)/1e6, "MB")
}

func millionSteps(b *testing.B, pairs func(Pair)) {
	const lanes, buffers, bytes = 64, 100, 1 << 16
	r := rand.New(rand.NewPCG(1, 1))
	c := New(pairs, nil)
	for range lanes {
		c.Lane()
	}
	at := func(lane, buffer int) uint64 { return uint64(lane*buffers+buffer) * bytes }
	for step := range 1_000_000 / lanes {
		for lane := range Lane(lanes) {
			other := Lane(r.IntN(lanes))
			read := at(int(lane), r.IntN(buffers))
			if step%4 == 0 {
				c.After(lane, c.Now(other))
				c.After(other, c.Now(lane)) // it may write what is read here only later
				read = at(int(other), r.IntN(buffers))
			}
			write := at(int(lane), r.IntN(buffers))
			low := r.Uint64N(bytes / 2)
			if step%4 == 0 {
				c.Step(lane, []Access{{Low: read, High: read + bytes, Mode: Read}})
				c.After(other, c.Now(lane))
				continue
			}
			c.Step(lane, []Access{{Low: read, High: read + bytes, Mode: Read}, {Low: write + low, High: write + bytes, Mode: Write}})
		}
	}
}
