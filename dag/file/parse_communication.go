// Communication nodes of a pipeline file: collectives, sends and receives, and the names that expressions have for ranks.

package file

import (
	"fmt"
	"math"
	"slices"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/internal/words"
	"gopkg.in/yaml.v3"
)

// collectiveKeys are the keys of each collective. All but among must be given, where inout stands for from and to.
var collectiveKeys = map[dag.Verb]*keySet{
	dag.AllReduce:     {"allreduce", []string{"inout", "from", "to", "op", "among"}},
	dag.Reduce:        {"reduce", []string{"inout", "from", "to", "op", "root", "among"}},
	dag.Broadcast:     {"broadcast", []string{"inout", "root", "among"}},
	dag.AllGather:     {"allgather", []string{"from", "to", "among"}},
	dag.ReduceScatter: {"reducescatter", []string{"from", "to", "op", "among"}},
	dag.AllToAll:      {"alltoall", []string{"from", "to", "among"}},
}

var collectiveHints = map[dag.Verb]string{
	dag.AllReduce: "write {inout: x, op: sum}", dag.Reduce: "write {from: x, to: y, op: sum, root: 0}", dag.Broadcast: "write {inout: x, root: 0}",
	dag.AllGather: "write {from: part, to: whole}", dag.ReduceScatter: "write {from: whole, to: part, op: sum}", dag.AllToAll: "write {from: x, to: y}",
}

// reductions are the words of op.
var reductions = wordsFrom(dag.Sum, dag.Avg)

// wordsFrom lists the words of an enumeration from one value to another.
func wordsFrom[T interface {
	~uint8
	fmt.Stringer
}](first, last T) []string {
	var list []string
	for v := first; v <= last; v++ {
		list = append(list, v.String())
	}
	return list
}

// ranks is how many ranks run the file.
func ranks(p *dag.Draft) int32 { return max(p.Ranks, 1) }

// communication reads a communication node. takesPart is false for a collective among other ranks.
func (p *parser) communication(node *dag.Node, item *yaml.Node, f *[nodeKeyCount]field, action int) (accesses []dag.Access, takesPart, ok bool) {
	var c *dag.Communication
	at := f[action].value
	switch action {
	case nodeSend, nodeReceive:
		t, fine := p.transfer(item, f[action].value, f[nodeRank].value, action == nodeReceive)
		c, ok = &dag.Communication{Verb: dag.Exchange, Transfers: []dag.Transfer{t}, Single: true}, fine
	case nodeExchange:
		c, ok = p.exchange(at)
	default:
		c, ok = p.collective(dag.Verb(action-nodeAllReduce), at)
	}
	if !ok {
		return nil, true, false
	}
	group := c.Among.Members(ranks(p.pipeline))
	if last := int64(group.First) + int64(group.Count-1)*int64(group.Step); group.Index(p.pipeline.Rank) < 0 && group.Count > 0 && group.Step > 0 &&
		group.First >= 0 && last < int64(ranks(p.pipeline)) {
		return nil, false, true
	}
	wanted := node.Device
	accesses, hint, err := p.pipeline.Communicate(node, c)
	if err != nil {
		p.mistake(position(at), hint, "%s%s", err, p.repetition())
		return nil, true, false
	}
	if wanted >= 0 && wanted != node.Device {
		first := c.From
		if c.Verb == dag.Exchange {
			first = c.Transfers[0].Range
		}
		p.mistake(position(f[nodeDevice].value), "", "the %s is to run on device %d, but %q is on device %d", nodeKeys.keys[action], wanted,
			p.pipeline.Buffers[first.Buffer].Name, node.Device)
		return nil, true, false
	}
	if f[nodePriority].value == nil && len(p.levels.open) == 0 { // in a body it has the priority of the node around it
		node.Priority = dag.High
	}
	return accesses, true, true
}

