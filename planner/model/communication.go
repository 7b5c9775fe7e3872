// What communication between ranks costs: a latency, and the bytes that leave or reach a device over its link.

package model

import (
	"math/bits"

	"github.com/dagrun/dagrun/dag"
)

// An all-reduce of 4 KB between two H200s takes 6.7 us in a graph. Each doubling of the ranks adds a step.
const (
	communicationUS = 5.0
	stepUS          = 1.7
)

// communication estimates a communication from the bytes that one device sends or receives, whichever is more.
func (m *Machine) communication(g *dag.Graph, c *dag.Communication) float64 {
	ranks := c.Among.Members(max(g.Ranks, 1)).Count
	sent, received := 0.0, 0.0
	for _, t := range c.Transfers {
		switch {
		case t.Rank < 0 || t.Rank >= max(g.Ranks, 1) || t.Rank == g.Rank:
		case t.Receive:
			received += float64(t.Range.Bytes())
		default:
			sent += float64(t.Range.Bytes())
		}
	}
	if c.Verb == dag.Exchange {
		if sent+received == 0 {
			return m.KernelUS
		}
		return communicationUS + stepUS + max(sent, received)/m.PeerToPeer
	}
	if ranks == 1 {
		return m.CopyUS + float64(c.From.Bytes())/m.DeviceToDevice
	}
	bytes, others := float64(max(c.From.Bytes(), c.To.Bytes())), float64(ranks-1)/float64(ranks)
	for _, more := range c.More {
		bytes += float64(more.From.Bytes())
	}
	switch c.Verb {
	case dag.AllReduce:
		bytes *= 2 * others
	case dag.AllGather, dag.ReduceScatter, dag.AllToAll:
		bytes *= others
	}
	return communicationUS + stepUS*float64(bits.Len32(uint32(ranks-1))) + bytes/m.PeerToPeer
}
