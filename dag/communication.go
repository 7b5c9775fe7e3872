// Communication between ranks: what such a node says. communication_check.go has what it accesses.

package dag

import (
	"slices"

	"github.com/dagrun/dagrun/internal/words"
)

// MaxRanks is how many ranks a pipeline may have.
const MaxRanks = 1 << 16

// Verb says what a communication does.
type Verb uint8

const (
	AllReduce     Verb = iota // every rank gets the elements of all ranks, combined
	Reduce                    // only the root gets them
	Broadcast                 // every rank gets what the root has
	AllGather                 // every rank gets the elements of all ranks, one after the other
	ReduceScatter             // every rank gets its part of the combined elements
	AllToAll                  // every rank gets one part from each rank
	Exchange                  // sends and receives that happen together
)

var verbNames = []string{"allreduce", "reduce", "broadcast", "allgather", "reducescatter", "alltoall", "exchange"}

// String returns the word that a pipeline file uses.
func (v Verb) String() string { return words.Name(v, "Verb", verbNames) }

// Reduction says how elements of several ranks are combined.
type Reduction uint8

const (
	NoReduction Reduction = iota
	Sum
	Prod
	Min
	Max
	Avg
)

var reductionNames = []string{"none", "sum", "prod", "min", "max", "avg"}

// String returns the word that a pipeline file uses.
func (r Reduction) String() string { return words.Name(r, "Reduction", reductionNames) }

// Among is a group of ranks: First, First+Step, First+2*Step and so on, Count of them. The zero value is all ranks.
type Among struct{ First, Count, Step int32 }

// All reports whether the group is all ranks.
func (a Among) All() bool { return a == Among{} }

// Members returns the group of a communication with Among, where there are so many ranks: {0, ranks, 1} for all of them.
func (a Among) Members(ranks int32) Among {
	if a.All() {
		return Among{0, ranks, 1}
	}
	return a
}

// Index returns the place of a rank in the group, or -1. Of the zero Among ask Members.
func (a Among) Index(rank int32) int32 {
	if a.Step < 1 || rank < a.First || (rank-a.First)%a.Step != 0 || (rank-a.First)/a.Step >= a.Count {
		return -1
	}
	return (rank - a.First) / a.Step
}

// Transfer is a send or a receive of an Exchange.
type Transfer struct {
	Receive bool
	Rank    int32 // the rank that it sends to or receives from; outside of 0..ranks-1 it means nobody, and nothing happens
	Range   Range
}

// Pair is an all-reduce of a bucket besides its first. From and To are the same range where it works in place.
type Pair struct{ From, To Range }

// Communication is what a node does together with other ranks. From and To are the same range where a collective works in place.
type Communication struct {
	Verb      Verb
	Reduction Reduction  // AllReduce, Reduce, ReduceScatter
	DType     DType      // of the elements
	Root      int32      // Reduce, Broadcast: a rank of the group
	Among     Among      // not for Exchange
	From, To  Range      // not for Exchange
	More      []Pair     // AllReduce: what else the node combines, each for itself (see Bucket)
	Transfers []Transfer // Exchange
	Single    bool       // an Exchange of one transfer that was written as a send or a receive
}

// pairs lists what an all-reduce combines.
func (c *Communication) pairs() []Pair {
	return append([]Pair{{c.From, c.To}}, c.More...)
}

// Partners lists the ranks that a communication involves, in ascending order, out of so many (at most MaxRanks). A group that was filled in by
// hand and has no such ranks has no partners.
func (c *Communication) Partners(ranks int32) []int32 {
	if c == nil {
		return nil
	}
	var list []int32
	if c.Verb != Exchange {
		group := c.Among.Members(ranks)
		if group.First < 0 || group.Step < 1 {
			return nil
		}
		last := min(int64(ranks), MaxRanks, int64(group.First)+int64(group.Count)*int64(group.Step)) - 1
		for rank := int64(group.First); rank <= last; rank += int64(group.Step) {
			list = append(list, int32(rank))
		}
		return list
	}
	for _, t := range c.Transfers {
		if t.Rank >= 0 && t.Rank < ranks && !slices.Contains(list, t.Rank) {
			list = append(list, t.Rank)
		}
	}
	slices.Sort(list)
	return list
}
