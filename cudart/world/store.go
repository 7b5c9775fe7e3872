// The store of rank 0: all ranks meet there, prove the secret, run the same file, and hear of failures.

package world

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"
)

func (s *store) serve(l *link) {
	rank, err := l.challenge(s.secret, "store", func() { s.unknown.leave(l.conn) })
	s.unknown.leave(l.conn)
	if errors.Is(err, errSecret) {
		s.mu.Lock()
		s.refused = fmt.Sprintf("a process at %s that says it is rank %d has another DAGRUN_SECRET%s", hostOf(l.conn.RemoteAddr().String()), rank, s.place.orJob())
		s.mu.Unlock()
	}
	if err == nil && (rank < 0 || rank >= s.place.Ranks) {
		_ = l.send(frame{Kind: "abort", Cause: &RankError{Rank: rank, Ranks: s.place.Ranks, What: fmt.Sprintf("is not one of 0 to %d", s.place.Ranks-1)}})
		err = errGarbage
	}
	if err != nil {
		l.conn.Close()
		return
	}
	f, err := l.receive(mostBytes, silence)
	if err != nil || f.Kind != "join" || f.Member == nil {
		l.conn.Close()
		return
	}
	if !s.join(rank, l, f) {
		return
	}
	defer s.hears(rank)
	for {
		f, err := l.receive(mostBytes, silence)
		if err != nil {
			s.mu.Lock()
			gone := !s.done[rank]
			s.mu.Unlock()
			if gone {
				s.abort(s.blames(rank, "%s", lostText(err)))
			}
			return
		}
		s.handle(rank, l, f)
	}
}

func lostText(err error) string {
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		return fmt.Sprintf("has not been heard of for %s", seconds(silence))
	}
	return "has ended before the others were finished"
}

func (s *store) handle(rank int, l *link, f frame) {
	switch f.Kind {
	case "outline":
		s.mu.Lock()
		wanted := s.outlines[rank]
		s.mu.Unlock()
		if wanted != nil {
			select {
			case wanted <- f.Outline:
			default:
			}
		}
	case "clock?":
		_ = l.send(frame{Kind: "clock", Text: strconv.FormatInt(time.Now().UnixNano(), 10)})
	case "barrier":
		s.barrier(rank, f.Name, f.Text)
	case "done":
		s.leave(rank, f.Text)
	case "heard":
		s.hears(rank)
	case "stuck":
		go s.stuck(rank, f.Text)
	case "state":
		if f.State != nil {
			select {
			case s.states <- statedState{rank, f.State}:
			default:
			}
		}
	}
}

// hears notes that a rank has heard the store's last word, or never will.
func (s *store) hears(rank int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.heard[rank] = true
	s.quieten()
}

// quieten closes quiet once nobody is left who must hear why the ranks end. The caller holds mu.
func (s *store) quieten() {
	if !s.closed {
		return
	}
	for rank, l := range s.links {
		if l != nil && !s.heard[rank] {
			return
		}
	}
	select {
	case <-s.quiet:
	default:
		close(s.quiet)
	}
}

// join notes a rank. The last one to arrive starts all of them.
func (s *store) join(rank int, l *link, f frame) bool {
	s.mu.Lock()
	cause := s.cause
	switch {
	case cause != nil:
	case s.links[rank] != nil:
		cause = s.blames(rank, "came twice, from host %s (process %d) and from host %s (process %d)", s.members[rank].Host, s.members[rank].Pid,
			f.Member.Host, f.Member.Pid)
	case f.Ranks != s.place.Ranks:
		cause = &RankError{Rank: rank, Ranks: s.place.Ranks, Host: f.Member.Host,
			What: fmt.Sprintf("was told that there are %d ranks, and rank 0 that there are %d", f.Ranks, s.place.Ranks)}
	}
	if cause != nil {
		s.mu.Unlock()
		_ = l.send(frame{Kind: "abort", Cause: cause})
		l.conn.Close()
		s.abort(cause)
		return false
	}
	f.Member.Rank = rank
	s.links[rank], s.members[rank], s.hashes[rank] = l, *f.Member, f.Hash
	s.arrived++
	all := s.arrived == s.place.Ranks
	s.begun = s.begun || all
	s.mu.Unlock()
	if all {
		go s.start()
	}
	return true
}

