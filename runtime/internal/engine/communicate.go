// Communication with other ranks: its commands, with addresses in an instance's memory, and how far the device is with it.

package engine

import (
	"context"
	"slices"
	"strconv"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/dag"
)

func (p *Program) communicateCommand(in *instance, n *dag.Node, c *cudart.Command) {
	from := n.Communication
	if p.graph.Ranks <= 1 {
		if from = withItself(from); p.aloneCommand(in, from, c) {
			return
		}
	}
	to := &cudart.Communication{Verb: from.Verb, Reduction: from.Reduction, DType: from.DType, Root: from.Root,
		Group: from.Among.Members(max(p.graph.Ranks, 1)), Rank: p.graph.Rank}
	if from.Verb != dag.Exchange {
		to.Src, to.SrcBytes = in.at(from.From), from.From.Bytes()
		to.Dst, to.DstBytes = in.at(from.To), from.To.Bytes()
	}
	for _, more := range from.More {
		to.More = append(to.More, cudart.Pair{Src: in.at(more.From), Dst: in.at(more.To), Bytes: more.From.Bytes()})
	}
	for _, t := range from.Transfers {
		if t.Rank >= 0 && t.Rank < max(p.graph.Ranks, 1) {
			to.Transfers = append(to.Transfers, cudart.Transfer{Receive: t.Receive, Rank: t.Rank, Ptr: in.at(t.Range), Bytes: t.Range.Bytes(),
				Device: deviceOf(&p.graph.Buffers[t.Range.Buffer])})
		}
	}
	c.Kind, c.Communication = cudart.Communicate, to
	if from.Verb == dag.Exchange && len(to.Transfers) == 0 {
		c.Kind, c.Communication = cudart.Empty, nil
	}
}

// withItself is what the only rank does instead of combining what it has with what others have: an exchange with itself for a bucket.
func withItself(c *dag.Communication) *dag.Communication {
	if len(c.More) == 0 {
		return c
	}
	exchange := &dag.Communication{Verb: dag.Exchange, DType: c.DType}
	for _, pair := range append([]dag.Pair{{From: c.From, To: c.To}}, c.More...) {
		if pair.From != pair.To {
			exchange.Transfers = append(exchange.Transfers, dag.Transfer{Range: pair.From}, dag.Transfer{Receive: true, Range: pair.To})
		}
	}
	return exchange
}

// aloneCommand makes the command of the only rank, which is a copy or nothing, and reports whether one is enough.
func (p *Program) aloneCommand(in *instance, from *dag.Communication, c *cudart.Command) bool {
	src, dst := from.From, from.To
	if from.Verb == dag.Exchange {
		var own [2][]dag.Range
		for _, t := range from.Transfers {
			switch {
			case t.Rank != 0:
			case t.Receive:
				own[1] = append(own[1], t.Range)
			default:
				own[0] = append(own[0], t.Range)
			}
		}
		if len(own[0]) != 1 || len(own[1]) != 1 || own[0][0].Bytes() != own[1][0].Bytes() {
			return false
		}
		src, dst = own[0][0], own[1][0]
	}
	if src == dst {
		c.Kind = cudart.Empty
		return true
	}
	p.copyRange(in, dst, src, c)
	return true
}

// sharing is a platform on which ranks can reach each other's memory.
type sharing interface {
	Share(ctx context.Context, memory cudart.Ptr, bytes int64) error
}

// share lets other ranks reach the memory of device buffers, so that communication may be faster. All ranks of a pipeline come here.
func (p *Program) share(ctx context.Context, in *instance) error {
	s, ok := p.platform.(sharing)
	if !ok || p.graph.Ranks <= 1 {
		return nil
	}
	var memory cudart.Ptr
	var bytes int64
	if len(in.memory.arenas) > 0 {
		memory, bytes = in.memory.arenas[0], in.memory.room[0]
	}
	return s.Share(ctx, memory, bytes)
}

// followCommunication makes the word that the device writes before and after each communication.
func (p *Program) followCommunication(in *instance) (err error) {
	if !p.options.FollowCommunication || p.graph.Ranks <= 1 {
		return nil
	}
	if in.communicated, err = p.platform.AllocHost(4, false); err != nil {
		return err
	}
	in.memory.owned = append(in.memory.owned, in.communicated)
	p.followed = appendFollowed(nil, p.graph, false)
	at := map[*dag.Node]int{}
	for k := range p.followed {
		at[p.followed[k].node] = k
	}
	for _, q := range p.family() {
		q.followedAt = at
	}
	clear(p.platform.HostBytes(in.communicated, 4))
	return nil
}

// communicationMarks returns what the device writes before and after a node, if that communicates or is a loop or branch whose condition is
// being communicated, and communication is followed.
func (p *Program) communicationMarks(in *instance, n *dag.Node, on cudart.Stream) (before, after []cudart.Command) {
	k, ok := p.followedAt[n]
	if in.communicated == 0 || !ok {
		return nil, nil
	}
	mark := func(value int) []cudart.Command {
		return []cudart.Command{{Kind: cudart.SetMemory, Stream: on, Label: n.Name, Node: -1, Dst: in.communicated, DstDevice: -1, Bytes: 4,
			Pattern: uint32(value), Width: 4}}
	}
	return mark(2*k + 1), mark(2*k + 2)
}

// appendFollowed lists the communication of a graph in its order, that of bodies before the condition of the loop or branch around them.
func appendFollowed(list []followed, g *dag.Graph, body bool) []followed {
	for i := range g.Nodes {
		n := &g.Nodes[i]
		switch {
		case !n.Communicates():
			continue
		case n.Control == nil:
			list = append(list, followed{n, body})
			continue
		}
		for _, inner := range n.Control.Bodies {
			list = appendFollowed(list, inner, true)
		}
		if n.Control.Condition != nil {
			list = append(list, followed{n, true})
		}
	}
	return list
}

// Communicating returns the node that communicates with other ranks right now, and the one that did so before, nil for none and where the passes of
// a loop decide.
func (p *Program) Communicating() (now, last *dag.Node) {
	if p == nil {
		return nil, nil
	}
	in := p.latest.Load()
	if in == nil || in.communicated == 0 {
		return nil, nil
	}
	word := p.platform.HostBytes(in.communicated, 4)
	if word == nil { // the program has been closed
		return nil, nil
	}
	// The plan submits communications in the order of the graph, because each waits for the one before it.
	at, n := int(dag.U32.Load(word, 0)), len(p.followed)
	if at == 0 || at > 2*n {
		return nil, nil
	}
	k := (at - 1) / 2
	of, before := &p.followed[k], &p.followed[(k+n-1)%n]
	switch {
	case at%2 == 0:
		return nil, of.node
	case of.body || before.body || k == 0 && p.replays.Load() <= 1:
		return of.node, nil
	}
	return of.node, before.node
}

// communicates reports whether there are nodes that communicate with other ranks.
func (p *Program) communicates() bool {
	return p.graph.Ranks > 1 && slices.ContainsFunc(p.graph.Nodes, func(n dag.Node) bool { return n.Communicates() })
}

// agreed returns the number that rank 0 passes to it.
func (p *Program) agreed(ctx context.Context, own int) (int, error) {
	if p.options.Agree == nil || p.graph.Ranks <= 1 {
		return own, nil
	}
	text, err := p.options.Agree(ctx, strconv.Itoa(own))
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(text)
}
