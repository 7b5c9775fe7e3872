// Passes of a trace as streams: each is submitted with events of its own, before and after it and each of its nodes.

package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/runtime/internal/spans"
)

// mostSlots is how many passes of a body are submitted with events of their own before the host waits for them and reads the events.
const mostSlots = 64

// passRecorder records the passes of the loops and branches of one instance.
type passRecorder struct {
	platform cudart.Platform
	base     []cudart.Event // by device: the zero of its clock
	room     int64          // of each loop or branch in one replay, in passes and nodes
	lists    []*passList
	of       map[*control]*passList
	slots    map[*controlBody]*passSlots
	within   int // the pass that is being submitted, in the list of the loop or branch around
	muted    int // how many passes that are not recorded are being submitted, each in the one before
}

// passSlots are the commands of one body with events, as often as passes are recorded before the events are read.
type passSlots struct {
	all     []*passSlot
	pending int // of all, from the first
}

// passSlot is one of them.
type passSlot struct {
	list          cudart.List
	begin, end    cudart.Event
	before, after []cudart.Event // by node
	place         int            // of its pass in the list
	err           error          // of reading the events
	elsewhere     *instance      // of a body that begins on another device: its list with the waits around it, and their events
}

func newPassRecorder(platform cudart.Platform, base []cudart.Event, nests [][]*control, room int64) *passRecorder {
	r := &passRecorder{platform: platform, base: base, room: room, of: map[*control]*passList{}, slots: map[*controlBody]*passSlots{}}
	for _, nest := range nests {
		for _, l := range newPassLists(nest) {
			r.lists = append(r.lists, l)
			r.of[l.control] = l
			l.control.recorder = r
			for _, body := range l.control.bodies {
				r.slots[body] = &passSlots{}
			}
		}
	}
	return r
}

// begin forgets the passes of the replay before.
func (r *passRecorder) begin() {
	r.within, r.muted = -1, 0
	for _, l := range r.lists {
		l.passes, l.shown = nil, 0
	}
	for _, s := range r.slots {
		s.pending = 0
	}
}

// fits reports whether one more pass of a body is recorded.
func (r *passRecorder) fits(l *passList, k int, pass int64) bool {
	if r.muted > 0 {
		return false
	}
	each := r.room / (1 + int64(l.control.bodies[k].program.graph.Len()))
	if l.outer != nil && pass > max(1, each/partOfRun) {
		return false
	}
	return l.shown < max(1, each)
}

// submit submits a body once, with events if there is room to record it.
func (r *passRecorder) submit(ctx context.Context, c *control, k int, pass int64) error {
	l, body := r.of[c], c.bodies[k]
	if !r.fits(l, k, pass) {
		if r.muted == 0 {
			l.leaveOut(spans.TracedPass{Node: c.name, Within: r.within, Run: c.runs, First: pass, Last: pass, Body: c.bodyName(k)})
		}
		r.muted++
		defer func() { r.muted-- }()
		return submitList(ctx, body.in.list)
	}
	slot, err := r.slot(ctx, l, body)
	if err != nil {
		return err
	}
	slot.place = len(l.passes)
	l.passes = append(l.passes, spans.TracedPass{Node: c.name, Within: r.within, Run: c.runs, First: pass, Last: pass, Body: c.bodyName(k)})
	l.shown++
	outer := r.within
	r.within = slot.place
	err = submitList(ctx, slot.list)
	r.within = outer
	return err
}

// chosenNone notes that a branch ran no body.
func (r *passRecorder) chosenNone(c *control) {
	if r.muted > 0 {
		return
	}
	l := r.of[c]
	if p := (spans.TracedPass{Node: c.name, Within: r.within, Run: c.runs, First: 1, Last: 1, Body: spans.BodyNone}); l.shown < r.room {
		l.passes = append(l.passes, p)
		l.shown++
	}
}

// leaveOut notes a pass that is not shown. Those of one run that follow each other are one entry.
func (l *passList) leaveOut(p spans.TracedPass) {
	if p.Body != spans.BodyRepeat {
		return // how many runs of a branch are left out follows from its counts
	}
	n := len(l.passes)
	switch {
	case n == 0 || l.passes[n-1].Run != p.Run || l.passes[n-1].Within != p.Within: // a run none of whose passes is shown has no entry
	case l.passes[n-1].LeftOut:
		l.passes[n-1].Last = p.Last
	default:
		p.LeftOut = true
		l.passes = append(l.passes, p)
	}
}

// slot returns commands with events that are not in use. If there are none, it waits for the passes that use them and reads their events.
func (r *passRecorder) slot(ctx context.Context, l *passList, body *controlBody) (*passSlot, error) {
	s, c := r.slots[body], l.control
	most := max(1, min(mostSlots, r.room/int64(2+2*body.program.graph.Len())))
	if s.pending == int(most) {
		if err := c.stream.Synchronize(ctx); err != nil {
			return nil, err
		}
		if err := r.read(l, body); err != nil {
			return nil, err
		}
	}
	if s.pending == len(s.all) {
		slot := &passSlot{}
		s.all = append(s.all, slot)
		if err := slot.prepare(r.platform, c, body); err != nil {
			return nil, err
		}
	}
	s.pending++
	return s.all[s.pending-1], nil
}

