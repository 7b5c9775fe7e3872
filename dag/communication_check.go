// What nodes that communicate access, and what can be wrong with them.

package dag

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/dagrun/dagrun/internal/words"
)

// communicationProblem says what is wrong with a communication, and what to do about it.
func (p *Pipeline) communicationProblem(c *Communication) (hint string, err error) {
	if c.Verb > Exchange || c.Reduction > Avg || !c.DType.known() {
		return "", fmt.Errorf("unknown communication: %s of %s, %s", c.Verb, c.DType, c.Reduction)
	}
	ranges := []Range{c.From, c.To}
	for _, more := range c.More {
		ranges = append(ranges, more.From, more.To)
	}
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
	if len(c.More) > 0 {
		return "", p.bucketProblem(c)
	}
	return p.collectiveProblem(c)
}

// bucketProblem checks each of several all-reduces, and that none touches what another one writes.
func (p *Pipeline) bucketProblem(c *Communication) error {
	if c.Verb != AllReduce {
		return fmt.Errorf("a bucket of %s; only all-reduces are bucketed", c.Verb)
	}
	pairs := c.pairs()
	for k := range pairs {
		one := *c
		one.From, one.To, one.More = pairs[k].From, pairs[k].To, nil
		if _, err := p.collectiveProblem(&one); err != nil {
			return err
		}
	}
	type touched struct {
		Range
		pair   int
		writes bool
	}
	var list []touched
	for k, pair := range pairs {
		list = append(list, touched{pair.To, k, true})
		if pair.From != pair.To {
			list = append(list, touched{pair.From, k, false})
		}
	}
	slices.SortFunc(list, func(a, b touched) int {
		return cmp.Or(cmp.Compare(a.Buffer, b.Buffer), cmp.Compare(a.Lo, b.Lo), cmp.Compare(a.pair, b.pair))
	})
	for k := range list {
		for _, other := range list[k+1:] {
			if other.Buffer != list[k].Buffer || other.Lo >= list[k].Hi {
				break
			}
			if other.pair != list[k].pair && (other.writes || list[k].writes) {
				return fmt.Errorf("%s and %s overlap in one bucket", p.rangeText(list[k].Range), p.rangeText(other.Range))
			}
		}
	}
	return nil
}

func (p *Pipeline) exchangeProblem(c *Communication) error {
	if !c.Among.All() {
		return errors.New("sends and receives name ranks of the whole pipeline and take no among")
	}
	for i, t := range c.Transfers {
		for _, u := range c.Transfers[:i] {
			overlap := t.Range.Buffer == u.Range.Buffer && t.Range.Lo < u.Range.Hi && u.Range.Lo < t.Range.Hi
			if overlap && (t.Receive || u.Receive) && p.Meets(t) && p.Meets(u) {
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
		return "", fmt.Errorf("allgather: %s has %s, and %s with %s each need %s in %s", name(c.To), elements(to), words.Count(count, "rank", "ranks"),
			elements(from), elements(from*count), name(c.To))
	case c.Verb == ReduceScatter && from != to*count:
		return "", fmt.Errorf("reducescatter: %s has %s, and %s with %s each need %s in %s", name(c.From), elements(from),
			words.Count(count, "rank", "ranks"), elements(to), elements(to*count), name(c.From))
	case c.Verb == AllToAll && (from != to || from/c.DType.Size()%count != 0):
		return "", fmt.Errorf("alltoall: %s has %s and %s has %s; both need the same number, a multiple of %d", name(c.From), elements(from), name(c.To),
			elements(to), count)
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

// Communicates reports whether the node communicates with other ranks, or is a loop or branch that has such a node in one of its bodies.
func (n *Node) Communicates() bool {
	if n == nil || n.Control == nil {
		return n != nil && n.Kind == Communicate
	}
	for _, body := range n.Control.declared {
		if body.communicates() {
			return true
		}
	}
	return slices.ContainsFunc(n.Control.Bodies, func(body *Graph) bool { return body != nil && body.Pipeline.communicates() })
}

func (p *Pipeline) communicates() bool {
	return p != nil && slices.ContainsFunc(p.Nodes, func(n Node) bool { return n.Communicates() })
}

// CheckRank returns what is wrong with a rank and its number among those of one machine, of so many ranks that run together. 0 ranks is one.
func CheckRank(rank, local, ranks int) error {
	all := max(ranks, 1)
	switch {
	case ranks < 0 || ranks > MaxRanks:
		return fmt.Errorf("%d ranks: there can be 1 to %d", ranks, MaxRanks)
	case rank < 0 || rank >= all || local < 0 || local >= all:
		return fmt.Errorf("rank %d (%d on its machine) is not one of %d", rank, local, all)
	}
	return nil
}

// Communicate makes a node communicate with other ranks. The type of the elements follows from the buffers. With an error comes what to do about it, or "".
func (d *Draft) Communicate(node *Node, c *Communication) (accesses []Access, hint string, err error) {
	first := c.From
	if c.Verb == Exchange && len(c.Transfers) > 0 {
		first = c.Transfers[0].Range
	}
	c.DType = d.Buffers[first.Buffer].DType
	if hint, err := d.communicationProblem(c); err != nil {
		return nil, hint, err
	}
	node.Device, node.Communication, node.Work = d.Buffers[first.Buffer].Device, c, d.communicationWork(c)
	return d.communicationAccesses(c), "", nil
}

// OrderCommunication makes all communication of this rank happen in the order of declaration. It comes once all nodes are declared.
func (d *Draft) OrderCommunication() { d.chain() }

// chain orders all communication of this rank, in the order of declaration, by adding to After. All ranks must communicate in one order,
// and their devices run one communication at a time. A loop or branch that communicates is in that order as a whole, and what its bodies
// communicate has an order of its own.
func (p *Pipeline) chain() {
	last := NodeID(-1)
	for i := range p.Nodes {
		n := &p.Nodes[i]
		if n.Control != nil {
			for _, body := range n.Control.declared {
				body.chain()
			}
		}
		if !n.Communicates() {
			continue
		}
		if last >= 0 && !slices.Contains(n.After, last) {
			n.After = append(n.After, last)
		}
		last = NodeID(i)
	}
}

// Meets reports whether a transfer has another side.
func (p *Pipeline) Meets(t Transfer) bool { return p != nil && t.Rank >= 0 && t.Rank < p.ranks() }

// ranks is how many ranks there are, at least one.
func (p *Pipeline) ranks() int32 { return max(p.Ranks, 1) }

// communicationAccesses returns what a communication reads and writes on this rank.
func (p *Pipeline) communicationAccesses(c *Communication) []Access {
	switch {
	case c.Verb == Exchange:
		var list []Access
		for _, t := range c.Transfers {
			switch {
			case !p.Meets(t):
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
	}
	var list []Access
	for _, pair := range c.pairs() {
		if pair.From == pair.To {
			list = append(list, pair.From.InOut())
		} else {
			list = append(list, pair.From.In(), pair.To.Out())
		}
	}
	return list
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
