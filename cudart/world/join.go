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
	Timeout time.Duration // after which ctx ends, for messages
	Text    func() string // how far this rank has come, for the others when one of them times out: "after 3 of 10 replays"
	// Of rank 0: what graph each rank must have, and what is decided for all of them.
	Expected func(m Member) (Expected, error)
	Decision json.RawMessage
	Check    func(members []Member) error // called once all ranks have come; an error ends all of them
}

// Join meets the other ranks and returns this rank's connection to them with the decision of rank 0. With one rank both are nil.
func Join(ctx context.Context, o JoinOptions) (w *World, decision json.RawMessage, err error) {
	if o.Place.Ranks <= 1 {
		return nil, o.Decision, nil
	}
	if o.Arrive <= 0 {
		o.Arrive = defaultArrive
	}
	if len(o.Place.ports()) == 0 {
		return nil, nil, fmt.Errorf("the ranks cannot meet at %q: want HOST:PORT", o.Place.Rendezvous)
	}
	at := meetingAt(ctx, o.Place.Rendezvous, o.Secret)
	if ctx.Err() == nil && o.Secret == "" && at.loopback == "" {
		return nil, nil, fmt.Errorf("the ranks meet at %s, which other machines can reach: set DAGRUN_SECRET to the same text on all ranks", o.Place.Rendezvous)
	}
	w = &World{place: o.Place, timeout: o.Timeout, text: o.Text, failed: make(chan struct{}), left: make(chan struct{}), told: make(chan struct{}),
		answers: make(chan frame, 16)}
	defer func() {
		if err != nil {
			if w.server != nil { // the others must hear why before the store closes
				w.server.abort(&RankError{Rank: 0, Ranks: o.Place.Ranks, What: wordsOf(err)})
				w.linger()
			} else if w.store != nil && !errors.Is(err, ErrRank) {
				_ = w.store.send(frame{Kind: "done", Text: wordsOf(err)})
			}
			w.close()
			w = nil
		}
	}()
	var addresses []string
	for _, port := range o.Place.ports() {
		addresses = append(addresses, net.JoinHostPort(at.host, port))
	}
	reaching := ctx
	if o.Place.Rank == 0 {
		listener, own, err := at.listen(o.Place.ports())
		if err != nil {
			return w, nil, fmt.Errorf("rank 0 cannot serve the other ranks at %s: %w", o.Place.Rendezvous, err)
		}
		w.server = newStore(listener, &o)
		addresses, reaching = []string{own}, context.WithoutCancel(ctx) // its own store is there at once
	}
	deadline := time.Now().Add(o.Arrive)
	if err := w.reach(reaching, o, addresses, deadline); err != nil {
		return w, nil, err
	}
	member := Member{Rank: o.Place.Rank, LocalRank: o.Place.LocalRank, Pid: os.Getpid(), Device: o.Device}
	member.Host, _ = os.Hostname()
	var listener net.Listener
	if o.Mesh {
		if listener, member.Listen, err = at.listenForRanks(hostOf(w.store.conn.LocalAddr().String())); err != nil {
			return w, nil, err
		}
		defer listener.Close()
	}
	if err := w.store.send(frame{Kind: "join", Ranks: o.Place.Ranks, Member: &member, Hash: o.Hash}); err != nil {
		return w, nil, err
	}
	go w.listen(o.Outline)
	go w.beat()
	f, err := w.await(ctx, "go", o.Arrive+2*silence)
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		w.TimedOut()
		return w, nil, w.Cause()
	}
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

// reach connects to the store, which may not be there yet.
func (w *World) reach(ctx context.Context, o JoinOptions, addresses []string, deadline time.Time) error {
	looking, found := context.WithDeadline(ctx, deadline)
	defer found()
	links, failures := make(chan *link), make(chan error)
	for _, address := range addresses { // all at once: a process that owns one of the ports may keep us waiting
		go o.look(looking, address, links, failures)
	}
	var last error
	for {
		select {
		case w.store = <-links:
			return nil
		case err := <-failures:
			if errors.Is(err, errSecret) && !o.Place.Derived {
				return fmt.Errorf("rank 0 at %s does not let rank %d in: %w", o.Place.Rendezvous, o.Place.Rank, err)
			}
			if !errors.Is(last, errSecret) { // another port may refuse the connection because nobody is there
				last = err
			}
			continue
		case <-looking.Done():
		}
		break
	}
	timedOut := errors.Is(ctx.Err(), context.DeadlineExceeded)
	if ctx.Err() != nil && !timedOut {
		return context.Cause(ctx)
	}
	within := o.Arrive
	if timedOut {
		within = o.Timeout
	}
	e := w.blames(0, "could not be reached at %s within %s", o.Place.Rendezvous, seconds(within))
	switch {
	case errors.Is(last, errSecret):
		e.What += ": who listens there has another DAGRUN_SECRET" + o.Place.orJob()
	case last != nil:
		e.What += ": " + last.Error()
	}
	e.TimedOut = timedOut
	return e
}

