// Package kernels lists the kernels that a program ran: how often and in which shapes, from where, what each of its pointers was used
// for, and what is not known of it.
package kernels

import (
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/dagrun/dagrun/internal/recording"
	"github.com/dagrun/dagrun/internal/recording/order"
)

// Kernel is a kernel of a program.
type Kernel struct {
	Name      string   `json:"name"` // mangled; "" if the recording does not say
	Demangled string   `json:"demangled"`
	Launches  int      `json:"launches"`
	InGraphs  int      `json:"launches_in_graphs"` // of these
	Measured  int      `json:"measured"`           // of these, whole
	Unknown   []Reason `json:"not_measured"`       // why the others were not, or not whole

	Shapes     []Shape     `json:"shapes"`
	Places     []Place     `json:"places"` // of launches, and of launches of graphs
	Read       uint64      `json:"bytes_read"`
	Written    uint64      `json:"bytes_written"`
	Updated    uint64      `json:"bytes_updated_atomically"`
	Parameters []Parameter `json:"parameters"` // those that held a pointer, of launches that are in no graph

	Registers uint32 `json:"registers"`
	Shared    uint32 `json:"static_shared_bytes"`
}

// Shape is a shape in which a kernel was launched.
type Shape struct {
	Grid     [3]uint32 `json:"grid"`
	Block    [3]uint32 `json:"block"`
	Cluster  [3]uint32 `json:"cluster"` // zeros: none
	Shared   uint64    `json:"shared_bytes"`
	Launches int       `json:"launches"`
}

// Place is a line of the program.
type Place struct {
	Where    string `json:"where"`
	Launches int    `json:"launches"`
}

// Reason says why what some launches touched is not known, or not all of it.
type Reason struct {
	Why      string `json:"why"`
	Launches int    `json:"launches"`
}

// Parameter is a parameter that held a pointer, or a word of a structure that did.
type Parameter struct {
	Index     int    `json:"parameter"` // from 0; -1 if the parameters of the kernel are not known
	Offset    uint32 `json:"offset"`    // in bytes: within the parameter, or within all where that is not known
	Memory    string `json:"memory"`    // what it pointed into last: "tensor", "allocation" ...
	Bytes     uint64 `json:"bytes"`     // of that
	Launches  int    `json:"launches"`  // in which it held a pointer
	Read      int    `json:"read"`      // launches that were measured and read what it pointed into
	Written   int    `json:"written"`
	Updated   int    `json:"updated_atomically"`
	Untouched int    `json:"untouched"` // launches that were measured whole and did not touch it
	Unknown   int    `json:"unknown"`   // all others
}

// Reasons why accesses are not known.
const (
	NotAsked   = "recorded without measuring (--accesses=arguments)"
	LeftAlone  = "its module was not patched, as those of NCCL are not"
	NoRoom     = "the recorder had no table for it, or it had not ended"
	NotThere   = "the measurement is not in the recording"
	OpaqueCode = "its code accesses memory in ways that cannot be measured: tensor copies by descriptor, textures, surfaces"
	TooMany    = "it touched more places than the table holds"
	InGraph    = "a graph was launched again before the program waited, or its node was not measured"
)

// Of lists the kernels of processes, those that were launched most often first. where names a place.
func Of(processes []*recording.Process, where func(p *recording.Process, place uint64) string) ([]Kernel, error) {
	c := &collector{where: where, kernels: map[string]*building{}}
	for _, p := range processes {
		if err := c.process(p); err != nil {
			return nil, err
		}
	}
	list := make([]Kernel, 0, len(c.kernels))
	for _, b := range c.kernels {
		list = append(list, b.done())
	}
	slices.SortFunc(list, func(a, b Kernel) int { return cmp.Or(b.Launches-a.Launches, cmp.Compare(a.Name, b.Name)) })
	return list, nil
}

// building is a kernel while launches are added.
type building struct {
	Kernel
	shapes     map[Shape]int
	places     map[string]int
	reasons    map[string]int
	parameters map[[2]int]*Parameter
}

