// Plans that are kept between processes. Everything in one that is an address is the number of a place, which the graph's words mention in the same order in
// every process, and a distance into it. Only words that the recording saw used count: structures have others, which nobody wrote.

package replan

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// Kept is what a program found out when it planned a graph, as it is kept for others.
type Kept struct {
	Version int         `json:"version"`
	Made    Environment `json:"made"`
	Report  string      `json:"report"` // what the program was told
	Plans   *Plans      `json:"plans"`  // with the plan that was chosen, or with none
	Places  []uint64    `json:"places"` // how many bytes each has
	Held    []Extent    `json:"held"`   // of the graph's own memory, what the program holds
	Words   []keptWord  `json:"words"`  // that pointed to a place
	Bytes   []Row       `json:"bytes"`  // the parameters of each node
	US      []float64   `json:"us"`     // of each node
	Times   []Time      `json:"times"`  // of the graph as it was, and of each plan
}

// keptWord is a word of a node's parameters, or, below 0, an address of a copy or a memset.
type keptWord struct {
	Node   int    `json:"node"`
	Offset int    `json:"offset"`
	To     uint64 `json:"to"`
	Used   bool   `json:"used"` // the node was seen to touch what is there
}

// Time is how long a graph was measured to take.
type Time struct {
	Name string  `json:"name"`
	US   float64 `json:"us"`
}

// TimeAsCaptured is the name of the time of the graph as it was.
const TimeAsCaptured = "as captured"

// Environment is what a plan was measured with, and must still be so.
type Environment struct {
	Driver    int    `json:"driver"`
	Device    string `json:"device"`
	Torch     string `json:"torch"`
	Dagrun    string `json:"dagrun"`
	Recording string `json:"recording"` // which state of the file
}

// Same returns an error that says in what another environment differs.
func (e *Environment) Same(is *Environment) error {
	switch {
	case e.Driver != is.Driver:
		return fmt.Errorf("it was made with driver %d, and this is %d", e.Driver, is.Driver)
	case e.Device != is.Device:
		return fmt.Errorf("it was made on %s, and this is %s", e.Device, is.Device)
	case e.Torch != is.Torch:
		return fmt.Errorf("it was made with torch %s, and this is %s", e.Torch, is.Torch)
	case e.Dagrun != is.Dagrun:
		return fmt.Errorf("it was made by dagrun %s, and this is %s", e.Dagrun, is.Dagrun)
	case e.Recording != is.Recording:
		return errors.New("the recording has been made again since")
	}
	return nil
}

// places are the memory that a graph's words point into: first as its used words mention them, then the rest of its own.
type places struct {
	all    []Extent
	sorted []Extent
	number map[uint64]int // by address
}

const (
	offsetBits = 44
	mostPlaces = 1 << 18
)

func placesOf(g *Graph, used map[[2]int]bool) *places {
	p := &places{number: map[uint64]int{}}
	for _, e := range append(slices.Clone(g.Pool), g.Active...) {
		inside := slices.ContainsFunc(g.Pool, func(own Extent) bool { return own != e && own.holds(e[0]) })
		if !inside && e[1] > 0 && e[1] < 1<<offsetBits {
			p.sorted = append(p.sorted, e)
		}
	}
	slices.SortFunc(p.sorted, func(a, b Extent) int { return cmp.Compare(a[0], b[0]) })
	p.sorted = slices.CompactFunc(p.sorted, func(a, b Extent) bool { return a[0] == b[0] })
	mention := func(e Extent) {
		if _, known := p.number[e[0]]; !known {
			p.number[e[0]] = len(p.all)
			p.all = append(p.all, e)
		}
	}
	g.words(func(node, offset int, word uint64) {
		if e, found := p.at(word); found && (offset < 0 || used[[2]int{node, offset}]) {
			mention(e)
		}
	})
	rest := slices.SortedStableFunc(slices.Values(g.Pool), func(a, b Extent) int { return cmp.Compare(a[1], b[1]) })
	for _, e := range rest {
		mention(e)
	}
	return p
}

