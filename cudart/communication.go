// What can be wrong with a communication between ranks.

package cudart

import (
	"fmt"

	"github.com/dagrun/dagrun/dag"
)

// Problem says what is wrong with a communication, "" if nothing is.
func (c *Communication) Problem() string {
	if c == nil {
		return "there is no communication to do"
	}
	if c.Verb == dag.Exchange {
		return c.exchangeProblem()
	}
	for _, more := range c.More {
		if c.Verb != dag.AllReduce {
			return fmt.Sprintf("a bucket of %s; only all-reduces are bucketed", c.Verb)
		}
		if problem := c.SizeProblem(more.Bytes, more.Bytes); problem != "" {
			return problem
		}
	}
	return c.SizeProblem(c.SrcBytes, c.DstBytes)
}

// SizeProblem says what is wrong with a collective of so many bytes, "" if nothing is.
func (c *Communication) SizeProblem(src, dst int64) string {
	if c == nil {
		return "there is no communication to do"
	}
	n, size := int64(c.Group.Count), c.DType.Size()
	reduces := c.Reduction != dag.NoReduction
	fits := false
	switch c.Verb {
	case dag.Broadcast:
		fits = src == dst && c.Group.Index(c.Root) >= 0 && !reduces
	case dag.AllReduce:
		fits = src == dst && reduces
	case dag.Reduce:
		fits = src == dst && c.Group.Index(c.Root) >= 0 && reduces
	case dag.AllGather:
		fits = dst == src*n && !reduces
	case dag.ReduceScatter:
		fits = src == dst*n && reduces
	case dag.AllToAll:
		fits = src == dst && n > 0 && src%n == 0 && !reduces
	}
	if !fits || n < 1 || n > dag.MaxRanks || c.Group.Index(c.Rank) < 0 || size < 1 || src < 0 || src%size != 0 || dst%size != 0 {
		return fmt.Sprintf("%s of %d bytes to %d on rank %d of the group %v is not possible", c.Verb, src, dst, c.Rank, c.Group)
	}
	return ""
}

// exchangeProblem checks what a rank sends to itself: NCCL matches the first send with the first receive.
func (c *Communication) exchangeProblem() string {
	var own [2][]int64
	for _, t := range c.Transfers {
		if t.Bytes < 0 || t.Rank < 0 {
			return fmt.Sprintf("a transfer of %d bytes with rank %d", t.Bytes, t.Rank)
		}
		switch {
		case t.Rank != c.Rank:
		case t.Receive:
			own[1] = append(own[1], t.Bytes)
		default:
			own[0] = append(own[0], t.Bytes)
		}
	}
	if len(own[0]) != len(own[1]) {
		return fmt.Sprintf("rank %d sends %d times to itself and receives %d times", c.Rank, len(own[0]), len(own[1]))
	}
	for k := range own[0] {
		if own[0][k] != own[1][k] {
			return fmt.Sprintf("rank %d sends %d bytes to itself and receives %d", c.Rank, own[0][k], own[1][k])
		}
	}
	return ""
}

// OnlySelf reports whether a communication is an exchange of a rank with itself alone.
func (c *Communication) OnlySelf() bool {
	if c == nil || c.Verb != dag.Exchange {
		return false
	}
	for _, t := range c.Transfers {
		if t.Rank != c.Rank {
			return false
		}
	}
	return true
}