func (b *building) done() Kernel {
	k := b.Kernel
	k.Shapes, k.Places, k.Unknown, k.Parameters = []Shape{}, []Place{}, []Reason{}, []Parameter{}
	for shape, launches := range b.shapes {
		shape.Launches = launches
		k.Shapes = append(k.Shapes, shape)
	}
	slices.SortFunc(k.Shapes, func(a, b Shape) int {
		return cmp.Or(b.Launches-a.Launches, slices.Compare(a.Grid[:], b.Grid[:]), slices.Compare(a.Block[:], b.Block[:]), slices.Compare(a.Cluster[:], b.Cluster[:]),
			cmp.Compare(a.Shared, b.Shared))
	})
	for where, launches := range b.places {
		k.Places = append(k.Places, Place{where, launches})
	}
	slices.SortFunc(k.Places, func(a, b Place) int { return cmp.Or(b.Launches-a.Launches, cmp.Compare(a.Where, b.Where)) })
	for why, launches := range b.reasons {
		k.Unknown = append(k.Unknown, Reason{why, launches})
	}
	slices.SortFunc(k.Unknown, func(a, b Reason) int { return cmp.Or(b.Launches-a.Launches, cmp.Compare(a.Why, b.Why)) })
	for _, p := range b.parameters {
		k.Parameters = append(k.Parameters, *p)
	}
	slices.SortFunc(k.Parameters, func(a, b Parameter) int { return cmp.Or(a.Index-b.Index, cmp.Compare(a.Offset, b.Offset)) })
	return k
}

type collector struct {
	where   func(p *recording.Process, place uint64) string
	kernels map[string]*building
	p       *recording.Process
	nodes   map[uint64][]*recording.Call // those that were measured, by the beginning of a graph's launch
	graphs  graphs
}

func (c *collector) process(p *recording.Process) error {
	c.p, c.nodes, c.graphs = p, map[uint64][]*recording.Call{}, newGraphs(p)
	for k := range p.Calls {
		if call := &p.Calls[k]; call.Kind == recording.NodeAccess && call.Result == 0 {
			c.nodes[call.Args[1]] = append(c.nodes[call.Args[1]], call)
		}
	}
	for k := range p.Calls {
		if call := &p.Calls[k]; call.Kind == recording.GraphLaunch && call.Result == 0 && call.Args[1] == 0 {
			c.graph(call)
		}
	}
	return order.Launches(p, c.launch)
}

// Words of calls, as format.h has them.
const (
	launchFunction = 2
	launchNumber   = 3
	launchGrid     = 4
	launchShared   = 10
	launchCluster  = 12

	nodeNumber   = 3
	nodeFunction = 4
	nodeGrid     = 5
)

// kernel returns what a handle meant at a moment.
func (c *collector) kernel(handle, moment uint64) (*building, *recording.FunctionInfo) {
	f := c.p.FunctionAt(handle, moment)
	b := c.kernels[f.Name]
	if b == nil {
		b = &building{Kernel: Kernel{Name: f.Name, Demangled: Demangled(f.Name), Registers: f.Registers, Shared: f.Shared}, shapes: map[Shape]int{},
			places: map[string]int{}, reasons: map[string]int{}, parameters: map[[2]int]*Parameter{}}
		c.kernels[f.Name] = b
	}
	return b, f
}

func shapeOf(words []uint64, shared, cluster uint64) Shape {
	s := Shape{Shared: shared}
	for k := range 3 {
		s.Grid[k], s.Block[k], s.Cluster[k] = uint32(words[k]), uint32(words[3+k]), uint32(cluster>>(16*k)&0xffff)
	}
	return s
}

// graph adds the kernels of a graph's launch. A kernel with more nodes than measurements has nodes that were not measured.
func (c *collector) graph(call *recording.Call) {
	where := c.where(c.p, call.Place)
	missing := map[*building]int{} // nodes of which no measurement tells
	left := mostNodes
	if of := c.graphs.at(c.graphs.executions[call.Args[2]], call.Begin); of != nil {
		c.graphs.kernels(of, call.Begin, 0, &left, func(words []uint64) {
			b, _ := c.kernel(words[0], call.Begin)
			b.inGraph(where)
			b.shapes[shapeOf(words[bodyGrid:], words[bodyShared], words[bodyCluster])]++
			missing[b]++
		})
	}
	for _, node := range c.nodes[call.Begin] {
		b, f := c.kernel(node.Args[nodeFunction], call.Begin)
		if missing[b] > 0 {
			missing[b]--
		} else { // the graph's description is not in the recording
			b.inGraph(where)
			b.shapes[shapeOf(node.Args[nodeGrid:], 0, 0)]++
		}
		b.measured(c.p, f, node.Args[nodeNumber], InGraph)
	}
	for b, nodes := range missing {
		if nodes > 0 {
			why := InGraph
			if !c.p.Measured {
				why = NotAsked
			}
			b.reasons[why] += nodes
		}
	}
}