// sizes are the bytes of the places, in order.
func (p *places) sizes() []uint64 {
	var list []uint64
	for _, e := range p.all {
		list = append(list, e[1])
	}
	return list
}

// held returns what the program holds of a graph's own memory.
func (p *places) held(g *Graph) []Extent {
	var list []Extent
	for _, e := range g.Active {
		if apart, found := p.apart(e[0]); found && slices.ContainsFunc(g.Pool, e.overlaps) {
			list = append(list, Extent{apart, e[1]})
		}
	}
	slices.SortFunc(list, func(a, b Extent) int { return slices.Compare(a[:], b[:]) })
	return list
}

// words visits every word of a graph that may point somewhere: its node and offset, the offset below 0 where it is none of a kernel's parameters.
func (g *Graph) words(visit func(node, offset int, word uint64)) {
	for k := range g.Nodes {
		n := &g.Nodes[k]
		for _, p := range n.Parameters {
			for at := (p[0] + 7) &^ 7; at+8 <= p[0]+p[1]; at += 8 {
				visit(k, at, binary.LittleEndian.Uint64(n.Bytes[at:]))
			}
		}
		if n.Copy != nil {
			visit(k, -1, n.Copy.Source.Address)
			visit(k, -2, n.Copy.Destination.Address)
		}
		if n.Set != nil {
			visit(k, -1, n.Set.Address)
		}
	}
}

func (p *places) at(address uint64) (Extent, bool) {
	k, _ := slices.BinarySearchFunc(p.sorted, address, func(e Extent, address uint64) int {
		if e.end() <= address {
			return -1
		}
		return 1
	})
	if k == len(p.sorted) || !p.sorted[k].holds(address) {
		return Extent{}, false
	}
	return p.sorted[k], true
}

// apart returns an address as a place and a distance.
func (p *places) apart(address uint64) (uint64, bool) {
	e, found := p.at(address)
	number, known := p.number[e[0]]
	return uint64(number)<<offsetBits | (address - e[0]), found && known && number < mostPlaces
}

// address is the inverse of apart, in a process whose places have the same sizes.
func (p *places) address(apart uint64) (uint64, bool) {
	number, offset := apart>>offsetBits, apart&(1<<offsetBits-1)
	if number >= uint64(len(p.all)) || offset >= p.all[number][1] {
		return 0, false
	}
	return p.all[number][0] + offset, true
}

// Signature names a graph: code, shapes, edges and sizes. Its parameters are not in it: structures have bytes that nobody writes.
func (g *Graph) Signature() string {
	sum := sha256.New()
	add := func(what ...any) { _ = json.NewEncoder(sum).Encode(what) } // a hash takes everything
	for k := range g.Nodes {
		n := &g.Nodes[k]
		add(n.Type, n.Function, n.Attributes, n.Parameters, n.Grid, n.Block, n.Shared, n.Cluster, n.Cooperative)
		if c := n.Copy; c != nil {
			add(c.Width, c.Height, c.Depth, c.Source.Kind, c.Source.Pitch, c.Source.Slice, c.Destination.Kind, c.Destination.Pitch, c.Destination.Slice)
		}
		if s := n.Set; s != nil {
			add(s.Pitch, s.Value, s.Element, s.Width, s.Height)
		}
	}
	edges := slices.SortedFunc(slices.Values(g.Edges), func(a, b [3]int) int { return slices.Compare(a[:], b[:]) })
	add(edges)
	var pool []uint64
	for _, e := range g.Pool {
		pool = append(pool, e[1])
	}
	slices.Sort(pool)
	add(pool)
	return hex.EncodeToString(sum.Sum(nil))
}

