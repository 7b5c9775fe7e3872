// How long the library's kernels take from their own PTX on the CPU device, beside their Go versions.

package gpu

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/cudart/host"
	"github.com/dagrun/dagrun/cudart/host/simt"
	"github.com/dagrun/dagrun/kernels/library"
)

// largest is the launch of a variant with the most work of its trials, up to a limit.
func largest(t testing.TB, d library.Doc, v library.Variant, limit int64) (best *launched) {
	most := int64(-1)
	for n, s := range trialsOf(d) {
		l := prepare(t, d, v, s, 0, limit, rand.New(rand.NewPCG(uint64(n), 0)))
		if l == nil {
			continue
		}
		bytes := int64(0)
		for _, m := range l.buffers {
			if m != nil {
				bytes += m.size
			}
		}
		if bytes > most {
			best, most = l, bytes
		}
	}
	return best
}

// BenchmarkKernelsFromPTX runs each kernel by its Go version and from its PTX in turn, both on one worker, and reports the median of each
// and of their ratios.
func BenchmarkKernelsFromPTX(b *testing.B) {
	const limit = 1 << 22
	open := func(options host.Options) *bench {
		options.Workers = 1
		p := must[*host.Platform](b)(host.Open(options))
		b.Cleanup(func() { require.NoError(b, p.Close()) })
		return newBench(b, p, 64<<20)
	}
	both := [2]*bench{open(host.Options{}), open(host.Options{PTX: true, Sanitize: simt.CheckNothing})}
	for _, d := range library.Docs() {
		v := d.Variants[0]
		l := largest(b, d, v, limit)
		if l == nil || l.info.Grid[0] == 0 || d.Name == "noop" || d.Name == "spin" {
			continue
		}
		b.Run(v.Entry, func(b *testing.B) {
			var lists [2]cudart.List
			for i, side := range both {
				loaded := forms{p: side.p, module: fromPTX}
				defer loaded.close(b)
				side.run(b, l, loaded.kernel(b, l), 1) // the buffers are filled, and the kernel is compiled
				_, command := side.place(b, l, loaded.kernel(b, l))
				lists[i] = must[cudart.List](b)(side.p.Encode([]cudart.Command{command}, cudart.ListOptions{Origin: side.stream}))
				defer func() { require.NoError(b, lists[i].Close()) }()
			}
			var times [2][]float64
			var ratios []float64
			for b.Loop() {
				for i, side := range both {
					start := time.Now()
					require.NoError(b, lists[i].Submit())
					require.NoError(b, side.stream.Synchronize(context.Background()))
					times[i] = append(times[i], time.Since(start).Seconds()*1e3)
				}
				ratios = append(ratios, times[1][len(ratios)]/times[0][len(ratios)])
			}
			median := func(all []float64) float64 {
				slices.Sort(all)
				return all[len(all)/2]
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(median(times[0]), "ms-go")
			b.ReportMetric(median(times[1]), "ms-ptx")
			b.ReportMetric(median(ratios), "ratio")
		})
	}
}