func (b *building) inGraph(where string) {
	b.Launches++
	b.InGraphs++
	b.places[where]++
}

func (c *collector) launch(call *recording.Call, pointed func(address uint64) (order.Memory, bool)) {
	w := call.Args
	b, f := c.kernel(w[launchFunction], call.Begin)
	b.Launches++
	b.shapes[shapeOf(w[launchGrid:], w[launchShared], w[launchCluster])]++
	b.places[c.where(c.p, call.Place)]++
	why := NoRoom
	switch {
	case f.Unpatched:
		why = LeftAlone
	case !c.p.Measured:
		why = NotAsked
	}
	info, whole := b.measured(c.p, f, w[launchNumber], why)
	for at := 0; at+8 <= len(call.Tail); at += 8 {
		if memory, is := pointed(binary.LittleEndian.Uint64(call.Tail[at:])); is {
			b.pointer(f, uint32(at), memory, info, whole)
		}
	}
}

// measured counts what a launch was seen to touch; info is nil if it was not measured, and whole says that nothing is missing.
func (b *building) measured(p *recording.Process, f *recording.FunctionInfo, number uint64, otherwise string) (info *recording.AccessInfo, whole bool) {
	info = p.Accesses[number]
	switch {
	case number == 0 || info != nil && info.Unmeasured:
		b.reasons[otherwise]++
		return nil, false
	case info == nil:
		b.reasons[NotThere]++
		return nil, false
	}
	for _, run := range info.Runs {
		if run.Modes&recording.Read != 0 {
			b.Read += uint64(run.Bytes)
		}
		if run.Modes&recording.Write != 0 {
			b.Written += uint64(run.Bytes)
		}
		if run.Modes&recording.Atomic != 0 {
			b.Updated += uint64(run.Bytes)
		}
	}
	switch {
	case f.Opaque || info.Opaque:
		b.reasons[OpaqueCode]++
	case info.Lost:
		b.reasons[TooMany]++
	default:
		b.Measured++
		return info, true
	}
	return info, false
}

// pointer adds a word of a launch's parameters that points into memory.
func (b *building) pointer(f *recording.FunctionInfo, at uint32, memory order.Memory, info *recording.AccessInfo, whole bool) {
	index, offset := -1, at
	for k, p := range f.Parameters {
		if at >= p.Offset && at-p.Offset < p.Bytes {
			index, offset = k, at-p.Offset
		}
	}
	key := [2]int{index, int(offset)}
	p := b.parameters[key]
	if p == nil {
		p = &Parameter{Index: index, Offset: offset}
		b.parameters[key] = p
	}
	p.Memory, p.Bytes = memory.What, memory.Bytes
	p.Launches++
	if info == nil {
		p.Unknown++
		return
	}
	switch modes := touched(info.Runs, memory.Address, memory.Address+memory.Bytes); {
	case modes == 0 && whole:
		p.Untouched++
	case modes == 0:
		p.Unknown++
	default:
		p.Read += bit(modes, recording.Read)
		p.Written += bit(modes, recording.Write)
		p.Updated += bit(modes, recording.Atomic)
	}
}

func bit(modes, mode uint32) int {
	if modes&mode != 0 {
		return 1
	}
	return 0
}

// touched says in which ways bytes between two addresses were accessed. Runs are in order.
func touched(runs []recording.Run, low, high uint64) uint32 {
	k, _ := slices.BinarySearchFunc(runs, low, func(r recording.Run, low uint64) int {
		if r.Address+uint64(r.Bytes) <= low {
			return -1
		}
		return 1
	})
	modes := uint32(0)
	for ; k < len(runs) && runs[k].Address < high; k++ {
		modes |= runs[k].Modes
	}
	return modes
}
