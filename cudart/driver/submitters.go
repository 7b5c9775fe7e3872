// Submission by several threads: which thread submits which stream, and where threads must wait for each other. Between replays, each
// thread stays in C for a while, and then sleeps if there is no new replay.

package driver

import (
	"slices"
	"sync/atomic"

	"github.com/dagrun/dagrun/cudart"
)

const (
	parked = 1 << 63    // flag in a start word: the thread is asleep
	ended  = ^uint64(0) // start word: the thread must end
)

// assignSubmitters gives each stream to a thread, the longest streams first, each to the thread with the least work. Submitter 0 is the
// calling thread and has the origin stream. The result is by command.
func assignSubmitters(list []checked, origin *stream, threads int) []int32 {
	submitters := make([]int32, len(list))
	if threads <= 1 {
		return submitters
	}
	var streams []*stream
	index := make(map[*stream]int)
	var load []int
	for i := range list {
		s := list[i].stream
		if s == nil {
			continue
		}
		at, ok := index[s]
		if !ok {
			at = len(streams)
			index[s] = at
			streams = append(streams, s)
			load = append(load, 0)
		}
		load[at] += submitCost(list[i].Kind)
	}
	order := make([]int, len(streams))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return load[b] - load[a] })
	submitter := make([]int32, len(streams))
	total := make([]int, min(threads, max(len(streams), 1)))
	if at, ok := index[origin]; ok {
		total[0] += load[at]
	}
	for _, at := range order {
		if streams[at] == origin {
			continue
		}
		least := 0
		for t := range total {
			if total[t] < total[least] {
				least = t
			}
		}
		submitter[at] = int32(least)
		total[least] += load[at]
	}
	current := int32(0)
	for i := range list {
		if s := list[i].stream; s != nil {
			current = submitter[index[s]]
		}
		submitters[i] = current // a range belongs to the command before it
	}
	return submitters
}

// submitCost returns how long the host needs for a command's call, in tenths of a microsecond, as measured on an H200.
func submitCost(kind cudart.CommandKind) int {
	switch kind {
	case cudart.LaunchKernel, cudart.CopyMemory, cudart.SetMemory:
		return 27
	case cudart.RecordEvent, cudart.WaitEvent:
		return 2
	}
	return 0
}

// threadOrder is the required order between threads, by command: a wait is submitted after its record, and a record after the waits for the
// record before it. It is empty if there is only one thread.
type threadOrder struct {
	before    [][]int32 // commands of other threads that must have been submitted
	published []bool    // whether another thread waits for the command
	words     []*uint64 // where its thread stores the generation
}

func newThreadOrder(list []checked, submitterOf []int32) *threadOrder {
	c := new(threadOrder)
	if !slices.ContainsFunc(submitterOf, func(submitter int32) bool { return submitter != 0 }) {
		return c
	}
	c.before, c.published, c.words = make([][]int32, len(list)), make([]bool, len(list)), make([]*uint64, len(list))
	type use struct {
		record int32
		waits  []int32
	}
	uses := make(map[*event]*use)
	after := func(later, earlier int32) {
		if submitterOf[later] != submitterOf[earlier] {
			c.before[later] = append(c.before[later], earlier)
			c.published[earlier] = true
		}
	}
	for i := range list {
		e := list[i].event
		if e == nil {
			continue
		}
		u := uses[e]
		if u == nil {
			u = &use{record: -1}
			uses[e] = u
		}
		if list[i].Kind == cudart.WaitEvent {
			if u.record >= 0 {
				after(int32(i), u.record)
			}
			u.waits = append(u.waits, int32(i))
			continue
		}
		for _, w := range u.waits {
			after(int32(i), w)
		}
		if u.record >= 0 {
			after(int32(i), u.record)
		}
		u.record, u.waits = int32(i), u.waits[:0]
	}
	return c
}

// waits returns the commands of other threads that must be submitted before a command.
func (c *threadOrder) waits(command int) []int32 {
	if c.before == nil {
		return nil
	}
	return c.before[command]
}

// waitedFor reports whether another thread waits for a command.
func (c *threadOrder) waitedFor(command int) bool { return c.published != nil && c.published[command] }

// word returns the word in which a command's thread stores the generation.
func (c *threadOrder) word(memory *arena, command int32) (*uint64, error) {
	if c.words[command] == nil {
		w, err := memory.word()
		if err != nil {
			return nil, err
		}
		c.words[command] = w
	}
	return c.words[command], nil
}

// crew holds the threads of a list, without the calling thread.
type crew struct {
	threads []*thread
}

type thread struct {
	walk  *walk
	wake  chan struct{}
	ended chan struct{}
}

func newCrew(submitters []*submitter) *crew {
	c := new(crew)
	for _, l := range submitters {
		t := &thread{walk: l.walk, wake: make(chan struct{}, 1), ended: make(chan struct{})}
		c.threads = append(c.threads, t)
		go t.serve()
	}
	return c
}

// serve stays inside one call into C while replays follow each other, and sleeps otherwise.
func (t *thread) serve() {
	defer close(t.ended)
	for {
		walkTable(t.walk)
		last := t.walk.generation
		if atomic.CompareAndSwapUint64(t.walk.start, last, last|parked) {
			<-t.wake
		}
		if atomic.LoadUint64(t.walk.start) == ended {
			return
		}
	}
}

// begin makes every thread walk its table once.
func (c *crew) begin(generation uint64) {
	for _, t := range c.threads {
		t.send(generation)
	}
}

func (t *thread) send(generation uint64) {
	if old := atomic.SwapUint64(t.walk.start, generation); old&parked != 0 {
		t.wake <- struct{}{}
	}
}

// close ends the threads.
func (c *crew) close() {
	for _, t := range c.threads {
		t.send(ended)
	}
	for _, t := range c.threads {
		<-t.ended
	}
}