// Keep makes what is kept of a choice.
func (g *Graph) Keep(made Environment) (*Kept, error) {
	c := g.Chosen
	if c.Plans == nil || c.Best < -1 || c.Best >= len(c.Plans.Plans) || len(c.US) > len(c.Plans.Plans)+1 {
		return nil, errors.New("a graph's description: what was chosen is none of its plans")
	}
	used := map[[2]int]bool{}
	for _, w := range c.Plans.Used {
		used[w] = true
	}
	p := placesOf(g, used)
	kept := &Kept{Version: 3, Made: made, Report: c.Report, Places: p.sizes(), Held: p.held(g), US: g.US}
	g.words(func(node, offset int, word uint64) {
		if apart, found := p.apart(word); found {
			kept.Words = append(kept.Words, keptWord{node, offset, apart, offset < 0 || used[[2]int{node, offset}]})
		}
	})
	plans := *c.Plans
	plans.Plans, plans.Try = nil, append(slices.Clone(c.Plans.Try), c.Plans.Others...)
	plans.Others, plans.Used = nil, nil
	if c.Best >= 0 {
		plans.Plans = []Plan{c.Plans.Plans[c.Best]}
	}
	if !plans.moved(p.apart) {
		return nil, errors.New("the plan is not kept: the graph writes memory that is none of the framework's, which lies elsewhere in each process")
	}
	kept.Plans = &plans
	for k := range g.Nodes {
		kept.Bytes = append(kept.Bytes, g.Nodes[k].Bytes)
	}
	for k, us := range c.US {
		name := TimeAsCaptured
		if k > 0 {
			name = c.Plans.Plans[k-1].Name
		}
		kept.Times = append(kept.Times, Time{name, us})
	}
	return kept, nil
}

// In returns the plans for the process that a graph is in, with the nodes to try there, or why they cannot be used.
func (k *Kept) In(g *Graph) (*Plans, error) {
	if len(k.Bytes) != len(g.Nodes) {
		return nil, fmt.Errorf("it is of %d nodes, and the graph has %d", len(k.Bytes), len(g.Nodes))
	}
	for n := range g.Nodes {
		if len(g.Nodes[n].Bytes) != len(k.Bytes[n]) {
			return nil, fmt.Errorf("node %d of the graph takes other parameters", n)
		}
	}
	another := errors.New("the graph's memory is another")
	used := map[[2]int]bool{}
	for _, w := range k.Words {
		used[[2]int{w.Node, w.Offset}] = w.Used
	}
	p, now := placesOf(g, used), map[[2]int]uint64{}
	if !slices.Equal(k.Places, p.sizes()) || !slices.Equal(k.Held, p.held(g)) {
		return nil, another
	}
	g.words(func(node, offset int, word uint64) {
		if apart, found := p.apart(word); found {
			now[[2]int{node, offset}] = apart
		}
	})
	same := map[[2]int]bool{} // words that point to where they did
	for _, w := range k.Words {
		at := [2]int{w.Node, w.Offset}
		apart, found := now[at]
		same[at] = found && apart == w.To
		if w.Used && !same[at] {
			return nil, another
		}
	}
	plans := *k.Plans
	plans.Try = slices.DeleteFunc(slices.Clone(plans.Try), func(t Trial) bool { return !k.differs(g, t.Node, same) })
	if !plans.moved(p.address) {
		return nil, another
	}
	if err := plans.check(g); err != nil {
		return nil, err
	}
	for n := range plans.Plans {
		plan := &plans.Plans[n]
		plan.Words = slices.DeleteFunc(plan.Words, func(w [4]int64) bool { return !same[[2]int{int(w[0]), int(w[1])}] }) // it points to nothing that the node uses
	}
	return &plans, nil
}

// differs tells whether a node has other parameters than it had, besides words that point to where they did. These may be bytes
// that nobody wrote, so it is tried.
func (k *Kept) differs(g *Graph, node int, same map[[2]int]bool) bool {
	if node < 0 || node >= len(g.Nodes) {
		return true
	}
	for at, b := range g.Nodes[node].Bytes {
		if b != k.Bytes[node][at] && !same[[2]int{node, at &^ 7}] {
			return true
		}
	}
	return false
}

