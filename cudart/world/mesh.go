// The mesh: a connection between every two ranks, for the communication of the CPU device.

package world

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

func (e *mismatchError) Error() string { return e.what }

// mostLabel is the longest name of a node in a message's head.
const mostLabel = 1 << 10

// send writes messages, each with the node that sends it.
func (p *peer) send(label string, messages [][]byte) error {
	for _, m := range messages {
		name := label[:min(len(label), mostLabel)]
		head := binary.BigEndian.AppendUint16(nil, uint16(len(name)))
		head = binary.BigEndian.AppendUint64(append(head, name...), uint64(len(m)))
		if _, err := p.conn.Write(head); err != nil {
			return err
		}
		if _, err := p.conn.Write(m); err != nil {
			return err
		}
	}
	return nil
}

// receive reads messages, which must have the size and come from a node of the kind that this side expects.
func (p *peer) receive(label string, messages [][]byte) error {
	for _, m := range messages {
		var length [2]byte
		if _, err := io.ReadFull(p.conn, length[:]); err != nil {
			return err
		}
		rest := make([]byte, int(binary.BigEndian.Uint16(length[:]))+8)
		if _, err := io.ReadFull(p.conn, rest); err != nil {
			return err
		}
		name, size := string(rest[:len(rest)-8]), binary.BigEndian.Uint64(rest[len(rest)-8:])
		if size != uint64(len(m)) {
			return &mismatchError{fmt.Sprintf("rank %d sends %d bytes from %q, but %q receives %d", p.rank, size, name, label, len(m))}
		}
		if _, err := io.ReadFull(p.conn, m); err != nil {
			return err
		}
	}
	return nil
}

// connect makes the mesh: each rank calls those before it and is called by those after it.
func (w *World) connect(listener net.Listener, key string, within time.Duration) error {
	w.mu.Lock()
	w.peers = make([]*peer, w.place.Ranks)
	w.mu.Unlock()
	deadline := time.Now().Add(within)
	type came struct {
		peer *peer
		err  error
	}
	expected := w.place.Ranks - 1 - w.place.Rank
	arrivals := make(chan came, w.place.Ranks)
	for rank := range w.place.Rank {
		go func() {
			p, err := w.call(rank, key, deadline)
			arrivals <- came{p, err}
		}()
	}
	stop := make(chan struct{})
	var unknown lobby
	defer unknown.close()
	defer close(stop)
	go unknown.serve(listener, func(l *link) {
		rank, err := l.challenge(key, "mesh", func() { unknown.leave(l.conn) })
		unknown.leave(l.conn)
		if err != nil || rank <= w.place.Rank || rank >= w.place.Ranks {
			l.conn.Close()
			return
		}
		select {
		case arrivals <- came{&peer{rank, l.conn}, nil}:
		case <-stop:
			l.conn.Close()
		}
	})
	defer listener.Close()
	for range w.place.Rank + expected {
		select {
		case a := <-arrivals:
			if a.err != nil {
				return a.err
			}
			if w.peers[a.peer.rank] != nil {
				a.peer.conn.Close()
				return fmt.Errorf("rank %d came twice", a.peer.rank)
			}
			_ = a.peer.conn.SetDeadline(time.Time{})
			w.mu.Lock() // the store may tell of a failure meanwhile
			w.peers[a.peer.rank] = a.peer
			w.mu.Unlock()
		case <-w.failed:
			return w.Cause()
		case <-time.After(time.Until(deadline)):
			for rank, p := range w.peers {
				if p == nil && rank != w.place.Rank {
					return w.blames(rank, "did not connect to rank %d within %s", w.place.Rank, seconds(within))
				}
			}
			return errors.New("the ranks did not connect in time")
		}
	}
	return nil
}

func (w *World) call(rank int, key string, deadline time.Time) (*peer, error) {
	conn, err := net.DialTimeout("tcp", w.members[rank].Listen, time.Until(deadline))
	if err == nil {
		if err = (&link{conn: conn}).answer(key, "mesh", w.place.Rank); err == nil {
			return &peer{rank, conn}, nil
		}
		conn.Close()
	}
	return nil, w.blames(rank, "cannot be reached from rank %d at %s: %v", w.place.Rank, w.members[rank].Listen, err)
}

func seconds(d time.Duration) string { return fmt.Sprintf("%g s", d.Seconds()) }
