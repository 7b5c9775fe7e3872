// Results: saved files, checked expectations, checksums, and comparison with a second program.

package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/runtime/internal/arrays"
	"github.com/dagrun/dagrun/runtime/internal/spans"
)

// Results is what Finish did with the buffers after a run.
type Results struct {
	Saved     []Saved        `json:"saved"`
	Checks    []arrays.Check `json:"checks"`
	Checksums []Checksum     `json:"checksums"`
	Loops     []spans.Loop   `json:"loops,omitempty"`
}

// Saved is a file that was written.
type Saved struct {
	Buffer string `json:"buffer"`
	File   string `json:"file"`
	Bytes  int64  `json:"bytes"`
}

// Checksum identifies a buffer's contents: equal sums, equal bits.
type Checksum struct {
	Buffer string `json:"buffer"`
	SHA256 string `json:"sha256"`
}

// Failed returns the checks that did not hold.
func (r *Results) Failed() []arrays.Check {
	if r == nil {
		return nil
	}
	var failed []arrays.Check
	for _, c := range r.Checks {
		if !c.OK {
			failed = append(failed, c)
		}
	}
	return failed
}

// FailedLoops returns the loops that did not converge, or did not make the passes that were expected.
func (r *Results) FailedLoops() []spans.Loop {
	if r == nil {
		return nil
	}
	var failed []spans.Loop
	for _, l := range r.Loops {
		if !l.OK {
			failed = append(failed, l)
		}
	}
	return failed
}

// ErrNotSaved marks a result that could not be written to its file.
var ErrNotSaved = errors.New("result not saved")

// Finish checks every buffer with save or expect, computes its checksum and writes its file.
func (p *Program) Finish(ctx context.Context) (*Results, error) {
	r := &Results{Saved: []Saved{}, Checks: []arrays.Check{}, Checksums: []Checksum{}}
	var err error
	if r.Loops, err = p.Loops(ctx); err != nil {
		return r, err
	}
	if err := p.checkStatuses(ctx); err != nil {
		return r, err
	}
	err = p.eachResult(ctx, func(b *dag.Buffer, memory []byte) error {
		var summing sync.WaitGroup // a checksum takes one core, and the check uses the others meanwhile
		var sum [sha256.Size]byte
		summing.Go(func() { sum = sha256.Sum256(memory) })
		if b.Expect != nil {
			check, err := p.checkExpect(ctx, b, memory)
			if err != nil {
				summing.Wait() // the memory is not kept after this
				return err
			}
			r.Checks = append(r.Checks, check)
		}
		summing.Wait()
		r.Checksums = append(r.Checksums, Checksum{b.Name, hex.EncodeToString(sum[:])})
		if b.Save != "" {
			file := arrays.InDir(p.graph.Dir, b.Save)
			if err := p.initial.keep(ctx, file); err != nil {
				return err
			}
			if err := p.arrays.Write(ctx, file, b.DType, b.Shape, memory); err != nil {
				return fmt.Errorf("%w: buffer %q: %w", ErrNotSaved, b.Name, err)
			}
			r.Saved = append(r.Saved, Saved{b.Name, file, b.Bytes})
		}
		return nil
	})
	return r, err
}

// eachResult calls do with the contents of every buffer with save or expect, in declaration order.
func (p *Program) eachResult(ctx context.Context, do func(b *dag.Buffer, memory []byte) error) error {
	if err := p.usable(ctx); err != nil {
		return err
	}
	for i := range p.graph.Buffers {
		b := &p.graph.Buffers[i]
		if !isResult(b) {
			continue
		}
		if err := p.contents(ctx, int32(i), func(memory []byte) error { return do(b, memory) }); err != nil {
			return err
		}
	}
	return nil
}

func (p *Program) checkExpect(ctx context.Context, b *dag.Buffer, memory []byte) (check arrays.Check, err error) {
	if b.Expect.Kind != dag.ExpectFile {
		return p.arrays.CheckExpect(ctx, b, memory, nil)
	}
	err = p.borrow(b, func(scratch []byte) error {
		check, err = p.arrays.CheckExpect(ctx, b, memory, scratch)
		return err
	})
	return check, err
}

// CompareResults compares every saved or expected buffer of two programs of the same graph, element by element.
func CompareResults(ctx context.Context, got, want *Program) ([]arrays.Check, error) {
	switch {
	case got == nil || want == nil:
		return nil, errors.New("two programs are needed to compare their results")
	}
	if err := want.usable(ctx); err != nil {
		return nil, err
	}
	var checks []arrays.Check
	err := got.eachResult(ctx, func(b *dag.Buffer, memory []byte) error {
		id, ok := want.Buffer(b.Name)
		if !ok || want.graph.Buffers[id].DType != b.DType || want.graph.Buffers[id].Bytes != b.Bytes {
			return fmt.Errorf("buffer %q is not the same in both programs", b.Name)
		}
		return want.contents(ctx, int32(id), func(other []byte) error {
			rtol, atol := arrays.Tolerance(b)
			c, numbers := arrays.Comparison(b, want.platform.Name()+" device", rtol, atol)
			if b.Expect != nil {
				arrays.JudgeBy(&c, b.Expect)
			}
			got.judgeCalls(&c, b)
			err := arrays.CompareWith(ctx, &c, numbers, memory, other)
			checks = append(checks, c)
			return err
		})
	})
	return checks, err
}