// moved gives every address in plans another form; false if one has none. What a node touches in memory that has none is left out: it is not tried.
func (p *Plans) moved(to func(uint64) (uint64, bool)) bool {
	all := true
	extents := func(list []Extent, needed bool) []Extent {
		out := []Extent{}
		for _, e := range list {
			at, found := to(e[0])
			all = all && (found || !needed)
			if found {
				out = append(out, Extent{at, e[1]})
			}
		}
		return out
	}
	word := func(at int64, fresh int64) int64 {
		if fresh != 0 {
			return at
		}
		other, found := to(uint64(at))
		all = all && found
		return int64(other)
	}
	p.Outputs, p.State = extents(p.Outputs, true), extents(p.State, true)
	p.Carried = slices.Clone(p.Carried)
	for k := range p.Carried {
		at, found := to(p.Carried[k][0])
		all, p.Carried[k][0] = all && found, at
	}
	tries := []Trial{}
	for _, t := range p.Try {
		tries = append(tries, Trial{t.Node, extents(t.Reads, false), extents(t.Writes, false), extents(t.Old, false)})
	}
	p.Try = tries
	plans := []Plan{}
	for _, plan := range p.Plans {
		plan.Words, plan.Sets, plan.Copies = slices.Clone(plan.Words), slices.Clone(plan.Sets), slices.Clone(plan.Copies)
		for k := range plan.Words {
			plan.Words[k][2] = word(plan.Words[k][2], plan.Words[k][3])
		}
		for k := range plan.Sets {
			plan.Sets[k][1] = word(plan.Sets[k][1], plan.Sets[k][2])
		}
		for k := range plan.Copies {
			plan.Copies[k][2] = word(plan.Copies[k][2], plan.Copies[k][3])
		}
		plans = append(plans, plan)
	}
	p.Plans = plans
	return all
}

// check refuses plans from a file that name what the graph does not have.
func (p *Plans) check(g *Graph) error {
	node := func(k int64, kind int) bool { return k >= 0 && k < int64(len(g.Nodes)) && g.Nodes[k].Type == kind }
	for _, plan := range p.Plans {
		for _, c := range p.Carried {
			if c[1] > uint64(plan.Memory) || c[2] > uint64(plan.Memory)-c[1] {
				return errors.New("it carries contents beyond its memory")
			}
		}
		for _, w := range plan.Words {
			if !node(w[0], kernelNode) || w[1] < 0 || w[1]+8 > int64(len(g.Nodes[w[0]].Bytes)) || w[3] == 1 && (w[2] < 0 || w[2] >= plan.Memory) {
				return errors.New("it changes a word that the graph does not have")
			}
		}
		for _, s := range plan.Sets {
			if !node(s[0], setNode) {
				return errors.New("it changes a memset that the graph does not have")
			}
		}
		for _, c := range plan.Copies {
			if !node(c[0], copyNode) {
				return errors.New("it changes a copy that the graph does not have")
			}
		}
		if slices.ContainsFunc(plan.Edges, func(e [2]int) bool { return min(e[0], e[1]) < 0 || max(e[0], e[1]) >= len(g.Nodes) }) {
			return errors.New("it has an edge of a node that the graph does not have")
		}
		if _, err := sorted(len(g.Nodes), plan.Edges); err != nil {
			return err
		}
	}
	return nil
}

// DecodeKept reads what Keep made.
func DecodeKept(text []byte) (*Kept, error) {
	kept := &Kept{}
	if err := json.Unmarshal(text, kept); err != nil {
		return nil, err
	}
	if kept.Version != 3 || kept.Plans == nil {
		return nil, fmt.Errorf("it is of version %d, where this program knows 3", kept.Version)
	}
	return kept, nil
}
