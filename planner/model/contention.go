// Contention: copies that queue for an engine, and kernels that share multiprocessors.

package model

import (
	"math"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/internal/scratch"
	"github.com/dagrun/dagrun/planner/plan"
)

type eventKind uint8

// Ends are processed before starts of the same time, so that nodes that end make room for nodes that start.
const (
	copyDone eventKind = iota
	copyBegun
	linkDone    // node is the device, stream the version of its link
	trafficDone // stream is the version of the traffic
	nodeDone
	sharedDone // node is the device, stream the version of its sharing
	streamWoken
	launchReady
	launchIssued
)

type event struct {
	us           float64
	node, stream int32
	kind         eventKind
}

func (e event) Before(o event) bool {
	if e.us != o.us {
		return e.us < o.us
	}
	if e.kind != o.kind {
		return e.kind < o.kind
	}
	return e.stream < o.stream || e.stream == o.stream && e.node < o.node
}

// copier is a copy engine, or several with one queue.
type copier struct {
	queue  scratch.Heap[queued]
	active int
	lastBy int32 // the copy that ended last
	kept   int32 // the copy that the engine waits for, because it follows on the same stream; -1 for none
	next   queued
	here   bool // whether the copy that the engine waits for is ready
}

// queued is a copy that has been ready since us.
type queued struct {
	us                     float64
	position, node, stream int32
}

func (q queued) Before(o queued) bool {
	return q.us < o.us || q.us == o.us && q.position < o.position
}

// link connects the host and a device. It is slower in each direction while both are busy. All its copies have the same speed, so it
// has one clock, like a class of kernels.
type link struct {
	class
	ways    [2]int // copies up, copies down
	version int32
}

func (l *link) way(e plan.Engine) *int { return &l.ways[e-plan.Upload] }

// start adds a copy. Call pace afterwards to update the speed.
func (l *link) start(now float64, e plan.Engine, r running) {
	if len(l.kernels) == 0 {
		l.at, l.clock, l.speed = now, now, 1
	}
	r.virtual += l.show(now)
	l.kernels.Push(r)
	*l.way(e)++
}

// pace updates the speed and returns the time of the next end. It increases the version, which makes earlier results invalid.
func (l *link) pace(now, bothWays float64) float64 {
	l.version++
	speed := 1.0
	if l.ways[0] > 0 && l.ways[1] > 0 {
		speed = bothWays
	}
	if speed != l.speed {
		l.clock, l.at, l.speed = l.show(now), now, speed
	}
	return l.when()
}

// sharing divides the multiprocessors of a device among the kernels that run on it. Kernels of one priority have the same speed, so
// each priority has a clock that runs at that speed: a kernel ends when the clock has advanced by the time that the kernel takes
// alone, regardless of what starts and ends in the meantime.
type sharing struct {
	classes [3]class // high, normal, low
	version int32
}

// reset forgets all kernels and keeps the memory.
func (s *sharing) reset() {
	for k := range s.classes {
		s.classes[k] = class{kernels: s.classes[k].kernels[:0]}
	}
	s.version = 0
}

type class struct {
	kernels       scratch.Heap[running]
	demand, speed float64
	at, clock     float64 // clock is the value of the clock at the time at
}

type running struct {
	virtual                float64 // value of the clock at which the kernel ends
	share                  float64
	position, node, stream int32
}

func (r running) Before(o running) bool {
	return r.virtual < o.virtual || r.virtual == o.virtual && r.position < o.position
}

// show returns the value of the clock. If the clock ran at full speed since it was set, that is the exact time. The conversion to
// float64 prevents a fused multiply-add, which would round differently on some processors and could change plans.
func (c *class) show(now float64) float64 {
	if c.speed == 1 && c.at == c.clock {
		return now
	}
	return c.clock + float64((now-c.at)*c.speed)
}

// when returns the time at which the first kernel ends.
func (c *class) when() float64 {
	switch {
	case len(c.kernels) == 0 || c.speed == 0:
		return math.Inf(1)
	case c.speed == 1 && c.at == c.clock:
		return c.kernels[0].virtual
	}
	return c.at + (c.kernels[0].virtual-c.clock)/c.speed
}

// add starts a kernel; its virtual is the time that it takes alone. Call divide afterwards to update the speeds.
func (s *sharing) add(now float64, priority dag.Priority, r running) {
	c := &s.classes[1-min(1, max(-1, priority))]
	if len(c.kernels) == 0 {
		c.at, c.clock, c.speed, c.demand = now, now, 1, 0
	}
	r.virtual += c.show(now)
	c.demand += r.share
	c.kernels.Push(r)
}

// take removes a kernel that has ended, highest priority first.
func (s *sharing) take(now float64) (running, bool) {
	for k := range s.classes {
		if c := &s.classes[k]; c.when() <= now {
			r := c.kernels.Pop()
			c.demand -= r.share
			return r, true
		}
	}
	return running{}, false
}

// divide updates the speeds and returns the time of the next end. It increases the version, which makes earlier results invalid.
func (s *sharing) divide(now float64) float64 {
	s.version++
	next, free := math.Inf(1), 1.0
	for k := range s.classes {
		c := &s.classes[k]
		if len(c.kernels) == 0 {
			continue
		}
		speed := 1.0
		if c.demand > free+1e-9 {
			speed = free / c.demand
		}
		if speed != c.speed {
			c.clock, c.at, c.speed = c.show(now), now, speed
		}
		free = max(0, free-c.demand)
		next = min(next, c.when())
	}
	return next
}
