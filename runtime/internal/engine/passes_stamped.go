// Passes of a trace as a graph: the kernel that decides about loops and branches writes when it ran, by the device's clock.

package engine

import (
	"context"
	"math"
	"unsafe"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/kernels/conditions"
	"github.com/dagrun/dagrun/runtime/internal/spans"
)

// prepare takes memory for the stamps of a nest, and makes the conditionals of graphs that are built from now on write there.
func (s *stampLog) prepare() error {
	outer := s.nest[0]
	bytes := stampBytes * s.room * int64(len(s.nest))
	var err error
	if s.device, err = s.platform.Alloc(outer.node.Device, bytes); err != nil {
		return err
	}
	if s.host, err = s.platform.AllocHost(bytes, false); err != nil {
		return err
	}
	s.words = unsafe.Slice((*int64)(unsafe.Pointer(unsafe.SliceData(s.platform.HostBytes(s.host, bytes)))), bytes/8)
	s.fetch, err = s.platform.Encode([]cudart.Command{{Kind: cudart.CopyMemory, Stream: outer.stream, Label: outer.name, Node: -1,
		Dst: s.host, DstDevice: -1, Src: s.device, SrcDevice: outer.node.Device, Bytes: bytes}}, cudart.ListOptions{Origin: outer.stream})
	for k, c := range s.nest {
		c.stamps = s.device + cudart.Ptr(stampBytes*s.room*int64(k))
		c.stamping = conditions.Stamping{Room: s.room, Each: max(1, s.room/partOfRun)}
	}
	outer.stamping.Each = s.room - 2 // one run: its beginning, its passes, and the last
	return err
}

func (s *stampLog) close() []error {
	for _, c := range s.nest {
		c.stamps, c.stamping = 0, conditions.Stamping{}
	}
	var errs []error
	if s.fetch != nil {
		errs = append(errs, s.fetch.Close())
	}
	for _, memory := range []cudart.Ptr{s.host, s.device} {
		if memory != 0 {
			errs = append(errs, s.platform.Free(memory))
		}
	}
	return errs
}

// read turns the stamps of the last replay, which has ended and whose counts have been read, into passes.
func (s *stampLog) read(ctx context.Context, spans []spans.Span) ([]*passList, error) {
	outer := s.nest[0]
	if err := s.fetch.Submit(); err != nil {
		return nil, err
	}
	if err := outer.stream.Synchronize(ctx); err != nil {
		return nil, err
	}
	lists := newPassLists(s.nest)
	for k, l := range lists {
		count := outer.counts.words[conditions.CountWords*k+conditions.CountStamps]
		words := s.words[conditions.StampWords*s.room*int64(k):]
		l.fromStamps(words[:conditions.StampWords*min(max(count, 0), s.room)], s.words[0])
		l.findOuter()
	}
	span := &spans[lists[0].node]
	began, ended := math.Inf(1), math.Inf(-1)
	for _, l := range lists {
		for k := range l.passes {
			began, ended = min(began, l.passes[k].Start), max(ended, l.passes[k].End)
		}
	}
	// The clock of stamps is another one than that of the events around the outermost loop or branch. The kernel that begins ran before the first
	// stamp, and the one that ends after the last, so the passes are put in the middle.
	shift := max(0, (span.End-span.Start)-(ended-began)) / 2
	at := func(us float64) float64 { return span.Start + min(us-began+shift, span.End-span.Start) }
	for _, l := range lists {
		for k := range l.passes {
			p := &l.passes[k]
			p.Start, p.End = at(p.Start), at(p.End)
		}
	}
	return lists, nil
}

// fromStamps lists the passes that stamps tell of, at times that count from zero by their own clock.
func (l *passList) fromStamps(words []int64, zero int64) {
	const perUS = 1e3
	var run, pass int64 // of the stamp before
	var at float64
	body := spans.BodyRepeat
	for ; len(words) >= conditions.StampWords; words = words[conditions.StampWords:] {
		now, what := float64(words[0]-zero)/perUS, words[1]
		if what <= conditions.StampBegun {
			run, pass = run+1, 0
			switch what {
			case conditions.StampHeld:
				body = l.control.bodyName(0)
			case conditions.StampOtherwise:
				if body = spans.BodyNone; len(l.control.bodies) > 1 {
					body = l.control.bodyName(1)
				}
			}
			if body == spans.BodyNone {
				l.passes = append(l.passes, spans.TracedPass{Node: l.control.name, Run: run, First: 1, Last: 1, Body: body, Start: now, End: now})
			}
			at = now
			continue
		}
		l.passes = append(l.passes, spans.TracedPass{Node: l.control.name, Run: run, First: pass + 1, Last: what, LeftOut: what > pass+1, Body: body,
			Start: at, End: now})
		pass, at = what, now
	}
}

// findOuter finds the pass of the loop or branch around that each run was in: it runs once in each pass of its body. Runs in passes that are not
// shown are dropped.
func (l *passList) findOuter() {
	logged := l.passes
	l.logged, l.kept, l.passes = logged, make([]int, len(logged)), nil
	k, before := 0, int64(0) // runs in the logged passes of outer before the k-th
	for i, p := range logged {
		if l.outer != nil {
			outer, name := l.outer.logged, l.outer.control.bodyName(l.body)
			for k < len(outer) && (outer[k].Body != name || before+outer[k].Last-outer[k].First+1 < p.Run) {
				if outer[k].Body == name {
					before += outer[k].Last - outer[k].First + 1
				}
				k++
			}
			if k == len(outer) || outer[k].LeftOut || l.outer.kept[k] < 0 {
				l.kept[i] = -1
				continue
			}
			p.Within = l.outer.kept[k]
		}
		l.kept[i] = len(l.passes)
		if l.passes = append(l.passes, p); !p.LeftOut {
			l.shown++
		}
	}
}
