// Initial contents: fills memory with what a buffer's declaration says. Knows no devices.

// Package arrays makes, reads, writes and compares the contents of buffers: initial contents, array files and expectations. It knows no devices and
// runs nothing.
package arrays

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/bits"
	goruntime "runtime"

	"golang.org/x/sync/errgroup"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/dag/expr"
	"github.com/dagrun/dagrun/internal/numbers"
)

// Generate fills memory, which must have the buffer's size, with a buffer's initial contents.
func (a Files) Generate(ctx context.Context, b *dag.Buffer, memory []byte) error {
	if b == nil {
		return errors.New("there is no buffer to fill")
	}
	if want := count(b.Shape) * b.DType.Size(); int64(len(memory)) != want {
		return fmt.Errorf("buffer %q has %d bytes, but the memory for its initial contents has %d", b.Name, want, len(memory))
	}
	whole := *b
	whole.Bytes = int64(len(memory)) // which a caller need not fill in
	if err := whole.Check(); err != nil {
		return err
	}
	if b.Init == nil || b.Init.Kind == dag.InitZeros {
		clear(memory)
		return nil
	}
	init, t := b.Init, b.DType.Component()
	if init.Kind == dag.InitFile {
		if err := a.read(ctx, init.File, b.DType, b.Shape, memory); err != nil {
			return fmt.Errorf("buffer %q: init: %w", b.Name, err)
		}
		return nil
	}
	n := count(b.Shape) * int64(b.DType.Components())
	var at func(i int64) (uint64, error)
	switch init.Kind {
	case dag.InitValue:
		values := components(b.DType, init.Value, init.Values)
		bits := make([]uint64, len(values))
		for k := range values {
			bits[k] = t.FromValue(values[k])
		}
		at = func(i int64) (uint64, error) { return bits[i%int64(len(bits))], nil }
	case dag.InitRamp:
		at = ramp(t, init.A, init.B)
	case dag.InitUniform:
		at = func(i int64) (uint64, error) {
			return t.FromFloat(init.A + (init.B-init.A)*numbers.Uniform(init.Seed, uint64(i))), nil
		}
	case dag.InitNormal:
		at = func(i int64) (uint64, error) {
			return t.FromFloat(init.A + init.B*numbers.Normal(init.Seed, uint64(i))), nil
		}
	case dag.InitExpr:
		value, err := init.Expr.Compile("i")
		if err != nil {
			return fmt.Errorf("buffer %q: init: %w", b.Name, err)
		}
		at = func(i int64) (uint64, error) {
			v, err := value.Float(i)
			return t.FromFloat(v), err
		}
		if !t.Float() {
			at = func(i int64) (uint64, error) {
				v, err := value.Value(i)
				return t.FromValue(v), err
			}
		}
	default:
		return fmt.Errorf("buffer %q: init: unknown kind %d", b.Name, init.Kind)
	}
	return inParallel(ctx, n, func(lo, hi int64) error {
		for i := lo; i < hi; i++ {
			bits, err := at(i)
			if err != nil {
				return fmt.Errorf("buffer %q: init: element %d: %w", b.Name, i, err)
			}
			t.Store(memory, i, bits)
		}
		return nil
	})
}

// ramp returns start + step*i, exactly if both are integers and so are the elements.
func ramp(t dag.DType, start, step float64) func(i int64) (uint64, error) {
	first, ok1 := expr.FloatValue(start).Int()
	by, ok2 := expr.FloatValue(step).Int()
	if t.Float() || !ok1 || !ok2 {
		return func(i int64) (uint64, error) { return t.FromFloat(start + step*float64(i)), nil }
	}
	return func(i int64) (uint64, error) {
		if high, low := bits.Mul64(uint64(max(by, -by)), uint64(i)); high == 0 && low <= math.MaxInt64 {
			n := int64(low)
			if by < 0 {
				n = -n
			}
			if sum := first + n; (sum > first) == (n > 0) {
				return t.FromValue(expr.Int(sum)), nil
			}
		}
		return t.FromFloat(start + step*float64(i)), nil // saturates
	}
}

// elementsAtOnce is how many elements a goroutine processes at a time.
const elementsAtOnce = 1 << 16

// inParallel splits 0..n over the processors, at multiples of elementsAtOnce.
func inParallel(ctx context.Context, n int64, do func(lo, hi int64) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(goruntime.GOMAXPROCS(0))
	for lo := int64(0); lo < n; lo += elementsAtOnce {
		group.Go(func() error {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return do(lo, min(lo+elementsAtOnce, n))
		})
	}
	return group.Wait()
}
