// Faults: ranks that vanish, hang, come with a wrong secret, or meet garbage. Stages are observed, never guessed by time.

package world

import (
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/dag"
)

// sumOf is an all-reduce of one element on some ranks, for one of them.
func sumOf(rank, ranks int) (*cudart.Communication, Memory) {
	return &cudart.Communication{Verb: dag.AllReduce, Reduction: dag.Sum, DType: dag.F32, Rank: int32(rank), Group: dag.Among{Count: int32(ranks), Step: 1}},
		Memory{Src: floatsOf(1), Dst: make([]byte, 4)}
}

// until waits for a condition.
func until(condition func() bool) {
	for !condition() {
		time.Sleep(time.Millisecond)
	}
}

func host(t *testing.T) string {
	name, err := os.Hostname()
	require.NoError(t, err)
	return name
}

// Of four ranks one vanishes while the others wait for it in a collective: each of them names it.
func TestARankThatVanishesInACollectiveIsNamed(t *testing.T) {
	for _, verb := range []dag.Verb{dag.AllReduce, dag.AllGather, dag.ReduceScatter, dag.AllToAll, dag.Reduce, dag.Broadcast, dag.Exchange} {
		t.Run(verb.String(), func(t *testing.T) {
			const ranks, gone = 4, 2
			var worlds [ranks]atomic.Pointer[World]
			ended := together(t, ranks, unchanged, func(w *World) error {
				rank := int32(w.Place().Rank)
				worlds[rank].Store(w)
				c := &cudart.Communication{Verb: verb, DType: dag.U8, Rank: rank, Root: gone, Group: dag.Among{Count: ranks, Step: 1}}
				m := Memory{Src: make([]byte, 4), Dst: make([]byte, 4)}
				switch verb {
				case dag.AllReduce:
					c.Reduction = dag.Sum
				case dag.Reduce:
					c.Reduction, c.Root = dag.Sum, 0
				case dag.ReduceScatter:
					c.Reduction, m.Dst = dag.Sum, make([]byte, 1)
				case dag.AllGather:
					m.Dst = make([]byte, 16)
				case dag.Exchange:
					m = Memory{}
					for other := range int32(ranks) {
						if other != rank {
							c.Transfers = append(c.Transfers, cudart.Transfer{Rank: other, Receive: true, Bytes: 4}, cudart.Transfer{Rank: other, Bytes: 4})
							m.Transfers = append(m.Transfers, make([]byte, 4), make([]byte, 4))
						}
					}
				}
				if rank != gone {
					return w.Communicate("sum", c, m)
				}
				waits := 3
				if verb == dag.Reduce {
					waits = 1 // the root alone
				}
				until(func() bool {
					n := 0
					for k := range worlds {
						if other := worlds[k].Load(); other != nil && other.State().Node == "sum" {
							n++
						}
					}
					return n >= waits
				})
				w.close() // as if the process had been killed
				return nil
			})
			for rank, err := range ended {
				if rank != gone {
					require.EqualError(t, err, fmt.Sprintf("rank 2 of 4 (host %s) has ended before the others were finished", host(t)), "rank %d", rank)
				}
			}
		})
	}
}

// comes is a rank that joins and then does only what the test lets it do.
func comes(t *testing.T, at string, rank, ranks int) *link {
	var l *link
	until(func() bool {
		conn, err := net.Dial("tcp", at)
		if err != nil {
			return false
		}
		l = &link{conn: conn}
		return l.answer("secret", "store", rank) == nil
	})
	require.NoError(t, l.send(frame{Kind: "join", Ranks: ranks, Member: &Member{Host: "far"}}))
	return l
}

// aborted returns what the store says to a rank when it ends.
func (l *link) aborted(t *testing.T) *RankError {
	for {
		f, err := l.receive(mostBytes, time.Hour)
		require.NoError(t, err)
		if f.Kind == "abort" {
			require.NoError(t, l.conn.Close())
			return f.Cause
		}
	}
}

