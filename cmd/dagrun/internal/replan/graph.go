// Package replan plans a captured graph again: streams and memory together. A recording tells what the nodes of the graph touch and which words of their
// parameters can be moved (Known); the program that captured the graph again tells where its memory lies and how long its nodes take
// (Graph). It makes no CUDA calls.
package replan

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
)

// Types of nodes, as the driver numbers them.
const (
	kernelNode = 0
	copyNode   = 1
	setNode    = 2
	emptyNode  = 5
)

// Graph is a captured graph as the Python package describes it.
type Graph struct {
	Version int      `json:"version"`
	Handle  uint64   `json:"graph"`
	Device  string   `json:"device"`
	Torch   string   `json:"torch"`
	Driver  int      `json:"driver,omitempty"`
	Pool    []Extent `json:"pool"`   // segments from which its own memory comes
	Shared  []Extent `json:"shared"` // blocks of other memory that several nodes point to
	Active  []Extent `json:"active"` // blocks that the framework has given out and not got back
	Nodes   []Node   `json:"nodes"`
	Edges   [][3]int `json:"edges"` // from, to, type

	// In a process that was recorded:
	Stream uint64 `json:"stream,omitempty"`
	Tried  []Try  `json:"tried,omitempty"`

	// In a process that wants a plan:
	US    []float64 `json:"us,omitempty"`    // microseconds of each node, one after the other
	Chain float64   `json:"chain,omitempty"` // of all of them in one chain

	// In a process that has a plan:
	Chosen *Chosen `json:"chosen,omitempty"`
}

// Plans is what the program needs to make the new graph.
type Plans struct {
	Version int      `json:"version"`
	Memory  int64    `json:"memory"` // bytes that the plan of the most memory needs
	Moved   int      `json:"moved"`
	Values  int      `json:"values"` // of the graph's own memory, and of workspaces
	Opaque  int      `json:"opaque"`
	Try     []Trial  `json:"try"`
	Others  []Trial  `json:"others,omitempty"` // of the nodes that need not be tried here
	Outputs []Extent `json:"outputs"`          // what the graph writes and others may read
	State   []Extent `json:"state"`            // what it writes outside its own memory
	Used    [][2]int `json:"used,omitempty"`   // words through which nodes were seen to touch something: node, offset in its parameters
	Stays   bool     `json:"stays"`            // whether something stays in the graph's own memory that the program does not hold
	Plans   []Plan   `json:"plans"`

	Carried [][3]uint64 `json:"carried,omitempty"` // contents that go from an address, with so many bytes, to a distance into new memory, the same in all plans

	Chain    float64        `json:"chain"`    // microseconds of the nodes one after the other
	Critical float64        `json:"critical"` // of the longest path, once values are moved: no plan is faster
	Filled   float64        `json:"filled"`   // of all nodes, each counted by how much of the GPU its blocks fill: no plan is faster
	Binds    string         `json:"binds"`    // what keeps plans from being faster, in words
	Pinned   map[string]int `json:"pinned"`   // values that stay, by reason
}

// Trial is a node to be tried in the process before the plan is believed: everything that it was not seen to touch may hold anything.
type Trial struct {
	Node   int      `json:"node"`
	Reads  []Extent `json:"reads"`
	Writes []Extent `json:"writes"`
	Old    []Extent `json:"old"` // of what it reads, bytes that nothing in the graph writes
}

// Plan is one way to run the graph. Where something lies is an address, or, if the number behind it is 1, a distance into new memory.
type Plan struct {
	Name   string     `json:"name"`
	US     float64    `json:"us"` // predicted
	Edges  [][2]int   `json:"edges"`
	Memory int64      `json:"memory"` // bytes of new memory
	Words  [][4]int64 `json:"words"`  // node, offset in its parameters, where they are to point
	Sets   [][3]int64 `json:"sets"`   // memset node, where it sets
	Copies [][4]int64 `json:"copies"` // copy node, 0 for what it reads or 1 for what it writes, where that lies
}

// Chosen is what a program did with plans.
type Chosen struct {
	Plans  *Plans    `json:"plans"`
	Best   int       `json:"best"` // index of the plan that replays; -1: the graph replays as it was
	US     []float64 `json:"us"`   // of the graph as it was, and of each plan
	Report string    `json:"report"`
}

// Extent is memory: an address and a number of bytes.
type Extent [2]uint64

func (e Extent) end() uint64 { return e[0] + e[1] }

func (e Extent) holds(address uint64) bool { return e[0] <= address && address < e.end() }

func (e Extent) overlaps(other Extent) bool { return e[0] < other.end() && other[0] < e.end() }

// Node is a node of a graph.
type Node struct {
	Type        int            `json:"type"`
	Handle      uint64         `json:"node"`
	Function    string         `json:"function,omitempty"`
	Attributes  map[string]int `json:"attributes,omitempty"`
	Parameters  [][2]int       `json:"parameters,omitempty"` // offset and size
	Grid        [3]int         `json:"grid"`
	Block       [3]int         `json:"block"`
	Shared      int            `json:"shared"`
	Cluster     [3]int         `json:"cluster"`
	Cooperative bool           `json:"cooperative"`
	Bytes       Row            `json:"bytes,omitempty"`
	Copy        *Copy          `json:"copy,omitempty"`
	Set         *Set           `json:"set,omitempty"`
}

// Copy is what a copy node copies.
type Copy struct {
	Width       uint64 `json:"width"`
	Height      uint64 `json:"height"`
	Depth       uint64 `json:"depth"`
	Source      Side   `json:"source"`
	Destination Side   `json:"destination"`
}

