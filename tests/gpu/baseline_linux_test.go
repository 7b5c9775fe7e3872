// Calls the C++ programs of baseline/, as a shared library in this process. They do the work and time themselves, so their figures
// include nothing from this file.

package gpu

import (
	"testing"
	"unsafe"

	"github.com/ebitengine/purego"
	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/planner/plan"
)

// work describes what a C++ program shall do, with the memory layout that baseline.cpp declares.
type work struct {
	name            *byte
	ptx, entry      *byte
	launches, bytes int64
	streams, events int64
	ops             int64
	op              *op
	args            int64
	arg             *uint64
	blocks, threads int64 // of a launch; 0: one
	memory, pointer int64 // bytes of device memory, if any, and the argument that is its address
}

// op is one entry of a schedule as passed to C++.
type op struct{ kind, stream, event int32 }

const (
	opLaunch = iota
	opRecord
	opWait
)

// schedule returns a plan's ops in submission order, fork and join included, and how many events they use.
func schedule(made *planner.Plan) (ops []op, events int32) {
	events = made.Events
	if fork := made.Fork(); len(fork) > 0 {
		ops = append(ops, op{opRecord, 0, events})
		for _, s := range fork {
			ops = append(ops, op{opWait, s, events})
		}
		events++
	}
	kinds := map[plan.OpKind]int32{plan.Launch: opLaunch, plan.Record: opRecord, plan.Wait: opWait}
	next := make([]int, len(made.Streams))
	for _, s := range made.Order {
		o := made.Streams[s].Ops[next[s]]
		next[s]++
		ops = append(ops, op{kinds[o.Kind], s, o.Event})
	}
	join := made.Join()
	for i, s := range join {
		ops = append(ops, op{opRecord, s, events + int32(i)})
	}
	for i := range join {
		ops = append(ops, op{opWait, 0, events + int32(i)})
	}
	return ops, events + int32(len(join))
}

// baseline is the library, and the program that was opened.
type baseline struct {
	program uintptr
	run     func(program uintptr, micros *[2]float64) int32
	close   func(program uintptr)
	micros  [2]float64
}

// openBaseline makes a C++ program ready on the calling thread, which must be locked.
func openBaseline(t *testing.T, library string, w *work) *baseline {
	handle, err := purego.Dlopen(library, purego.RTLD_NOW|purego.RTLD_LOCAL)
	require.NoError(t, err)
	b := new(baseline)
	var open func(*work) uintptr
	purego.RegisterLibFunc(&open, handle, "baseline_open")
	purego.RegisterLibFunc(&b.run, handle, "baseline_run")
	purego.RegisterLibFunc(&b.close, handle, "baseline_close")
	b.program = open(w)
	require.NotZero(t, b.program, "the C++ program could not be made; it says why on stderr")
	t.Cleanup(func() { b.close(b.program) })
	return b
}

// replay runs the program once and returns the microseconds until the host was done, and until the device was.
func (b *baseline) replay(t *testing.T) (host, all float64) {
	require.Zero(t, b.run(b.program, &b.micros), "the C++ program failed; it says why on stderr")
	return b.micros[0], b.micros[1]
}

func cText(s string) *byte { return unsafe.SliceData(append([]byte(s), 0)) }