// start checks that all ranks run the same file, and tells each who the others are and what rank 0 has decided.
func (s *store) start() {
	if cause := s.disagreement(); cause != nil {
		s.abort(cause)
		return
	}
	if s.check != nil {
		if err := s.check(s.members); err != nil {
			s.abort(s.blames(0, "refuses the pipeline: %v", err))
			return
		}
	}
	s.all(frame{Kind: "go", Members: s.members, Session: s.session, Decision: s.decision})
}

func (s *store) disagreement() *RankError {
	devices := map[string]int{}
	for rank, m := range s.members {
		if first := s.members[0]; (m.Device == "") != (first.Device == "") {
			return s.blames(rank, "runs on %s, and rank 0 (host %s) on %s; --backend cpu runs all ranks on the CPU", deviceText(m), first.Host, deviceText(first))
		}
		if first, ok := devices[m.Device]; ok && m.Device != "" {
			return s.blames(rank, "uses the same GPU as rank %d (%s), but NCCL needs one for each rank: start fewer ranks, or add --backend cpu", first, m.Device)
		}
		devices[m.Device] = rank
	}
	for rank, m := range s.members {
		want, err := s.expected(m)
		if err != nil {
			return s.blames(rank, "cannot run the pipeline of rank 0: %v", err)
		}
		if want.Hash != s.hashes[rank] {
			return s.blames(rank, "runs another pipeline: %s", s.difference(rank, want.Outline()))
		}
	}
	return nil
}

func deviceText(m Member) string {
	if m.Device == "" {
		return "the CPU"
	}
	return "a GPU"
}

// difference asks a rank for its nodes and names the first that differs.
func (s *store) difference(rank int, here []string) string {
	wanted := make(chan []string, 1)
	s.mu.Lock()
	s.outlines[rank] = wanted
	s.mu.Unlock()
	if err := s.links[rank].send(frame{Kind: "outline?"}); err != nil {
		return "its graph has another hash"
	}
	select {
	case there := <-wanted:
		return firstDifference(there, here)
	case <-time.After(silence):
		return "its graph has another hash"
	}
}

// firstDifference compares what two ranks do. A line is a node, its name and what it does, or something else: what that is, its name and
// what there is to say of it, apart by zero bytes.
func firstDifference(there, here []string) string {
	theirs, theirOthers := outlined(there)
	ours, ourOthers := outlined(here)
	for k := range max(len(theirs), len(ours)) {
		switch {
		case k >= len(theirs):
			return fmt.Sprintf("it has %d nodes, here node %d is %q", len(theirs), k, ours[k][0])
		case k >= len(ours):
			return fmt.Sprintf("node %d is %q, here there are %d nodes", k, theirs[k][0], len(ours))
		case theirs[k][0] != ours[k][0]:
			return fmt.Sprintf("node %d is %q, here %q", k, theirs[k][0], ours[k][0])
		case theirs[k][1] != ours[k][1]:
			does, did := differingParts(theirs[k][1], ours[k][1])
			return fmt.Sprintf("node %d, %q, has %s, here %s", k, ours[k][0], does, did)
		}
	}
	for k := range min(len(theirOthers), len(ourOthers)) {
		its, own := theirOthers[k], ourOthers[k]
		if its[0] == own[0] && its[1] == own[1] && its[2] != own[2] {
			return fmt.Sprintf("%s %q has %s, here %s", own[0], own[1], its[2], own[2])
		}
	}
	return "its buffers differ"
}

// outlined takes the lines of an outline apart.
func outlined(lines []string) (nodes, others [][]string) {
	for _, line := range lines {
		if parts := strings.Split(line, "\x00"); len(parts) > 2 {
			others = append(others, parts[:3])
		} else {
			nodes = append(nodes, append(parts, "")[:2])
		}
	}
	return nodes, others
}

