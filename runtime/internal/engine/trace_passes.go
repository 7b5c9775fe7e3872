// Whether a trace records the passes of loops and branches with events, or reads the stamps of their kernels.

package engine

import (
	"context"

	"github.com/dagrun/dagrun/runtime/internal/spans"
)

// prepareBodies makes the loops and branches record their passes, or stamp them.
func (t *tracer) prepareBodies() error {
	nests := t.in.nests()
	loops := 0
	for _, nest := range nests {
		loops += len(nest)
	}
	if loops == 0 {
		return nil
	}
	if t.program.mode == Streams {
		t.bodies = newPassRecorder(t.program.platform, t.base, nests, tracedRoom(loops))
		return nil
	}
	logs := &stampLogs{in: t.in}
	t.bodies = logs
	for _, nest := range nests {
		log := &stampLog{nest: nest, room: tracedRoom(loops), platform: t.program.platform}
		logs.all = append(logs.all, log)
		if err := log.prepare(); err != nil {
			return err
		}
	}
	return nil
}

// stampLogs are those of an instance: one for each loop or branch that is in no other one.
type stampLogs struct {
	in  *instance
	all []*stampLog
}

func (s *stampLogs) begin() {} // the kernels forget the replay before

func (s *stampLogs) add(ctx context.Context, r *spans.TracedReplay, _ float64) error {
	if err := s.in.readCounts(ctx); err != nil {
		return err
	}
	var lists []*passList
	for _, log := range s.all {
		more, err := log.read(ctx, r.Spans)
		if err != nil {
			return err
		}
		lists = append(lists, more...)
	}
	r.Loops, r.Passes = joinPasses(lists)
	return nil
}

func (s *stampLogs) close() []error {
	var errs []error
	for _, log := range s.all {
		errs = append(errs, log.close()...)
	}
	return errs
}