// look tries one address until the store answers there, and tells of each failure.
func (o *JoinOptions) look(ctx context.Context, address string, found chan<- *link, failures chan<- error) {
	for pause := time.Millisecond; ; pause = min(2*pause, longestPause) { // ranks that are started together come within milliseconds
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
		if err == nil {
			l := &link{conn: conn}
			if err = l.answer(o.key(), "store", o.Place.Rank); err == nil {
				select {
				case found <- l:
				case <-ctx.Done():
					conn.Close()
				}
				return
			}
			conn.Close()
		}
		if ctx.Err() != nil {
			return
		}
		select {
		case failures <- err:
		case <-ctx.Done():
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// longestPause is how long a rank rests at most before it tries an address again.
const longestPause = 100 * time.Millisecond

// key is what the ranks prove to each other that they know: the secret, and the job if its ports may overlap with those of another one.
func (o *JoinOptions) key() string {
	if o.Place.Job == "" {
		return o.Secret
	}
	return prove(o.Secret, "job", o.Place.Job)
}

// listen hands out what the store says, until the connection ends.
func (w *World) listen(outline func() []string) {
	defer close(w.told)
	for {
		f, err := w.store.receive(mostBytes, silence)
		if err != nil {
			w.Fail(w.blames(0, "%s", lostText(err)))
			return
		}
		switch f.Kind {
		case "abort":
			if f.Cause != nil {
				w.Fail(f.Cause)
			}
			_ = w.store.send(frame{Kind: "heard"})
			return
		case "state?":
			state := w.State()
			_ = w.store.send(frame{Kind: "state", State: &state})
		case "outline?":
			lines := []string{}
			if outline != nil {
				lines = outline()
			}
			_ = w.store.send(frame{Kind: "outline", Outline: lines})
		case "go", "passed", "clock", "over":
			select {
			case w.answers <- f:
			case <-w.failed:
			}
			if f.Kind == "over" { // what ends the connection now is no failure
				_ = w.store.send(frame{Kind: "heard"})
				return
			}
		}
	}
}

func (w *World) beat() {
	for {
		select {
		case <-w.failed:
			return
		case <-w.left:
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
		w.hear() // the store has said why it cannot be reached, or its connection has ended
		w.Fail(w.blames(0, "%s", lostText(err)))
		return nil, w.Cause()
	}
	w.waitsAt(name)
	defer w.waitsAt("")
	f, err := w.await(ctx, "passed", 0)
	return f.All, err
}

// hear waits for the store's last word.
func (w *World) hear() {
	select {
	case <-w.told:
	case <-after(silence):
	}
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
	if !errors.As(cause, &other) && (err != nil && !errors.As(err, &other) || cause != nil) {
		if err == nil {
			err = cause
		}
		if w.store.send(frame{Kind: "done", Text: wordsOf(err)}) == nil {
			w.hear()
		}
		w.linger()
		w.close()
		return nil
	}
	if cause == nil && err == nil {
		w.waitsAt("finished")
		if w.store.send(frame{Kind: "done"}) != nil {
			w.hear()
		}
		_, cause = w.await(context.Background(), "over", leaveTime)
	}
	w.linger()
	w.mu.Lock()
	w.ending = true
	w.mu.Unlock()
	w.close()
	return cause
}

// wordsOf is how a rank ended, for the others.
func wordsOf(err error) string {
	var of *RankError
	switch {
	case errors.As(err, &of), err == nil:
		return "has ended before the others were finished"
	case errors.Is(err, context.DeadlineExceeded):
		return "timed out"
	case errors.Is(err, context.Canceled):
		return "was interrupted"
	}
	return "failed: " + err.Error()
}

// linger keeps the store of rank 0 open until all ranks have heard why they end. After a timeout some may never hear.
func (w *World) linger() {
	if w.server == nil {
		return
	}
	limit := silence
	if cause := (*RankError)(nil); errors.As(w.Cause(), &cause) && cause.TimedOut {
		limit = lastWords
	}
	select {
	case <-w.server.quiet:
	case <-after(limit):
	}
}

// lastWords is how long rank 0 waits after a timeout for ranks that may not answer at all.
const lastWords = 5 * time.Second

func newStore(listener net.Listener, o *JoinOptions) *store {
	n := o.Place.Ranks
	s := &store{listener: listener, secret: o.key(), place: o.Place, within: o.Arrive, expected: o.Expected, decision: o.Decision, check: o.Check,
		session: nonce(), links: make([]*link, n), members: make([]Member, n), hashes: make([]string, n), outlines: map[int]chan []string{},
		waiting: map[string]map[int]string{},
		done:    make([]bool, n), heard: make([]bool, n), over: make(chan struct{}), quiet: make(chan struct{}), states: make(chan statedState, n)}
	go s.unknown.serve(listener, s.serve)
	go s.beat()
	time.AfterFunc(o.Arrive, s.late)
	return s
}

// close gives up all connections.
func (w *World) close() {
	w.leaving.Do(func() { close(w.left) })
	for _, p := range w.peers {
		if p != nil {
			p.conn.Close()
		}
	}
	if w.store != nil {
		w.store.conn.Close()
	}
	if w.server != nil {
		w.server.close()
	}
}