// joinsAlone starts rank 0 and returns how Join ends.
func joinsAlone(ctx context.Context, o JoinOptions) <-chan error {
	ended := make(chan error, 1)
	go func() {
		_, _, err := Join(ctx, o)
		ended <- err
	}()
	return ended
}

// A rank vanishes after it has joined and before the last one comes: those that are there name it.
func TestARankThatVanishesInTheRendezvousIsNamed(t *testing.T) {
	at := freeAddress(t)
	first := joinsAlone(context.Background(), joining(at, 0, 4))
	gone := comes(t, at, 2, 4)
	gone.conn.Close()
	const want = "rank 2 of 4 (host far) has ended before the others were finished"
	require.EqualError(t, <-first, want)
}

// limited is a context whose end the test decides, with the error of a deadline.
type limited struct {
	context.Context
	over chan struct{}
}

func (l limited) Done() <-chan struct{} { return l.over }

func (l limited) Err() error {
	select {
	case <-l.over:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

func TestATimeoutNamesTheRanksThatHaveNotCome(t *testing.T) {
	at := freeAddress(t)
	ctx := limited{context.Background(), make(chan struct{})}
	o := joining(at, 0, 4)
	o.Timeout = 7 * time.Second
	first := joinsAlone(ctx, o)
	close(ctx.over)
	cause := <-first
	require.EqualError(t, cause, "rank 1 of 4 did not arrive before rank 0 timed out after 7s, nor did 2 more")
	var of *RankError
	require.ErrorAs(t, cause, &of)
	require.True(t, of.TimedOut)
}

// A rank other than 0 times out while some have not come: those that are there hear it from the store.
func TestATimeoutOfAnotherRankNamesThoseThatHaveNotCome(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	o := joining(l.Addr().String(), 0, 4)
	s := newStore(l, &o)
	defer s.close()
	first, late := comes(t, l.Addr().String(), 0, 4), comes(t, l.Addr().String(), 3, 4)
	until(func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.arrived == 2
	})
	require.NoError(t, late.send(frame{Kind: "stuck", Text: "7s"}))
	for _, l := range []*link{first, late} {
		require.EqualError(t, l.aborted(t), "rank 1 of 4 did not arrive before rank 3 timed out after 7s, nor did 1 more")
	}
}

// Rank 1 never comes to the collective. Whoever times out, all hear the same: who is waited for, by whom, in which node, and what it does.
func TestATimeoutNamesTheRankThatIsWaitedFor(t *testing.T) {
	for late, name := range []string{"a rank that waits for another one times out", "the rank itself does", "the rank that waits for it does"} {
		t.Run(name, func(t *testing.T) {
			var worlds [3]atomic.Pointer[World]
			ended := together(t, 3, func(o *JoinOptions) {
				o.Timeout, o.Text = 7*time.Second, func() string { return "after 2 of 9 replays" }
			}, func(w *World) error {
				rank := w.Place().Rank
				worlds[rank].Store(w)
				c1, m := sumOf(rank, 3)
				if err := w.Communicate("first", c1, m); err != nil {
					return err
				}
				waiting := func(rank int, node string) bool {
					other := worlds[rank].Load()
					return other != nil && other.State().Node == node
				}
				if rank == 1 {
					until(func() bool { return waiting(0, "chain") && waiting(2, "sum") })
					worlds[late].Load().TimedOut()
					return w.Cause()
				}
				if rank == 2 {
					talk := &cudart.Communication{Verb: dag.Exchange, Rank: 2, Transfers: []cudart.Transfer{{Receive: true, Rank: 1, Bytes: 4}}}
					return w.Communicate("sum", talk, Memory{Transfers: [][]byte{make([]byte, 4)}})
				}
				talk := &cudart.Communication{Verb: dag.Exchange, Transfers: []cudart.Transfer{{Receive: true, Rank: 2, Bytes: 4}}}
				return w.Communicate("chain", talk, Memory{Transfers: [][]byte{make([]byte, 4)}})
			})
			for rank, err := range ended {
				require.EqualError(t, err, fmt.Sprintf(`rank 1 of 3 (host %s) has not come to "sum", where rank 2 waited for it until the timeout of 7s: it is after 2 of 9 replays, and communicated last in "first"`, host(t)), "rank %d", rank)
				var of *RankError
				require.ErrorAs(t, err, &of)
				require.True(t, of.TimedOut)
			}
		})
	}
}

func TestAnswersAreWaitedForAsLongAsTheTimeoutWas(t *testing.T) {
	require.Equal(t, []time.Duration{5 * time.Second, 9 * time.Second, 20 * time.Second}, []time.Duration{answerTime(time.Second), answerTime(9 * time.Second), answerTime(time.Hour)})
}

// A rank that is finished waits for those that are not, and the same goes for barriers.
func TestATimeoutNamesTheRankThatHasNotFinished(t *testing.T) {
	for _, barrier := range []bool{true, false} {
		var first atomic.Pointer[World]
		ended := together(t, 2, func(o *JoinOptions) { o.Timeout, o.Text = time.Minute, func() string { return "at load x" } }, func(w *World) error {
			if w.Place().Rank == 0 {
				first.Store(w)
				if barrier {
					_, err := w.Barrier(context.Background(), "computed", "")
					return err
				}
				return nil
			}
			until(func() bool { other := first.Load(); return other != nil && other.State().Barrier != "" })
			w.TimedOut()
			return w.Cause()
		})
		for _, err := range ended {
			require.EqualError(t, err, fmt.Sprintf(`rank 1 of 2 (host %s) has not finished, and rank 0 waited for it until the timeout of 1m0s: it is at load x, and has not communicated yet`, host(t)))
		}
	}
}

// Two ranks that wait for each other, one that does not answer, and none that waits for another.
func TestWhoIsWaitedFor(t *testing.T) {
	s := &store{place: Place{Ranks: 3}, members: []Member{{Host: "a"}, {Host: "b"}, {Host: "c"}}}
	idle := &State{Text: "after 1 of 2 replays", Last: "x"}
	for _, c := range []struct {
		states []*State
		want   string
	}{
		{[]*State{{Node: "x", For: []int32{1}}, {Node: "y", For: []int32{0}}, idle}, `rank 0 of 3 (host a) has not come to "y", where rank 1 waited for it until the timeout of 5s: it is in "x"`},
		{[]*State{{Node: "x", For: []int32{2}}, idle, nil}, `rank 2 of 3 (host c) has not come to "x", where rank 0 waited for it until the timeout of 5s: it does not answer`},
		{[]*State{idle, idle, nil}, `rank 2 of 3 (host c) does not answer rank 1, which has timed out after 5s`},
		{[]*State{idle, idle, idle}, `rank 1 of 3 (host b) timed out after 5s, after 1 of 2 replays, and communicated last in "x"`},
		{[]*State{{Node: "x", For: []int32{9, -1, 2}}, idle, idle}, `rank 2 of 3 (host c) has not come to "x", where rank 0 waited for it until the timeout of 5s: it is after 1 of 2 replays, and communicated last in "x"`},
		// GPUs do not tell whose messages are missing: of two ranks in each other's list, both have come.
		{[]*State{{Node: "x", For: []int32{0, 1, 2}, Mutual: true}, {Node: "x", For: []int32{0, 1, 2}, Mutual: true}, idle}, `rank 2 of 3 (host c) has not come to "x", where rank 0 waited for it until the timeout of 5s: it is after 1 of 2 replays, and communicated last in "x"`},
		{[]*State{{Node: "x", For: []int32{1}, Mutual: true}, {Node: "x", For: []int32{0, 2}, Mutual: true}, idle}, `rank 2 of 3 (host c) has not come to "x", where rank 1 waited for it until the timeout of 5s: it is after 1 of 2 replays, and communicated last in "x"`},
		{[]*State{{Node: "x", For: []int32{0, 1, 2}, Mutual: true, Text: "after 0 of 1 replay"}, {Node: "x", For: []int32{0, 1, 2}, Mutual: true, Text: "after 0 of 1 replay"}, {Node: "x", For: []int32{0, 1, 2}, Mutual: true}}, `rank 1 of 3 (host b) timed out after 5s, after 0 of 1 replay, in "x", to which all ranks have come`},
	} {
		require.EqualError(t, s.awaited(c.states, 1, "5s"), c.want)
	}
}

func TestAWrongSecretIsRefused(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	o := joining(l.Addr().String(), 0, 2)
	s := newStore(l, &o)
	defer s.close()
	o = joining(l.Addr().String(), 1, 2)
	o.Secret = "another"
	_, _, err = Join(context.Background(), o)
	require.EqualError(t, err, "rank 0 at "+l.Addr().String()+" does not let rank 1 in: it has another DAGRUN_SECRET")
	until(func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.refused != ""
	})
	require.EqualError(t, s.missing("within 5 s"),
		"rank 0 of 2 did not arrive within 5 s, nor did 1 more; a process at 127.0.0.1 that says it is rank 1 has another DAGRUN_SECRET")
}

