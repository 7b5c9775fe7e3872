// Communication with other ranks in lists: its checks, and its rows, which call NCCL.

package driver

import (
	"fmt"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/cudart/driver/internal/nccl"
	"github.com/dagrun/dagrun/dag"
)

// ncclTypes are the numbers that NCCL gives to the types of elements that it can combine.
var ncclTypes = map[dag.DType]uintptr{dag.I8: 0, dag.U8: 1, dag.I32: 2, dag.U32: 3, dag.I64: 4, dag.U64: 5, dag.F16: 6, dag.F32: 7, dag.F64: 8, dag.BF16: 9}

// ncclBytes is the type of elements that are only moved.
const ncclBytes = 1

var ncclReductions = map[dag.Reduction]uintptr{dag.Sum: 0, dag.Prod: 1, dag.Max: 2, dag.Min: 3, dag.Avg: 4}

// ncclCall is the number of a function of NCCL among those of the driver, in a submitter's calls.
func ncclCall(f nccl.Function) function { return functionCount + 1 + function(f) }

// errNotANode is what adding communication to a graph returns where the graph is not captured: built node by node, or one with library calls.
var errNotANode = fmt.Errorf("communication with other ranks cannot be a node of a graph that is built, as those with library calls are; use --graph=off: %w",
	cudart.ErrUnsupported)

// communicationProblem says what is wrong with a communication, "" if nothing is. It is on a stream unless a graph is built node by node.
func (p *Platform) communicationProblem(c *cudart.Communication, s *stream) string {
	if problem := c.Problem(); problem != "" {
		return problem
	}
	switch {
	case c.OnlySelf():
		return ""
	case p.comms == nil:
		return "there is no connection to other ranks"
	case s == nil:
		return "NCCL's work cannot be added to a graph node by node; use --graph=on"
	case s.d != p.comms.d:
		return fmt.Sprintf("it is on device %d, and the ranks are connected from device %d", s.d.number, p.comms.d.number)
	}
	if _, ok := p.comms.group[p.comms.groupOf(c)]; !ok {
		return fmt.Sprintf("the ranks %d, %d and so on, %d of them, were not connected as a group", c.Group.First, c.Group.First+c.Group.Step, c.Group.Count)
	}
	if c.Rank != int32(p.comms.world.Place().Rank) {
		return fmt.Sprintf("it is of rank %d, and this is rank %d", c.Rank, p.comms.world.Place().Rank)
	}
	return ""
}

// groupOf is the group whose communicator a communication uses.
func (c *communicators) groupOf(of *cudart.Communication) dag.Among {
	if of.Verb == dag.Exchange {
		return dag.Among{First: 0, Count: int32(c.world.Place().Ranks), Step: 1}
	}
	return of.Group
}

// communicate appends the rows of a communication, which has been checked.
func (p *Platform) communicate(l *submitter, memory *arena, owner int32, c *checked) error {
	t := c.Communication
	if t.OnlySelf() {
		p.exchangeWithSelf(l, owner, c)
		return nil
	}
	if p.comms.direct.fits(t) {
		return p.comms.direct.add(l, memory, owner, c)
	}
	lib, stream := p.comms.lib, c.stream.handle
	comm := uintptr(p.comms.group[p.comms.groupOf(t)])
	add := func(f nccl.Function, args ...uintptr) {
		r := row{fn: lib.Address(f)}
		copy(r.arg[:], args)
		l.rows, l.calls, l.owner = append(l.rows, r), append(l.calls, ncclCall(f)), append(l.owner, owner)
	}
	src, dst := uintptr(t.Src), uintptr(t.Dst)
	root := uintptr(max(0, t.Group.Index(t.Root)))
	dtype, reduction := ncclTypes[t.DType], ncclReductions[t.Reduction]
	elements := func(bytes int64) uintptr { return uintptr(bytes / t.DType.Size()) }
	switch t.Verb {
	case dag.AllReduce:
		if len(t.More) > 0 {
			add(nccl.GroupStart)
		}
		add(nccl.AllReduce, src, dst, elements(t.SrcBytes), dtype, reduction, comm, stream)
		for _, more := range t.More {
			add(nccl.AllReduce, uintptr(more.Src), uintptr(more.Dst), elements(more.Bytes), dtype, reduction, comm, stream)
		}
		if len(t.More) > 0 {
			add(nccl.GroupEnd)
		}
	case dag.Reduce:
		add(nccl.Reduce, src, dst, elements(t.SrcBytes), dtype, reduction, root, comm, stream)
	case dag.ReduceScatter:
		add(nccl.ReduceScatter, src, dst, elements(t.DstBytes), dtype, reduction, comm, stream)
	case dag.Broadcast:
		add(nccl.Broadcast, src, dst, uintptr(t.SrcBytes), ncclBytes, root, comm, stream)
	case dag.AllGather:
		add(nccl.AllGather, src, dst, uintptr(t.SrcBytes), ncclBytes, comm, stream)
	case dag.AllToAll:
		part := uintptr(t.SrcBytes) / uintptr(t.Group.Count)
		add(nccl.GroupStart)
		for k := range uintptr(t.Group.Count) {
			add(nccl.Send, src+k*part, part, ncclBytes, k, comm, stream)
			add(nccl.Recv, dst+k*part, part, ncclBytes, k, comm, stream)
		}
		add(nccl.GroupEnd)
	case dag.Exchange:
		add(nccl.GroupStart)
		for _, one := range t.Transfers {
			f := nccl.Send
			if one.Receive {
				f = nccl.Recv
			}
			add(f, uintptr(one.Ptr), uintptr(one.Bytes), ncclBytes, uintptr(one.Rank), comm, stream)
		}
		add(nccl.GroupEnd)
	}
	return nil
}

// exchangeWithSelf appends copies for an exchange of a rank with itself: the k-th send goes to the k-th receive.
func (p *Platform) exchangeWithSelf(l *submitter, owner int32, c *checked) {
	var sent, received []cudart.Transfer
	for _, t := range c.Communication.Transfers {
		if t.Receive {
			received = append(received, t)
		} else {
			sent = append(sent, t)
		}
	}
	for k := range sent {
		if sent[k].Bytes > 0 {
			l.add(p, cuMemcpyDtoDAsync, owner, uintptr(received[k].Ptr), uintptr(sent[k].Ptr), uintptr(sent[k].Bytes), c.stream.handle)
		}
	}
}

// communicationFailure is the error of a row that called NCCL. If a rank has failed, that is the cause.
func (p *Platform) communicationFailure(c *checked, index int32, f function, code uint64) error {
	failure := p.comms.lib.Failure(nccl.Function(f-functionCount-1), code)
	return &cudart.Error{Call: failure.Function.String(), Name: failure.CodeName(), Code: int(code), Text: failure.Text, Detail: failure.Last,
		Device: p.comms.d.number,
		Label:  c.Label, Node: c.Node, Index: int(index),
		Err: p.comms.world.Cause()}
}
