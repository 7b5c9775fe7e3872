// Communication of the CPU device: each collective as messages between pairs of ranks.

package world

import (
	"errors"
	"fmt"
	"sync"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/dag"
)

// Memory is the memory of a communication: of a collective its source and destination, of an exchange one piece for each transfer.
type Memory struct {
	Src, Dst  []byte
	Transfers [][]byte
}

// message is a piece of memory that is sent to a rank, or received from one.
type message struct {
	rank    int32
	receive bool
	memory  []byte
}

// Communicate does one communication and returns when this rank's part is complete. label is the node's name, for errors. Only one runs at a
// time. On a nil World this process is the only rank.
func (w *World) Communicate(label string, c *cudart.Communication, m Memory) error {
	if err := m.check(c); err != nil {
		return err
	}
	if c.Verb == dag.Exchange {
		list := make([]message, len(c.Transfers))
		for k, t := range c.Transfers {
			list[k] = message{t.Rank, t.Receive, m.Transfers[k]}
		}
		return w.pass(label, c.Rank, list)
	}
	group, index := c.Group, int(c.Group.Index(c.Rank))
	n := int(group.Count)
	rank := func(k int) int32 { return group.First + int32(k)*group.Step }
	root := int(group.Index(c.Root))
	switch c.Verb {
	case dag.Broadcast:
		if index != root {
			return w.pass(label, c.Rank, []message{{c.Root, true, m.Dst}})
		}
		var list []message
		for k := range n {
			if k != root {
				list = append(list, message{rank(k), false, m.Src})
			}
		}
		return w.pass(label, c.Rank, list)
	case dag.Reduce:
		if index != root {
			return w.pass(label, c.Rank, []message{{c.Root, false, m.Src}})
		}
		return w.gatherAndCombine(label, c, m.Src, m.Dst, nil)
	case dag.AllReduce:
		return w.allReduce(label, c, m)
	case dag.ReduceScatter:
		own := len(m.Dst)
		var sends []message
		for k := range n {
			if k != index {
				sends = append(sends, message{rank(k), false, m.Src[k*own : (k+1)*own]})
			}
		}
		return w.gatherAndCombine(label, c, m.Src[index*own:(index+1)*own], m.Dst, sends)
	case dag.AllGather:
		own := len(m.Src)
		copy(m.Dst[index*own:(index+1)*own], m.Src)
		var list []message
		for k := range n {
			if k != index {
				list = append(list, message{rank(k), false, m.Dst[index*own : (index+1)*own]}, message{rank(k), true, m.Dst[k*own : (k+1)*own]})
			}
		}
		return w.pass(label, c.Rank, list)
	case dag.AllToAll:
		part := len(m.Src) / n
		copy(m.Dst[index*part:(index+1)*part], m.Src[index*part:(index+1)*part])
		var list []message
		for k := range n {
			if k != index {
				list = append(list, message{rank(k), false, m.Src[k*part : (k+1)*part]}, message{rank(k), true, m.Dst[k*part : (k+1)*part]})
			}
		}
		return w.pass(label, c.Rank, list)
	}
	return fmt.Errorf("there is no communication %s", c.Verb)
}

// check refuses a communication whose memory does not fit it.
func (m *Memory) check(c *cudart.Communication) error {
	if c == nil {
		return errors.New("there is no communication to do")
	}
	if c.Verb == dag.Exchange {
		if len(m.Transfers) != len(c.Transfers) {
			return fmt.Errorf("an exchange of %d transfers with the memory of %d", len(c.Transfers), len(m.Transfers))
		}
		return nil
	}
	if problem := c.SizeProblem(int64(len(m.Src)), int64(len(m.Dst))); problem != "" {
		return errors.New(problem)
	}
	return nil
}

// gatherAndCombine receives a piece of own's size from every other rank of the group, while it sends what is given, and combines all of
// them with own, in the order of the ranks.
func (w *World) gatherAndCombine(label string, c *cudart.Communication, own, out []byte, sends []message) error {
	parts := make([][]byte, c.Group.Count)
	list := sends
	for k := range parts {
		if rank := c.Group.First + int32(k)*c.Group.Step; rank == c.Rank {
			parts[k] = own
		} else {
			parts[k] = make([]byte, len(own))
			list = append(list, message{rank, true, parts[k]})
		}
	}
	if err := w.pass(label, c.Rank, list); err != nil {
		return err
	}
	combine(c.Reduction, c.DType, out, parts)
	return nil
}

// allReduce combines one part of the elements on each rank and then passes the results around, so that every rank gets the same bits.
func (w *World) allReduce(label string, c *cudart.Communication, m Memory) error {
	n, size := int64(c.Group.Count), c.DType.Size()
	elements := int64(len(m.Src)) / size
	part := func(b []byte, k int64) []byte { return b[elements*k/n*size : elements*(k+1)/n*size] }
	index := int64(c.Group.Index(c.Rank))
	own := part(m.Dst, index)
	var sends, results []message
	for k := range n {
		if rank := c.Group.First + int32(k)*c.Group.Step; rank != c.Rank {
			sends = append(sends, message{rank, false, part(m.Src, k)})
			results = append(results, message{rank, false, own}, message{rank, true, part(m.Dst, k)})
		}
	}
	if err := w.gatherAndCombine(label, c, part(m.Src, index), own, sends); err != nil {
		return err
	}
	return w.pass(label, c.Rank, results)
}

// pass sends and receives messages, all at once. Those between two ranks go in the order of the list. Messages of this rank to itself are
// copied.
func (w *World) pass(label string, self int32, list []message) error {
	var selfSent, selfReceived [][]byte
	byRank := map[int32][2][][]byte{}
	for _, m := range list {
		way := 0
		if m.receive {
			way = 1
		}
		switch {
		case m.rank == self && m.receive:
			selfReceived = append(selfReceived, m.memory)
		case m.rank == self:
			selfSent = append(selfSent, m.memory)
		default:
			both := byRank[m.rank]
			both[way] = append(both[way], m.memory)
			byRank[m.rank] = both
		}
	}
	if len(selfSent) != len(selfReceived) {
		return fmt.Errorf("rank %d sends %d times to itself and receives %d times", self, len(selfSent), len(selfReceived))
	}
	for k := range selfSent {
		if len(selfSent[k]) != len(selfReceived[k]) {
			return fmt.Errorf("rank %d sends %d bytes to itself and receives %d", self, len(selfSent[k]), len(selfReceived[k]))
		}
		copy(selfReceived[k], selfSent[k])
	}
	if len(byRank) == 0 {
		return nil
	}
	if w == nil {
		return fmt.Errorf("there are no other ranks to communicate with")
	}
	open := map[int32]int{}
	for rank := range byRank {
		if rank < 0 || int(rank) >= len(w.peers) || w.peers[rank] == nil {
			return fmt.Errorf("there is no connection to rank %d", rank)
		}
		open[rank] = 2
	}
	w.begins(label, open)
	var all sync.WaitGroup
	for rank, both := range byRank {
		peer := w.peers[rank]
		all.Go(func() { w.complete(rank, peer.send(label, both[0])) })
		all.Go(func() { w.complete(rank, peer.receive(label, both[1])) })
	}
	all.Wait()
	w.ends()
	return w.Cause()
}

// complete notes that the messages to or from a rank are complete, or why they are not.
func (w *World) complete(rank int32, err error) {
	if err != nil {
		w.note(rank, err)
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.open[rank]--
}
