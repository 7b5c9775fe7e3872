// Lowering of communication: what a node does together with other ranks, with addresses in an instance's memory.

package runtime

import (
	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/dag"
)

func (p *Program) communicateCommand(in *instance, n *dag.Node, c *cudart.Command) {
	from := n.Communication
	if p.graph.Ranks <= 1 && p.aloneCommand(in, from, c) {
		return
	}
	to := &cudart.Communication{Verb: from.Verb, Reduction: from.Reduction, DType: from.DType, Root: from.Root,
		Group: from.Among.Members(max(p.graph.Ranks, 1)), Rank: p.graph.Rank}
	if from.Verb != dag.Exchange {
		to.Src, to.SrcBytes = in.at(from.From), from.From.Bytes()
		to.Dst, to.DstBytes = in.at(from.To), from.To.Bytes()
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
