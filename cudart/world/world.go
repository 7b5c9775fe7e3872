// A world: the connections of one rank to all others, and why communication ended.

package world

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// World is one rank's connection to the others. All methods may be called from any goroutine. A nil World is that of the only rank.
type World struct {
	place   Place
	members []Member
	store   *link  // to rank 0's store
	server  *store // of rank 0
	peers   []*peer

	timeout time.Duration // after which the caller gives up, for messages
	text    func() string // how far this rank has come

	mu      sync.Mutex
	now     State         // what this rank waits for
	open    map[int32]int // by rank: messages to and from it that are not complete
	follow  func() State  // nil if World does the communication itself
	cause   error
	ending  bool          // Leave has begun, so that lost connections are no failure
	failed  chan struct{} // closed at the first failure
	left    chan struct{} // closed with the connections
	leaving sync.Once
	told    chan struct{} // closed when the store has said its last word
	answers chan frame    // of the store
}

// ErrRank is the error of a rank that ends because another one failed.
var ErrRank = errors.New("another rank failed")

func (e *RankError) Error() string {
	if e.Host == "" {
		return fmt.Sprintf("rank %d of %d %s", e.Rank, e.Ranks, e.What)
	}
	return fmt.Sprintf("rank %d of %d (host %s) %s", e.Rank, e.Ranks, e.Host, e.What)
}

func (e *RankError) Is(target error) bool { return target == ErrRank }

var errNoWorld = errors.New("there is no connection to other ranks; make one with Join")

// Place returns which rank this is.
func (w *World) Place() Place {
	if w == nil {
		return Place{Ranks: 1}
	}
	return w.place
}

// Cause returns the first failure, or nil.
func (w *World) Cause() error {
	if w == nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.cause
}

// Failed is closed when a rank has failed. It is nil for the only rank.
func (w *World) Failed() <-chan struct{} {
	if w == nil {
		return nil
	}
	return w.failed
}

// Fail ends all communication of this rank, now and later, because of an error. Only the first counts.
func (w *World) Fail(err error) {
	if w == nil || err == nil {
		return
	}
	w.mu.Lock()
	if w.cause != nil || w.ending {
		w.mu.Unlock()
		return
	}
	w.cause = err
	if w.failed != nil {
		close(w.failed)
	}
	peers := slices.Clone(w.peers)
	w.mu.Unlock()
	for _, p := range peers {
		if p != nil {
			p.conn.Close()
		}
	}
}

// blames makes the error of a rank.
func (w *World) blames(rank int, format string, args ...any) *RankError {
	e := &RankError{Rank: rank, Ranks: w.place.Ranks, What: fmt.Sprintf(format, args...)}
	if rank < len(w.members) {
		e.Host = w.members[rank].Host
	}
	return e
}

// note makes a lost connection to a rank a failure. The store says why a rank failed, so its word is waited for.
func (w *World) note(rank int32, err error) {
	var lost *mismatchError
	if errors.As(err, &lost) {
		w.Fail(err)
		return
	}
	select {
	case <-w.failed:
	case <-after(silence):
		w.Fail(w.blames(int(rank), "has lost its connection to rank %d", w.place.Rank))
	}
}