// differingParts leaves out what two descriptions of a node have in common, if each part of the one has its place in the other.
func differingParts(there, here string) (theirs, ours string) {
	a, b := strings.Split(there, partBreak), strings.Split(here, partBreak)
	if len(a) != len(b) {
		return there, here
	}
	var left, right []string
	for k := range a {
		if a[k] != b[k] {
			left, right = append(left, a[k]), append(right, b[k])
		}
	}
	return strings.Join(left, partBreak), strings.Join(right, partBreak)
}

// partBreak is between the parts of a node's description.
const partBreak = ", "

// barrier notes that a rank has reached a barrier. The last one opens it.
func (s *store) barrier(rank int, name, text string) {
	s.mu.Lock()
	if s.waiting[name] == nil {
		s.waiting[name] = map[int]string{}
	}
	s.waiting[name][rank] = text
	all := len(s.waiting[name]) == s.place.Ranks
	texts := make([]string, s.place.Ranks)
	if all {
		for r, t := range s.waiting[name] {
			texts[r] = t
		}
		delete(s.waiting, name)
	}
	s.mu.Unlock()
	if all {
		s.all(frame{Kind: "passed", Name: name, All: texts})
	}
}

// leave notes that a rank is finished; text says why it failed, if it did.
func (s *store) leave(rank int, text string) {
	if text != "" {
		s.abort(s.blames(rank, "%s", text))
		return
	}
	s.mu.Lock()
	s.done[rank] = true
	for _, done := range s.done {
		if !done {
			s.mu.Unlock()
			return
		}
	}
	s.mu.Unlock()
	s.all(frame{Kind: "over"})
	s.end()
}

func (s *store) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.closed = true
		close(s.over)
		s.quieten()
	}
}

// late ends the wait for ranks that have not come.
func (s *store) late() {
	if cause := s.missing("within " + seconds(s.within)); cause != nil {
		s.abort(cause)
	}
}

// missing names the first rank that has not come, or returns nil.
func (s *store) missing(until string) *RankError {
	s.mu.Lock()
	defer s.mu.Unlock()
	missing, count := -1, 0
	for rank, l := range s.links {
		if l == nil {
			count++
			if missing < 0 {
				missing = rank
			}
		}
	}
	if missing < 0 {
		return nil
	}
	more := ""
	if count > 1 {
		more = fmt.Sprintf(", nor did %d more", count-1)
	}
	if s.refused != "" {
		more += "; " + s.refused
	}
	return &RankError{Rank: missing, Ranks: s.place.Ranks, What: fmt.Sprintf("did not arrive %s%s", until, more)}
}

// abort tells all ranks why they must end. Only the first cause counts.
func (s *store) abort(cause *RankError) {
	s.mu.Lock()
	if s.cause != nil || s.closed {
		s.mu.Unlock()
		return
	}
	s.cause = cause
	s.mu.Unlock()
	s.all(frame{Kind: "abort", Cause: cause})
	s.end()
}

// beat keeps the connections from counting as lost.
func (s *store) beat() {
	for {
		select {
		case <-s.over:
			return
		case <-time.After(beat):
			s.all(frame{Kind: "beat"})
		}
	}
}

func (s *store) close() {
	s.end()
	s.listener.Close()
	s.unknown.close()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.links {
		if l != nil {
			l.conn.Close()
		}
	}
}

// stuck ends all ranks because one gave up waiting after a time, with the rank that the others wait for as the cause.
func (s *store) stuck(reporter int, after string) {
	s.mu.Lock()
	first, begun := !s.asked, s.begun
	s.asked = true
	s.mu.Unlock()
	if !first {
		return
	}
	cause := s.missing(fmt.Sprintf("before rank %d timed out after %s", reporter, after))
	if begun || cause == nil {
		timeout, err := time.ParseDuration(after)
		if err != nil {
			timeout = mostAnswerTime
		}
		cause = s.awaited(s.ask(answerTime(timeout)), reporter, after)
	}
	cause.TimedOut = true
	s.abort(cause)
}