func (p *parser) collective(verb dag.Verb, n *yaml.Node) (*dag.Communication, bool) {
	var f [6]field
	keys := collectiveKeys[verb]
	if !p.fields(n, keys, f[:]) || p.unknownKeys {
		return nil, false
	}
	value := func(key string) *yaml.Node {
		if k := keys.find(key); k >= 0 {
			return f[k].value
		}
		return nil
	}
	hint := collectiveHints[verb]
	inout := value("inout")
	if inout != nil && (value("from") != nil || value("to") != nil) {
		p.mistake(position(inout), hint, "%s has inout, and from or to as well", verb)
		return nil, false
	}
	for k, key := range keys.keys {
		optional := key == "among" || key == "inout" && keys.find("from") >= 0 || inout != nil && (key == "from" || key == "to")
		if f[k].value == nil && !optional {
			p.mistake(position(n), hint, "%s has no %s", verb, key)
			return nil, false
		}
	}
	c, ok := &dag.Communication{Verb: verb}, true
	if inout != nil {
		c.From, ok = p.reference(inout, "inout")
		c.To = c.From
	} else {
		var fine bool
		c.From, ok = p.reference(value("from"), "from")
		c.To, fine = p.reference(value("to"), "to")
		ok = ok && fine
	}
	if op := value("op"); op != nil {
		word := p.word(op, "op", reductions...)
		c.Reduction, ok = dag.Reduction(slices.Index(reductions, word)+1), ok && word != ""
	}
	if root := value("root"); root != nil {
		v, fine := p.between(root, "root", 0, int64(ranks(p.pipeline))-1)
		c.Root, ok = int32(v), ok && fine
	}
	if among := value("among"); among != nil {
		group, fine := p.among(among)
		c.Among, ok = group, ok && fine
	}
	return c, ok
}

// among reads a group of ranks. A group of all ranks in order is the same as none.
func (p *parser) among(n *yaml.Node) (dag.Among, bool) {
	if n.Kind != yaml.SequenceNode || len(n.Content) != 3 {
		p.mistake(position(n), "write among: [first, count, step]", "among must be a list of three numbers")
		return dag.Among{}, false
	}
	var v [3]int64
	ok := true
	for k, what := range []string{"first", "count", "step"} {
		var fine bool
		v[k], fine = p.between(n.Content[k], what, min(int64(k), 1), dag.MaxRanks)
		ok = ok && fine
	}
	group := dag.Among{First: int32(v[0]), Count: int32(v[1]), Step: int32(v[2])}
	if group == (dag.Among{First: 0, Count: ranks(p.pipeline), Step: 1}) {
		group = dag.Among{}
	}
	return group, ok
}

var transferKeys = keySet{"an exchange's item", []string{"send", "recv", "rank"}}

func (p *parser) exchange(n *yaml.Node) (*dag.Communication, bool) {
	if n.Kind != yaml.SequenceNode {
		p.wrongList(n, "exchange", "a list of {send: x, rank: r} and {recv: y, rank: r}")
		return nil, false
	}
	c, ok := &dag.Communication{Verb: dag.Exchange}, len(n.Content) > 0
	if !ok {
		p.mistake(position(n), "write [{send: x, rank: rank + 1}, {recv: y, rank: rank - 1}]", "exchange is empty")
	}
	for _, item := range n.Content {
		var f [3]field
		if !p.fields(item, &transferKeys, f[:]) || p.unknownKeys {
			ok = false
			continue
		}
		buffer := f[0].value
		if (f[0].value == nil) == (f[1].value == nil) {
			p.mistake(position(item), "write {send: x, rank: rank + 1}", "each item of an exchange needs a send or a recv, and only one of them")
			ok = false
			continue
		} else if buffer == nil {
			buffer = f[1].value
		}
		t, fine := p.transfer(item, buffer, f[2].value, f[1].value != nil)
		c.Transfers, ok = append(c.Transfers, t), ok && fine
	}
	return c, ok
}

func (p *parser) transfer(item, buffer, rank *yaml.Node, receive bool) (dag.Transfer, bool) {
	word := "send"
	if receive {
		word = "recv"
	}
	r, ok := p.reference(buffer, word)
	if rank == nil {
		p.mistake(position(item), fmt.Sprintf("write %s: %s, rank: rank + 1", word, words.Shorten(buffer.Value)), "%s has no rank", word)
		return dag.Transfer{}, false
	}
	v, fine := p.between(rank, "rank", math.MinInt32, math.MaxInt32)
	return dag.Transfer{Receive: receive, Rank: int32(v), Range: r}, ok && fine
}
