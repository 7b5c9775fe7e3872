// Joining the other ranks, waiting for them, and leaving.

package world

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"time"
)

// JoinOptions says how a rank joins the others.
type JoinOptions struct {
	Place   Place
	Secret  string        // the same on all ranks; "": only ranks of this machine can join
	Arrive  time.Duration // how long the ranks wait for each other; 0: a minute
	Device  string        // the UUID of its GPU, "" on the CPU
	Mesh    bool          // connect every two ranks, for the communication of the CPU device
	Hash    string        // of this rank's graph
	Outline func() []string
	// Of rank 0: what graph each rank must have, and what is decided for all of them.
	Expected func(rank int) (Expected, error)
	Decision json.RawMessage
	Check    func() error // called once all ranks have come; an error ends all of them
}

// Join meets the other ranks and returns this rank's connection to them with the decision of rank 0. With one rank both are nil.
func Join(ctx context.Context, o JoinOptions) (w *World, decision json.RawMessage, err error) {
	if o.Place.Ranks <= 1 {
		return nil, o.Decision, nil
	}
	if o.Arrive <= 0 {
		o.Arrive = defaultArrive
	}
	if host := hostOf(o.Place.Rendezvous); o.Secret == "" && !isLoopback(host) {
		return nil, nil, fmt.Errorf("the ranks meet at %s, which other machines can reach: set DAGRUN_SECRET to the same text on all ranks", o.Place.Rendezvous)
	}
	w = &World{place: o.Place, failed: make(chan struct{}), answers: make(chan frame, 16)}
	defer func() {
		if err != nil {
			if w.server != nil { // the others must hear why before the store closes
				w.server.abort(&RankError{Rank: 0, Ranks: o.Place.Ranks, What: "has ended before the others were finished"})
				w.linger()
			}
			w.close()
			w = nil
		}
	}()
	address := ""
	if o.Place.Rank == 0 {
		listener, err := listen(o.Place, o.Secret)
		if err != nil {
			return w, nil, err
		}
		w.server = newStore(listener, &o)
		_, port, _ := net.SplitHostPort(listener.Addr().String())
		address = net.JoinHostPort("127.0.0.1", port)
	}
	deadline := time.Now().Add(o.Arrive)
	if err := w.reach(ctx, o, address, deadline); err != nil {
		return w, nil, err
	}
	member := Member{Rank: o.Place.Rank, Pid: os.Getpid(), Device: o.Device}
	member.Host, _ = os.Hostname()
	var listener net.Listener
	if o.Mesh {
		if listener, err = net.Listen("tcp", net.JoinHostPort(w.meshHost(), "0")); err != nil {
			return w, nil, err
		}
		member.Listen = listener.Addr().String()
		if host := hostOf(o.Place.Rendezvous); o.Place.Rank == 0 && !isLoopback(host) {
			_, port, _ := net.SplitHostPort(member.Listen)
			member.Listen = net.JoinHostPort(host, port)
		}
		defer listener.Close()
	}
	if err := w.store.send(frame{Kind: "join", Ranks: o.Place.Ranks, Member: &member, Hash: o.Hash}); err != nil {
		return w, nil, err
	}
	go w.listen(o.Outline)
	go w.beat()
	f, err := w.await(ctx, "go", o.Arrive+2*silence)
	if err != nil {
		return w, nil, err
	}
	w.members = f.Members
	if o.Mesh {
		if err := w.connect(listener, prove(o.Secret, "mesh", f.Session), o.Arrive); err != nil {
			w.Leave(err)
			return w, nil, err
		}
	}
	return w, f.Decision, nil
}

// meshHost is where this rank listens for others: the address from which it reaches the store.
func (w *World) meshHost() string {
	if w.place.Rank == 0 && !isLoopback(hostOf(w.place.Rendezvous)) {
		return ""
	}
	return hostOf(w.store.conn.LocalAddr().String())
}

