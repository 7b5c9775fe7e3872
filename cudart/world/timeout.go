// Timeouts: what each rank waits for, and which rank the others wait for when one of them gives up.

package world

import (
	"fmt"
	"slices"
	"sync"
	"time"
)

// answerTime is how long ranks may take to say what they wait for after a timeout: as long as that was, within bounds. A process that is
// stopped never answers.
func answerTime(timeout time.Duration) time.Duration {
	return min(max(timeout, leastAnswerTime), mostAnswerTime)
}

const leastAnswerTime, mostAnswerTime = 5 * time.Second, 20 * time.Second

// moreForStore is how much longer a rank waits for what rank 0 has found out.
const moreForStore = 5 * time.Second

// TimeoutPatience is how long TimedOut takes at most to find out which rank is waited for.
const TimeoutPatience = mostAnswerTime + moreForStore

// State returns what this rank is doing.
func (w *World) State() State {
	if w == nil {
		return State{}
	}
	w.mu.Lock()
	s := w.now
	for rank, n := range w.open {
		if n > 0 {
			s.For = append(s.For, rank)
		}
	}
	follow := w.follow
	w.mu.Unlock()
	if follow != nil && s.Barrier == "" && s.Node == "" {
		s = follow()
	}
	slices.Sort(s.For)
	if w.text != nil {
		s.Text = w.text()
	}
	return s
}

// Follow makes State ask where this rank communicates, where a device knows that and not World.
func (w *World) Follow(state func() State) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.follow = state
}

// TimedOut gives up waiting: rank 0 finds out which rank the others wait for, and ends all of them with that cause, which Cause returns
// then.
func (w *World) TimedOut() {
	if w == nil || w.store == nil {
		return
	}
	if w.store.send(frame{Kind: "stuck", Text: w.timeout.String()}) == nil {
		w.hearCause(answerTime(w.timeout) + moreForStore)
	}
	e := w.blames(0, "does not answer rank %d, which has timed out after %s", w.place.Rank, w.timeout)
	e.TimedOut = true
	w.Fail(e)
}

// hearCause waits until the store says why all end, unless the store's process is stopped.
func (w *World) hearCause(most time.Duration) {
	late, look := after(most), time.NewTicker(lookTime)
	defer look.Stop()
	for !w.store.isStopped() {
		select {
		case <-w.failed:
			return
		case <-late:
			return
		case <-look.C:
		}
	}
}

// begins notes that a node communicates with ranks, each of which has a number of messages to complete.
func (w *World) begins(node string, messages map[int32]int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now.Node, w.open = node, messages
}

func (w *World) ends() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now.Last, w.now.Node, w.open = w.now.Node, "", nil
}

func (w *World) waitsAt(barrier string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now.Barrier = barrier
}

// ask returns what each rank waits for, nil for those that do not answer in time, or are stopped.
func (s *store) ask(within time.Duration) []*State {
	states := make([]*State, s.place.Ranks)
	s.all(frame{Kind: "state?"})
	late, look := after(within), time.NewTicker(lookTime)
	defer look.Stop()
	for s.awaits(states) {
		select {
		case said := <-s.states:
			states[said.rank] = said.state
		case <-look.C:
		case <-s.over:
			return states
		case <-late:
			return states
		}
	}
	return states
}

// lookTime is how often waiting for a process looks whether that is stopped.
const lookTime = 50 * time.Millisecond

// awaits reports whether a rank may still say what it waits for. Those that are stopped will not hear the store's last word either.
func (s *store) awaits(states []*State) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	more := false
	for rank, state := range states {
		switch l := s.links[rank]; {
		case state != nil || l == nil:
		case l.isStopped():
			s.heard[rank] = true
		default:
			more = true
		}
	}
	return more
}

// awaited follows who waits for whom, from the lowest rank that waits to one that does not.
func (s *store) awaited(states []*State, reporter int, after string) *RankError {
	waits := make([][]int32, len(states))
	for rank, state := range states {
		switch {
		case state == nil:
		case state.Barrier != "":
			for other, its := range states {
				if its == nil || its.Barrier != state.Barrier {
					waits[rank] = append(waits[rank], int32(other))
				}
			}
		default:
			waits[rank] = slices.DeleteFunc(slices.Clone(state.For), func(other int32) bool {
				return other < 0 || int(other) >= len(states) || int(other) == rank ||
					state.Mutual && states[other] != nil && slices.Contains(states[other].For, int32(rank))
			})
		}
	}
	from := slices.IndexFunc(waits, func(list []int32) bool { return len(list) > 0 })
	if from < 0 {
		if silent := slices.Index(states, nil); silent >= 0 {
			return s.blames(silent, "does not answer rank %d, which has timed out after %s", reporter, after)
		}
		if of := states[reporter]; of.Node != "" {
			return s.blames(reporter, "timed out after %s, %s, in %q, to which all ranks have come", after, of.Text, of.Node)
		}
		return s.blames(reporter, "timed out after %s, %s%s", after, states[reporter].Text, lastText(states[reporter]))
	}
	seen := make([]bool, len(states))
	at := from
	for !seen[at] && len(waits[at]) > 0 {
		seen[at] = true
		from, at = at, int(waits[at][0])
	}
	where := fmt.Sprintf("has not come to %q, where rank %d waited for it until the timeout of %s", states[from].Node, from, after)
	if states[from].Barrier != "" {
		where = fmt.Sprintf("has not finished, and rank %d waited for it until the timeout of %s", from, after)
	}
	switch {
	case states[at] == nil:
		return s.blames(at, "%s: it does not answer", where)
	case states[at].Node != "":
		return s.blames(at, "%s: it is in %q", where, states[at].Node)
	}
	return s.blames(at, "%s: it is %s%s", where, states[at].Text, lastText(states[at]))
}

func lastText(s *State) string {
	if s.Last == "" {
		return ", and has not communicated yet"
	}
	return fmt.Sprintf(", and communicated last in %q", s.Last)
}

func (s *store) all(f frame) {
	s.mu.Lock()
	links := append([]*link(nil), s.links...)
	s.mu.Unlock()
	var sent sync.WaitGroup
	for _, l := range links {
		if l != nil {
			sent.Go(func() { _ = l.send(f) })
		}
	}
	sent.Wait()
}

// blames makes the error of a rank that has come.
func (s *store) blames(rank int, format string, args ...any) *RankError {
	return &RankError{Rank: rank, Ranks: s.place.Ranks, Host: s.members[rank].Host, What: fmt.Sprintf(format, args...)}
}
