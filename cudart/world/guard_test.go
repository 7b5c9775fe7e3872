// Tests of ranks beside processes that are not theirs, and beside ranks that are stopped.

package world

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A rank that has knocked is not pushed out of the lobby, however many connections come before it has proved the secret.
func TestAFloodDoesNotPushOutARank(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	o := joining(listener.Addr().String(), 0, 2)
	s := newStore(listener, &o)
	defer s.close()
	slow, fast := net.Pipe() // what the rank receives is held back here
	defer fast.Close()
	conn, err := net.Dial("tcp", listener.Addr().String())
	require.NoError(t, err)
	defer conn.Close()
	rank := &link{conn: &split{conn, slow}}
	answered := make(chan error)
	go func() { answered <- rank.answer(o.key(), "store", 1) }()
	until(func() bool { // it has come and has knocked
		s.unknown.mu.Lock()
		defer s.unknown.mu.Unlock()
		return s.unknown.entered == 1 && len(s.unknown.conns) == 0
	})
	for range mostPending + 10 {
		silent, err := net.Dial("tcp", listener.Addr().String())
		require.NoError(t, err)
		defer silent.Close()
		_, err = silent.Read(make([]byte, 4))
		require.NoError(t, err)
	}
	go func() {
		b := make([]byte, 1<<10)
		for {
			n, err := conn.Read(b)
			if err != nil {
				fast.Close()
				return
			}
			_, _ = fast.Write(b[:n])
		}
	}()
	require.NoError(t, <-answered)
}

// split is a connection that is read elsewhere.
type split struct {
	net.Conn
	from net.Conn
}

func (s *split) Read(b []byte) (int, error)        { return s.from.Read(b) }
func (s *split) SetReadDeadline(d time.Time) error { return s.from.SetReadDeadline(d) }

// The store listens at the address of the rendezvous. Only where no address of it is this machine's, it listens on all.
func TestTheStoreListensAtItsAddressOnly(t *testing.T) {
	for want, at := range map[string]meeting{
		"127.0.0.1": {host: "gpu-01", shared: true, addresses: []string{"127.0.0.1"}},
		"::":        {host: "gpu-01", shared: true, addresses: []string{"192.0.2.1"}}, // nobody's
	} {
		l, own, err := at.listen([]string{"0"})
		require.NoError(t, err)
		defer l.Close()
		require.Equal(t, want == "::", l.Addr().(*net.TCPAddr).IP.IsUnspecified(), "%s", l.Addr())
		require.Equal(t, "127.0.0.1", hostOf(own))
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	_, port, _ := net.SplitHostPort(taken.Addr().String())
	_, _, err = (&meeting{host: "gpu-01", shared: true, addresses: []string{"127.0.0.1"}}).listen([]string{port})
	require.ErrorContains(t, err, "127.0.0.1:"+port)
}

// A rank that has said nothing for a while is stopped: nobody waits for its answer as long as for those of others.
func TestStoppedRanksAreNotWaitedFor(t *testing.T) {
	defer func(d time.Duration) { stopped = d }(stopped)
	stopped = 0
	defer func(f func(time.Duration) <-chan time.Time) { after = f }(after)
	after = func(time.Duration) <-chan time.Time { return nil } // waiting for an answer would never end
	address := freeAddress(t)
	o := joining(address, 0, 3)
	ended := joinsAlone(context.Background(), o)
	comes(t, address, 1, 3)
	other := comes(t, address, 2, 3)
	require.NoError(t, other.send(frame{Kind: "stuck", Text: "1h"}))
	cause := other.aborted(t)
	require.Equal(t, "does not answer rank 2, which has timed out after 1h", cause.What)
	require.Error(t, <-ended)

	// Nor for rank 0.
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	o = joining(l.Addr().String(), 1, 2)
	o.Timeout, o.Mesh = time.Hour, false
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		from := &link{conn: conn}
		if _, err := from.challenge(o.key(), "store", func() {}); err == nil {
			_ = from.send(frame{Kind: "go", Members: make([]Member, 2)})
		}
	}()
	w, _, err := Join(context.Background(), o)
	require.NoError(t, err)
	w.TimedOut()
	require.ErrorContains(t, w.Cause(), "does not answer rank 1, which has timed out after 1h")
	w.close()
}
