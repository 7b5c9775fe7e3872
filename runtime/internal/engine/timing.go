// Timing: measures how long replays take, on the host and on the device. Restores the contents afterwards.

package engine

import (
	"context"
	"errors"
	"math"
	"sort"
	"time"

	"github.com/dagrun/dagrun/cudart"
)

// Series summarizes one measured quantity, in microseconds.
type Series struct {
	Count  int     `json:"count"`     // of samples
	Min    float64 `json:"min_us"`    // the shortest
	Median float64 `json:"median_us"` // of all samples
	P99    float64 `json:"p99_us"`    // the 99th percentile
	Mean   float64 `json:"mean_us"`   // of all samples
	Spread float64 `json:"stddev_us"` // standard deviation
}

// Summarize returns the Series of samples, and sorts them.
func Summarize(samples []float64) Series {
	if len(samples) == 0 {
		return Series{}
	}
	sort.Float64s(samples)
	s := Series{Count: len(samples), Min: samples[0]}
	middle := len(samples) / 2
	s.Median = samples[middle]
	if len(samples)%2 == 0 {
		s.Median = (samples[middle-1] + samples[middle]) / 2
	}
	s.P99 = samples[min(len(samples)-1, int(math.Ceil(0.99*float64(len(samples))))-1)]
	for _, v := range samples {
		s.Mean += v
	}
	s.Mean /= float64(len(samples))
	for _, v := range samples {
		s.Spread += (v - s.Mean) * (v - s.Mean)
	}
	if len(samples) > 1 {
		s.Spread = math.Sqrt(s.Spread / float64(len(samples)-1))
	}
	return s
}

// Timing is the result of Measure.
type Timing struct {
	Submit Series  `json:"submit"`  // host: the time one submission takes
	Device Series  `json:"device"`  // device: from the start of a replay to its end, by events
	Wall   float64 `json:"wall_us"` // per replay, from the first submission to the end of the last replay, with nothing in between
}

// batch is how many replays are timed between two synchronisations. If the queue were full, the host would wait inside a submission, and
// the device's time would count as its own.
const batch = 16

// Measure warms up, then times the given number of replays.
func (p *Program) Measure(ctx context.Context, warmup, iterations int) (*Timing, error) {
	if err := errors.Join(p.CheckReplays(ctx, "warm up with", warmup, 0), p.CheckReplays(ctx, "measure", iterations, 1)); err != nil {
		return nil, err
	}
	if err := p.Run(ctx, max(1, warmup)); err != nil {
		return nil, err
	}
	t := &Timing{}
	if err := p.measureEach(ctx, iterations, t); err != nil {
		return nil, err
	}
	if err := p.Restore(ctx); err != nil {
		return nil, err
	}
	start := time.Now()
	if err := p.Run(ctx, iterations); err != nil {
		return nil, err
	}
	t.Wall = float64(time.Since(start).Nanoseconds()) / 1e3 / float64(iterations)
	if err := p.checkStatuses(ctx); err != nil { // a call that fails takes another time
		return nil, err
	}
	return t, p.Restore(ctx)
}

func (p *Program) measureEach(ctx context.Context, iterations int, t *Timing) (err error) {
	in := p.instances[0]
	marks := make([]cudart.Event, 2*batch)
	lists := make([]cudart.List, 2*batch)
	defer func() {
		for i := range marks {
			if lists[i] != nil {
				err = errors.Join(err, lists[i].Close())
			}
			if marks[i] != nil {
				err = errors.Join(err, marks[i].Close())
			}
		}
	}()
	for i := range marks {
		if marks[i], err = p.platform.NewEvent(in.streams[0].Device(), true); err != nil {
			return err
		}
		record := cudart.Command{Kind: cudart.RecordEvent, Stream: in.streams[0], Event: marks[i], Node: -1, Label: "timing"}
		if lists[i], err = p.platform.Encode([]cudart.Command{record}, cudart.ListOptions{Origin: in.streams[0]}); err != nil {
			return err
		}
	}
	var submit, device []float64
	p.dirty = true
	for done := 0; done < iterations; {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		n := min(batch, iterations-done)
		for i := range n {
			if err := p.awaitHosts(ctx, in); err != nil {
				return err
			}
			if err := lists[2*i].Submit(); err != nil {
				return err
			}
			start := time.Now()
			if err := p.submit(ctx, in); err != nil {
				return err
			}
			submit = append(submit, float64(time.Since(start).Nanoseconds())/1e3)
			if err := lists[2*i+1].Submit(); err != nil {
				return err
			}
		}
		if err := in.streams[0].Synchronize(ctx); err != nil {
			return err
		}
		for i := range n {
			us, err := marks[2*i+1].Since(marks[2*i])
			if err != nil {
				return err
			}
			device = append(device, us)
		}
		done += n
	}
	t.Submit, t.Device = Summarize(submit), Summarize(device)
	return nil
}