// reach connects to the store, which may not be there yet.
func (w *World) reach(ctx context.Context, o JoinOptions, address string, deadline time.Time) error {
	addresses := []string{address}
	if address == "" {
		host, port, err := net.SplitHostPort(o.Place.Rendezvous)
		if err != nil {
			return fmt.Errorf("--rendezvous %q: want HOST:PORT", o.Place.Rendezvous)
		}
		addresses = nil
		for _, p := range ports(o.Place, port) {
			addresses = append(addresses, net.JoinHostPort(host, p))
		}
	}
	var last error
	for attempt := 0; time.Now().Before(deadline); attempt++ {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		conn, err := (&net.Dialer{Deadline: deadline}).DialContext(ctx, "tcp", addresses[attempt%len(addresses)])
		if err == nil {
			w.store = &link{conn: conn}
			err = w.store.answer(o.Secret, "store", o.Place.Rank)
			if err == nil {
				return nil
			}
			conn.Close()
			w.store = nil
			if errors.Is(err, errSecret) && !o.Place.Derived {
				return fmt.Errorf("rank 0 at %s does not let rank %d in: %w", o.Place.Rendezvous, o.Place.Rank, err)
			}
		}
		if last == nil || err != nil {
			last = err
		}
		if attempt%len(addresses) == len(addresses)-1 {
			select {
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
		}
	}
	return &RankError{Rank: 0, Ranks: o.Place.Ranks, What: fmt.Sprintf("could not be reached at %s within %s: %v", o.Place.Rendezvous, seconds(o.Arrive), last)}
}

// listen hands out what the store says, until the connection ends.
func (w *World) listen(outline func() []string) {
	for {
		f, err := w.store.receive(mostBytes, silence)
		if err != nil {
			host := ""
			if len(w.members) > 0 {
				host = w.members[0].Host
			}
			w.Fail(&RankError{0, w.place.Ranks, host, lostText(err)})
			return
		}
		switch f.Kind {
		case "abort":
			if f.Cause != nil {
				w.Fail(f.Cause)
			}
		case "outline?":
			lines := []string{}
			if outline != nil {
				lines = outline()
			}
			_ = w.store.send(frame{Kind: "outline", Outline: lines})
		case "go", "passed", "over":
			select {
			case w.answers <- f:
			case <-w.failed:
			}
		}
	}
}

func (w *World) beat() {
	for {
		select {
		case <-w.failed:
			return
		case <-time.After(beat):
			if w.store.send(frame{Kind: "beat"}) != nil {
				return
			}
		}
	}
}

// await waits for an answer of the store; within 0 sets no limit.
func (w *World) await(ctx context.Context, kind string, within time.Duration) (frame, error) {
	var limit <-chan time.Time
	if within > 0 {
		limit = time.After(within)
	}
	for {
		select {
		case f := <-w.answers:
			if f.Kind == kind {
				return f, nil
			}
		case <-w.failed:
			return frame{}, w.Cause()
		case <-ctx.Done():
			return frame{}, context.Cause(ctx)
		case <-limit:
			return frame{}, &RankError{Rank: 0, Ranks: w.place.Ranks, What: fmt.Sprintf("did not answer within %s", seconds(within))}
		}
	}
}

// Barrier waits until every rank has called it with the same name, and returns the texts of all ranks. It fails when a rank does.
func (w *World) Barrier(ctx context.Context, name, text string) ([]string, error) {
	if w == nil {
		return []string{text}, nil
	}
	if ctx == nil || w.store == nil {
		return nil, errNoWorld
	}
	if err := w.store.send(frame{Kind: "barrier", Name: name, Text: text}); err != nil {
		<-w.settled()
		return nil, errors.Join(w.Cause())
	}
	f, err := w.await(ctx, "passed", 0)
	return f.All, err
}

// settled is closed once it is known why the store cannot be reached.
func (w *World) settled() <-chan struct{} {
	w.Fail(&RankError{Rank: 0, Ranks: w.place.Ranks, What: "has ended before the others were finished"})
	return w.failed
}

// leaveTime is how long a rank that is finished waits for the others.
const leaveTime = 24 * time.Hour

// Leave tells the others how this rank ended, waits until all are finished, and closes the connections. It returns the failure of another
// rank, if one failed before.
func (w *World) Leave(err error) error {
	if w == nil {
		return nil
	}
	if w.store == nil {
		return errNoWorld
	}
	cause := w.Cause()
	var other *RankError
	if err != nil && !errors.As(err, &other) || cause != nil && !errors.As(cause, &other) {
		if err == nil {
			err = cause
		}
		_ = w.store.send(frame{Kind: "done", Text: err.Error()})
		w.linger()
		w.close()
		return nil
	}
	if cause == nil && err == nil {
		if w.store.send(frame{Kind: "done"}) == nil {
			_, cause = w.await(context.Background(), "over", leaveTime)
		}
	}
	w.linger()
	w.mu.Lock()
	w.ending = true
	w.mu.Unlock()
	w.close()
	return cause
}

// linger gives the store of rank 0 the time to tell all ranks why they end.
func (w *World) linger() {
	if w.server == nil {
		return
	}
	select {
	case <-w.server.over:
	case <-time.After(silence):
	}
	time.Sleep(50 * time.Millisecond)
}
