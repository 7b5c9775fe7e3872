// Communication between ranks: what such a node does, what it accesses, and what can be wrong with it.

package dag

import (
	"errors"
	"fmt"
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

// Communication is what a node does together with other ranks. From and To are the same range where a collective works in place.
type Communication struct {
	Verb      Verb
	Reduction Reduction  // AllReduce, Reduce, ReduceScatter
	DType     DType      // of the elements
	Root      int32      // Reduce, Broadcast: a rank of the group
	Among     Among      // not for Exchange
	From, To  Range      // not for Exchange
	Transfers []Transfer // Exchange
	Single    bool       // an Exchange of one transfer that was written as a send or a receive
}

// Meets reports whether a transfer has another side.
func (p *Pipeline) meets(t Transfer) bool { return t.Rank >= 0 && t.Rank < p.ranks() }

// ranks is how many ranks there are, at least one.
func (p *Pipeline) ranks() int32 { return max(p.Ranks, 1) }

// communicationAccesses returns what a communication reads and writes on this rank.
func (p *Pipeline) communicationAccesses(c *Communication) []Access {
	switch {
	case c.Verb == Exchange:
		var list []Access
		for _, t := range c.Transfers {
			switch {
			case !p.meets(t):
			case t.Receive:
				list = append(list, t.Range.Out())
			default:
				list = append(list, t.Range.In())
			}
		}
		return list
	case c.Verb == Broadcast && c.Root == p.Rank:
		return []Access{c.From.In()}
	case c.Verb == Broadcast:
		return []Access{c.To.Out()}
	case c.Verb == Reduce && c.Root != p.Rank:
		return []Access{c.From.In()}
	case c.From == c.To:
		return []Access{c.From.InOut()}
	}
	return []Access{c.From.In(), c.To.Out()}
}

// communicationWork is what a communication moves through this rank's memory.
func (p *Pipeline) communicationWork(c *Communication) Work {
	w := Work{}
	for _, a := range p.communicationAccesses(c) {
		w.Bytes += a.Bytes()
		if a.Mode == ReadWrite {
			w.Bytes += a.Bytes()
		}
	}
	return w
}

// communicationProblem says what is wrong with a communication, and what to do about it.
func (p *Pipeline) communicationProblem(c *Communication) (hint string, err error) {
	if c.Verb > Exchange || c.Reduction > Avg || !c.DType.known() {
		return "", fmt.Errorf("unknown communication: %s of %s, %s", c.Verb, c.DType, c.Reduction)
	}
	ranges := []Range{c.From, c.To}
	if c.Verb == Exchange {
		ranges = nil
		for _, t := range c.Transfers {
			ranges = append(ranges, t.Range)
		}
		if len(ranges) == 0 {
			return "", errors.New("an exchange needs at least one send or recv")
		}
	}
	for _, r := range ranges {
		if err := p.rangeProblem(r); err != nil {
			return "", err
		}
		b := &p.Buffers[r.Buffer]
		switch {
		case b.Place == Host:
			return "copy it to a device buffer first", fmt.Errorf("%q is in host memory; ranks exchange device memory", b.Name)
		case r.Tile():
			return "copy the tile to a buffer of its own", fmt.Errorf("ranks exchange elements that follow each other, %s is a tile", p.rangeText(r))
		case b.Device != p.Buffers[ranges[0].Buffer].Device:
			return "one rank has one device", fmt.Errorf("%q and %q are on two devices", p.Buffers[ranges[0].Buffer].Name, b.Name)
		case c.Verb != Exchange && b.DType != c.DType:
			return "", fmt.Errorf("%q is of type %s and %q of type %s", p.Buffers[ranges[0].Buffer].Name, p.Buffers[ranges[0].Buffer].DType, b.Name, b.DType)
		}
	}
	if c.Verb == Exchange {
		return "", p.exchangeProblem(c)
	}
	return p.collectiveProblem(c)
}

func (p *Pipeline) exchangeProblem(c *Communication) error {
	if !c.Among.All() {
		return errors.New("sends and receives name ranks of the whole pipeline and take no among")
	}
	for i, t := range c.Transfers {
		for _, u := range c.Transfers[:i] {
			overlap := t.Range.Buffer == u.Range.Buffer && t.Range.Lo < u.Range.Hi && u.Range.Lo < t.Range.Hi
			if overlap && (t.Receive || u.Receive) && p.meets(t) && p.meets(u) {
				return fmt.Errorf("%s and %s overlap in one exchange, and what is received into them would be mixed up", p.rangeText(u.Range), p.rangeText(t.Range))
			}
		}
	}
	return nil
}

func (p *Pipeline) collectiveProblem(c *Communication) (hint string, err error) {
	ranks := p.ranks()
	group := c.Among.Members(ranks)
	last := int64(group.First) + int64(group.Count-1)*int64(group.Step)
	switch {
	case group.Count < 1 || group.Step < 1 || group.First < 0 || last >= int64(ranks):
		return "write among: [first, count, step]", fmt.Errorf("among [%d, %d, %d] is no group of ranks 0 to %d", group.First, group.Count, group.Step, ranks-1)
	case group.Index(p.Rank) < 0:
		return "", fmt.Errorf("rank %d is not in among [%d, %d, %d]", p.Rank, group.First, group.Count, group.Step)
	}
	reduces := c.Verb == AllReduce || c.Verb == Reduce || c.Verb == ReduceScatter
	switch {
	case reduces != (c.Reduction != NoReduction):
		return "only allreduce, reduce and reducescatter have an op", fmt.Errorf("%s with op %s", c.Verb, c.Reduction)
	case reduces && (!c.DType.isNumber() || slices.Contains([]DType{Bool, I16, U16}, c.DType)):
		return "it combines f16, bf16, f32, f64, i8, i32, i64, u8, u32 and u64", fmt.Errorf("%s cannot combine elements of type %s", c.Verb, c.DType)
	case c.Reduction == Avg && !c.DType.Float():
		return "use op: sum", fmt.Errorf("op avg needs a floating-point type, not %s", c.DType)
	case (c.Verb == Broadcast || c.Verb == Reduce) && group.Index(c.Root) < 0:
		return "", fmt.Errorf("root %d is not one of the ranks that take part", c.Root)
	case c.Verb == Broadcast && c.From != c.To:
		return "", errors.New("a broadcast works in place: write inout")
	}
	from, to, count := c.From.Bytes(), c.To.Bytes(), int64(group.Count)
	name := func(r Range) string { return p.rangeText(r) }
	elements := func(bytes int64) string { return words.Count(bytes/c.DType.Size(), "element", "elements") }
	switch {
	case c.Verb == AllGather && to != from*count:
		return "", fmt.Errorf("allgather: %s has %s, and %s with %s each need %s in %s", name(c.To), elements(to), words.Count(count, "rank", "ranks"), elements(from), elements(from*count), name(c.To))
	case c.Verb == ReduceScatter && from != to*count:
		return "", fmt.Errorf("reducescatter: %s has %s, and %s with %s each need %s in %s", name(c.From), elements(from), words.Count(count, "rank", "ranks"), elements(to), elements(to*count), name(c.From))
	case c.Verb == AllToAll && (from != to || from/c.DType.Size()%count != 0):
		return "", fmt.Errorf("alltoall: %s has %s and %s has %s; both need the same number, a multiple of %d", name(c.From), elements(from), name(c.To), elements(to), count)
	case slices.Contains([]Verb{AllReduce, Reduce}, c.Verb) && from != to:
		return "", fmt.Errorf("%s: %s has %s and %s has %s", c.Verb, name(c.From), elements(from), name(c.To), elements(to))
	}
	if c.From.Buffer != c.To.Buffer || c.From.Lo >= c.To.Hi || c.To.Lo >= c.From.Hi || c.From == c.To && c.Verb != AllToAll {
		return "", nil
	}
	part := int64(group.Index(p.Rank))
	if c.Verb == AllGather && c.From.Lo == c.To.Lo+part*from || c.Verb == ReduceScatter && c.To.Lo == c.From.Lo+part*to {
		return "", nil // in place, as NCCL allows it
	}
	return "use two buffers", fmt.Errorf("%s: %s and %s overlap", c.Verb, name(c.From), name(c.To))
}

// chain orders all communication of this rank, in the order of declaration, by adding to After. All ranks must communicate in one order,
// and their devices run one communication at a time.
func (p *Pipeline) chain() {
	last := NodeID(-1)
	for i := range p.Nodes {
		n := &p.Nodes[i]
		if n.Kind != Communicate {
			continue
		}
		if last >= 0 && !slices.Contains(n.After, last) {
			n.After = append(n.After, last)
		}
		last = NodeID(i)
	}
}