// Side is one side of a copy.
type Side struct {
	Kind    int    `json:"kind"` // CUmemorytype
	Address uint64 `json:"address"`
	Pitch   uint64 `json:"pitch"`
	Slice   uint64 `json:"slice"`
}

func (c *Copy) extent(s *Side) Extent {
	bytes := c.Width
	if c.Height > 1 {
		bytes += (c.Height - 1) * s.Pitch
	}
	if c.Depth > 1 {
		bytes += (c.Depth - 1) * s.Slice
	}
	return Extent{s.Address, bytes}
}

// Set is what a memset node sets.
type Set struct {
	Address uint64 `json:"address"`
	Pitch   uint64 `json:"pitch"`
	Value   uint32 `json:"value"`
	Element uint64 `json:"element"`
	Width   uint64 `json:"width"`
	Height  uint64 `json:"height"`
}

func (s *Set) extent() Extent {
	bytes := s.Width
	if s.Height > 1 {
		bytes += (s.Height - 1) * s.Pitch
	}
	return Extent{s.Address, bytes}
}

// Row is the bytes of a launch's parameters.
type Row []byte

func (r Row) MarshalJSON() ([]byte, error) { return json.Marshal(hex.EncodeToString(r)) }

func (r *Row) UnmarshalJSON(text []byte) error {
	var s string
	if err := json.Unmarshal(text, &s); err != nil {
		return err
	}
	b, err := hex.DecodeString(s)
	*r = b
	return err
}

// Try is one launch of a node by itself: as it is, or with the words at some offsets of its parameters moved.
type Try struct {
	Node     int
	Offsets  []int
	Distance int64
	Results  int // whether each word was moved to a place of its own and the launch left what it usually does: 0 means that this was not asked
}

// What a launch left with its words apart.
const (
	sameResults  = 1
	otherResults = 2
)

func (t *Try) UnmarshalJSON(text []byte) error {
	row := [4]any{&t.Node, &t.Offsets, &t.Distance, &t.Results}
	into := row[:]
	return json.Unmarshal(text, &into)
}

// mostNodes is how large a graph may be: what comes before what takes a bit for each pair of nodes.
const mostNodes = 1 << 15

// DecodeGraph reads what the Python package wrote.
func DecodeGraph(text []byte) (*Graph, error) {
	g := &Graph{}
	if err := json.Unmarshal(text, g); err != nil {
		return nil, fmt.Errorf("a graph's description: %w", err)
	}
	if g.Version != 1 {
		return nil, fmt.Errorf("a graph's description of version %d, where this program knows 1: the Python package and the command must be of one version",
			g.Version)
	}
	if len(g.Nodes) > mostNodes {
		return nil, fmt.Errorf("a graph of %d nodes: at most %d are planned again", len(g.Nodes), mostNodes)
	}
	for k := range g.Nodes {
		if !g.Nodes[k].whole() {
			return nil, fmt.Errorf("a graph's description: node %d has parameters outside its %d bytes", k, len(g.Nodes[k].Bytes))
		}
	}
	for _, e := range g.Edges {
		if min(e[0], e[1]) < 0 || max(e[0], e[1]) >= len(g.Nodes) {
			return nil, fmt.Errorf("a graph's description: an edge from node %d to node %d of %d", e[0], e[1], len(g.Nodes))
		}
	}
	for _, t := range g.Tried {
		if t.Node < 0 || t.Node >= len(g.Nodes) {
			return nil, fmt.Errorf("a graph's description: a trial of node %d of %d", t.Node, len(g.Nodes))
		}
		for _, offset := range t.Offsets {
			if bytes := len(g.Nodes[t.Node].Bytes); offset < 0 || offset > bytes-8 {
				return nil, fmt.Errorf("a graph's description: a trial of the word at %d in %d bytes of node %d", offset, bytes, t.Node)
			}
		}
	}
	if g.US != nil && len(g.US) != len(g.Nodes) {
		return nil, fmt.Errorf("a graph's description: %d durations for %d nodes", len(g.US), len(g.Nodes))
	}
	return g, nil
}

// whole tells whether the parameters of a node lie within its bytes.
func (n *Node) whole() bool {
	return !slices.ContainsFunc(n.Parameters, func(p [2]int) bool { return p[0] < 0 || p[1] < 0 || p[0] > len(n.Bytes)-p[1] })
}

// order returns the nodes in an order that the edges allow: that of the list, where they do.
func (g *Graph) order() ([]int, error) {
	edges := make([][2]int, len(g.Edges))
	for k, e := range g.Edges {
		edges[k] = [2]int{e[0], e[1]}
	}
	return sorted(len(g.Nodes), edges)
}

func sorted(nodes int, edges [][2]int) ([]int, error) {
	before, after := make([]int, nodes), make([][]int, nodes)
	for _, e := range edges {
		before[e[1]]++
		after[e[0]] = append(after[e[0]], e[1])
	}
	var ready []int // sorted
	for k, n := range before {
		if n == 0 {
			ready = append(ready, k)
		}
	}
	order := make([]int, 0, nodes)
	for len(ready) > 0 {
		k := ready[0]
		ready = ready[1:]
		order = append(order, k)
		for _, next := range after[k] {
			if before[next]--; before[next] == 0 {
				at, _ := slices.BinarySearch(ready, next)
				ready = slices.Insert(ready, at, next)
			}
		}
	}
	if len(order) < nodes {
		return nil, fmt.Errorf("a graph's description: its edges go in a circle")
	}
	return order, nil
}