func TestATakenPort(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	_, _, err = Join(context.Background(), joining(l.Addr().String(), 0, 2))
	require.ErrorContains(t, err, "rank 0 cannot serve the other ranks at "+l.Addr().String())
	o := joining(l.Addr().String(), 0, 2)
	o.Place.Derived, o.Arrive = true, 100*time.Millisecond // then one of the next ports does
	_, _, err = Join(context.Background(), o)
	require.EqualError(t, err, "rank 1 of 2 did not arrive within 0.1 s")
}

// While garbage pours in, before and after the ranks have met, they meet and communicate.
func TestAFloodOfGarbage(t *testing.T) {
	address := freeAddress(t)
	stop := make(chan struct{})
	var served atomic.Int64
	var flood sync.WaitGroup
	for k := range 6 {
		flood.Go(func() {
			b := make([]byte, 64<<10)
			_, _ = rand.Read(b)
			for {
				select {
				case <-stop:
					return
				default:
				}
				conn, err := net.Dial("tcp", address)
				if err != nil {
					time.Sleep(time.Millisecond)
					continue
				}
				if _, err := conn.Read(make([]byte, 4)); err == nil { // the store says hello first
					served.Add(1)
				}
				switch k % 3 {
				case 0:
					_, _ = conn.Write(b)
				case 1:
					_, _ = conn.Write([]byte{0xff, 0xff, 0xff, 0xff}) // a message of 4 GB
				case 2:
					_, _ = conn.Write([]byte{0, 0, 0, 2, '{', '}'})
				}
				conn.Close()
			}
		})
	}
	defer flood.Wait()
	defer close(stop)
	more := func() {
		from := served.Load()
		until(func() bool { return served.Load() >= from+100 })
	}
	var ranks sync.WaitGroup
	for rank := range 2 {
		ranks.Go(func() {
			if rank == 1 {
				more()
			}
			w, _, err := Join(context.Background(), joining(address, rank, 2))
			if err != nil {
				t.Error(err)
				return
			}
			if rank == 1 {
				more()
			}
			c, m := sumOf(rank, 2)
			if err := w.Communicate("sum", c, m); err != nil {
				t.Error(err)
			}
			if err := w.Leave(nil); err != nil {
				t.Error(err)
			}
		})
	}
	ranks.Wait()
}

// Connections that say nothing are pushed out by new ones, and no more of them are open than the lobby holds.
func TestTheLobbyPushesOutTheOldest(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	o := joining(l.Addr().String(), 0, 2)
	s := newStore(l, &o)
	defer s.close()
	var conns []net.Conn
	for range mostPending + 10 {
		conn, err := net.Dial("tcp", l.Addr().String())
		require.NoError(t, err)
		defer conn.Close()
		_, err = conn.Read(make([]byte, 4)) // it has been let into the lobby
		require.NoError(t, err)
		conns = append(conns, conn)
	}
	s.unknown.mu.Lock()
	require.LessOrEqual(t, len(s.unknown.conns), mostPending)
	s.unknown.mu.Unlock()
	for _, conn := range conns[:10] {
		for {
			if _, err := conn.Read(make([]byte, 64)); err != nil {
				break
			}
		}
	}
}
