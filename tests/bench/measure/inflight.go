// Measures several replays in flight: the time from one result to the next, and whether each result is correct. The caller decides how
// many overlap and how each is planned.

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/runtime"
)

// Warm-up and measured rounds. A round has as many replays as may be in flight. The first replays all start at the same time and need
// some rounds to reach a steady state.
const (
	settlingRounds = 3
	steadyRounds   = 4
)

func newInflight(ctx context.Context, g *dag.Graph, p cudart.Platform, options planner.Options, inflight int) (*runtime.Program, error) {
	plan, err := planner.New(ctx, g, options)
	if err != nil {
		return nil, err
	}
	return runtime.New(ctx, g, plan, p, runtime.Options{Inflight: inflight})
}

// onOneStream runs a replay's nodes one after the other, so that only replays overlap.
func onOneStream(machine *planner.Machine) planner.Options {
	return planner.Options{Strategy: "serial", Streams: 1, Machine: machine}
}

// turns runs replays of a program, at most the given number at a time, checks that results arrive in order, and waits for the last.
func turns(ctx context.Context, p *runtime.Program, inflight, count int, before func(*runtime.Turn), then func(k int, t *runtime.Turn) error) error {
	var failed error
	seen, first := 0, uint64(0)
	under := make(chan struct{}, inflight)
	for range count {
		under <- struct{}{}
		err := p.ReplayThen(ctx, before, func(t *runtime.Turn, err error) {
			defer func() { <-under }()
			if seen == 0 {
				first = t.Number
			}
			if err == nil && t.Number != first+uint64(seen) {
				err = fmt.Errorf("result %d came where %d was due", t.Number, first+uint64(seen))
			}
			if err == nil {
				err = then(seen, t)
			}
			failed = errors.Join(failed, err)
			seen++
		})
		if err != nil {
			return err
		}
	}
	if err := p.Synchronize(ctx); err != nil {
		return err
	}
	if failed == nil && seen != count {
		failed = fmt.Errorf("%d results of %d replays", seen, count)
	}
	return failed
}

// steadyState returns the microseconds from one result to the next while the maximum number of replays is in flight. The
// first and the last replays are not counted, because fewer are in flight then.
func steadyState(ctx context.Context, p *runtime.Program, inflight int) (float64, error) {
	var began, ended time.Time
	first, last := settlingRounds*inflight-1, (settlingRounds+steadyRounds)*inflight-1
	err := turns(ctx, p, inflight, last+1+inflight, nil, func(k int, _ *runtime.Turn) error {
		switch k {
		case first:
			began = time.Now()
		case last:
			ended = time.Now()
		}
		return nil
	})
	return float64(ended.Sub(began).Nanoseconds()) / 1e3 / float64(last-first), err
}

// compareInflight overwrites the result buffers before every replay and compares its results with those of another program bit by bit.
func compareInflight(ctx context.Context, g *dag.Graph, p, with *runtime.Program, inflight int) error {
	ids := resultsOf(g)
	want := make([][]byte, len(ids))
	for k, id := range ids {
		want[k] = make([]byte, g.Buffers[id].Bytes)
		if err := with.Read(ctx, dag.BufferID(id), want[k]); err != nil {
			return err
		}
	}
	before := func(t *runtime.Turn) {
		for _, id := range ids {
			spoil(t.Host(dag.BufferID(id)))
		}
	}
	return turns(ctx, p, inflight, 2*inflight, before, func(_ int, t *runtime.Turn) error {
		for k, id := range ids {
			if !bytes.Equal(t.Host(dag.BufferID(id)), want[k]) {
				return fmt.Errorf("replay %d: the bits of %s differ from those of the run on one stream", t.Number, g.Buffers[id].Name)
			}
		}
		return nil
	})
}

// spoil overwrites results, so that an old result cannot be mistaken for a new one.
func spoil(memory []byte) {
	for i := range memory {
		memory[i] = 0xa5
	}
}

// resultsOf lists the host buffers that copies write, each once.
func resultsOf(g *dag.Graph) []dag.BufferID {
	var ids []dag.BufferID
	for i := range g.Nodes {
		n := &g.Nodes[i]
		if n.Kind != dag.Memcpy {
			continue
		}
		if id := n.Copy.Dst.Buffer; g.Buffers[id].Place == dag.Host && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}