// prepare makes the events and encodes the commands.
func (slot *passSlot) prepare(platform cudart.Platform, c *control, body *controlBody) error {
	event := func(on cudart.Stream) (cudart.Event, error) { return platform.NewEvent(on.Device(), true) }
	var err error
	if slot.begin, err = event(c.stream); err != nil {
		return err
	}
	if slot.end, err = event(c.stream); err != nil {
		return err
	}
	in := body.in
	slot.before, slot.after = make([]cudart.Event, body.program.graph.Len()), make([]cudart.Event, body.program.graph.Len())
	for node, index := range in.lowered.index {
		on := in.lowered.commands[index].Stream
		if slot.before[node], err = event(on); err != nil {
			return err
		}
		if slot.after[node], err = event(on); err != nil {
			return err
		}
	}
	mark := func(e cudart.Event) cudart.Command {
		return cudart.Command{Kind: cudart.RecordEvent, Stream: c.stream, Event: e, Node: -1, Label: c.name}
	}
	commands := withMarks(in.lowered.commands, slot.before, slot.after)
	if in.streams[0] == c.stream {
		commands = append(append([]cudart.Command{mark(slot.begin)}, commands...), mark(slot.end))
		slot.list, err = body.program.encode(in, commands, cudart.ListOptions{Origin: c.stream})
		return err
	}
	list, err := body.program.encode(in, commands, cudart.ListOptions{Origin: in.streams[0]})
	if err != nil {
		return err
	}
	slot.elsewhere = &instance{streams: in.streams, list: list}
	whole := &script{parts: []scriptPart{{list: list}}}
	slot.list = whole
	if err := body.program.embed(slot.elsewhere, c.stream); err != nil {
		return err
	}
	whole.parts = []scriptPart{{list: slot.elsewhere.list}}
	begin, err := platform.Encode([]cudart.Command{mark(slot.begin)}, cudart.ListOptions{Origin: c.stream})
	if err != nil {
		return err
	}
	whole.parts = []scriptPart{{list: begin}, {list: slot.elsewhere.list}}
	end, err := platform.Encode([]cudart.Command{mark(slot.end)}, cudart.ListOptions{Origin: c.stream})
	if err != nil {
		return err
	}
	whole.parts = append(whole.parts, scriptPart{list: end})
	return nil
}

// read takes over the events of all passes of a body that use them. Those passes have ended.
func (r *passRecorder) read(l *passList, body *controlBody) error {
	s, g := r.slots[body], body.program.graph
	for _, slot := range s.all[:s.pending] {
		p := &l.passes[slot.place]
		since := func(e cudart.Event, on cudart.Stream) (us float64) {
			var err error
			if us, err = e.Since(r.base[on.Device()]); err != nil {
				slot.err = err
			}
			return us
		}
		p.Start, p.End = since(slot.begin, l.control.stream), since(slot.end, l.control.stream)
		p.Nodes = make([]spans.BodySpan, g.Len())
		for node, index := range body.in.lowered.index {
			on := body.in.lowered.commands[index].Stream
			p.Nodes[node] = spans.BodySpan{Node: g.Nodes[node].Name, Stream: int32(body.program.streamOf(body.in, on)), Start: since(slot.before[node], on),
				End: since(slot.after[node], on)}
		}
		if slot.err != nil {
			return fmt.Errorf("trace of pass %d of %q: %w", p.First, l.control.name, slot.err)
		}
	}
	s.pending = 0
	return nil
}

// add reads what is left once the replay has ended, and turns the times of the passes into those of the trace.
func (r *passRecorder) add(_ context.Context, replay *spans.TracedReplay, first float64) error {
	for _, l := range r.lists {
		for _, body := range l.control.bodies {
			if err := r.read(l, body); err != nil {
				return err
			}
		}
		for k := range l.passes {
			p := &l.passes[k]
			if p.Nodes == nil {
				continue
			}
			p.Start, p.End = p.Start-first, p.End-first
			for n := range p.Nodes {
				p.Nodes[n].Start, p.Nodes[n].End = p.Nodes[n].Start-first, p.Nodes[n].End-first
			}
		}
		l.place(replay.Spans)
	}
	replay.Loops, replay.Passes = joinPasses(r.lists)
	return nil
}

// place gives the passes without events their times: from the end of the pass before, or the start of the loop or branch, to its end.
func (l *passList) place(spans []spans.Span) {
	for k := range l.passes {
		p := &l.passes[k]
		if p.Nodes != nil {
			continue
		}
		if l.outer == nil {
			s := &spans[l.node]
			p.Start, p.End = s.Start, s.End
		} else {
			s := &l.outer.passes[p.Within].Nodes[l.node]
			p.Start, p.End = s.Start, s.End
		}
		if k > 0 && l.passes[k-1].Run == p.Run {
			p.Start = l.passes[k-1].End
		}
	}
}

func (r *passRecorder) close() []error {
	var errs []error
	for _, l := range r.lists {
		l.control.recorder = nil
		for _, body := range l.control.bodies {
			for _, slot := range r.slots[body].all {
				errs = append(errs, slot.close())
			}
		}
	}
	return errs
}

func (slot *passSlot) close() error {
	var errs []error
	if slot.list != nil {
		errs = append(errs, slot.list.Close())
	}
	var borders []cudart.Event
	if slot.elsewhere != nil {
		borders = slot.elsewhere.borders
	}
	for _, events := range [][]cudart.Event{{slot.begin, slot.end}, slot.before, slot.after, borders} {
		for _, e := range events {
			if e != nil {
				errs = append(errs, e.Close())
			}
		}
	}
	return errors.Join(errs...)
}

// BodyName is the name of the k-th body.
func (c *control) bodyName(k int) string { return spans.BodyName(c.node, k) }
