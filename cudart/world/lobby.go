// The lobby: connections of processes that have not knocked yet with the secret. Whoever floods a port with connections costs a bounded number
// of them, and the ranks still get through.

package world

import (
	"errors"
	"net"
	"slices"
	"sync"
	"time"
)

// mostPending is how many connections may be in the lobby at once. A flood then pushes out the oldest, which has had its time.
const mostPending = 256

// acceptPause is how long a port rests that could not accept a connection, because the process has too many open files, for example.
const acceptPause = 10 * time.Millisecond

// lobby holds connections, the oldest first.
type lobby struct {
	mu      sync.Mutex
	conns   []net.Conn
	entered int // connections so far
	closed  bool
}

// serve accepts connections until the listener is closed, and calls meet for each on a goroutine of its own. meet calls leave.
func (b *lobby) serve(listener net.Listener, meet func(*link)) {
	for {
		conn, err := listener.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			time.Sleep(acceptPause)
			continue
		}
		b.enter(conn)
		go meet(&link{conn: conn})
	}
}

// enter adds a connection, and closes the oldest if there are too many.
func (b *lobby) enter(conn net.Conn) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		conn.Close()
		return
	}
	if len(b.conns) >= mostPending {
		b.conns[0].Close()
		b.conns = b.conns[1:]
	}
	b.conns = append(b.conns, conn)
	b.entered++
}

// leave takes a connection off the list: it has knocked, or failed to.
func (b *lobby) leave(conn net.Conn) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.conns = slices.DeleteFunc(b.conns, func(c net.Conn) bool { return c == conn })
}

// close closes all connections that are still in it, and those that come later.
func (b *lobby) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	for _, c := range b.conns {
		c.Close()
	}
}
