// The state of an analysis: frames, regions, and what they hold so far.

package access

import "github.com/dagrun/dagrun/internal/ptx"

// Limits: an entry beyond them is undecided.
const (
	maxFrames = 1 << 12
	maxDepth  = 64
	maxVisits = 1 << 21 // instructions visited and bases joined, over all rounds
	maxCells  = 1 << 10 // of one region; further stores are taken to reach all of it
	maxTerms  = 1 << 10 // bases of one analysis
)

type baseKind uint8

const (
	fieldBase    baseKind = iota // index: Report.Fields
	symbolBase                   // index: Report.Symbols
	regionBase                   // index: regions
	functionBase                 // index: FunctionID
)

type base struct {
	kind  baseKind
	index int32
}

// region is memory whose contents are followed: local variables and parameters. Shared variables are regions without contents.
type region struct {
	variable ptx.VariableID
	followed bool
	entry    int // the parameter of the entry that it is, or -1
	cells    []cell
	anywhere value // stored at an unknown offset
}

type cell struct {
	offset, size int64
	value        value
}

// frame is one function in the context of one call.
type frame struct {
	function  ptx.FunctionID
	f         *ptx.Function
	registers []value
	regions   map[ptx.VariableID]int32 // of variables of the function
	callees   map[callSite]*frame
	allocas   map[int]int32
	depth     int
	outer     *frame
	reached   []bool
}

type callSite struct {
	instruction int
	function    ptx.FunctionID
}

type analysis struct {
	m          *ptx.Module
	report     *Report
	frames     []*frame
	bases      []base
	regions    []region
	regionBase []int32                  // the base of each region
	fields     [][]int32                // per parameter of the entry: the base of each cell
	symbols    map[ptx.VariableID]int32 // of module variables: their base
	functions  map[ptx.FunctionID]int32
	split      map[ptx.FunctionID]*ptx.Function // with registers taken apart
	wild       value                            // stored to local memory at an address without a base
	cellSize   int64
	visits     *int
	changed    bool
	judging    bool // the last round, which records accesses
}

// settle spreads what makes everything undecided to all uses.
func (a *analysis) settle() {
	if a.report.Undecided == "" {
		return
	}
	spread := func(u *Use) {
		if !u.Undecided {
			u.Undecided, u.Why, u.UndecidedAt = true, a.report.Undecided, a.report.UndecidedAt
		}
	}
	for i := range a.report.Fields {
		spread(&a.report.Fields[i].Use)
	}
	for i := range a.report.Symbols {
		spread(&a.report.Symbols[i].Use)
	}
}

func (a *analysis) newBase(kind baseKind, index int32) int32 {
	a.bases = append(a.bases, base{kind, index})
	return int32(len(a.bases)) - 1
}

func (a *analysis) newFrame(id ptx.FunctionID, outer *frame) *frame {
	f := a.split[id]
	if f == nil {
		f = a.m.Functions[id].Split()
		a.split[id] = f
	}
	fr := &frame{function: id, f: f, registers: make([]value, len(f.Registers)), regions: map[ptx.VariableID]int32{},
		callees: map[callSite]*frame{}, allocas: map[int]int32{}, outer: outer, reached: f.Reachable()}
	if outer != nil {
		fr.depth = outer.depth + 1
	}
	a.frames = append(a.frames, fr)
	return fr
}

// region is the region of a variable: of a frame's own, or of the module's.
func (a *analysis) region(fr *frame, id ptx.VariableID) int32 {
	v := &a.m.Variables[id]
	if v.Space == ptx.Shared || v.Owner == ptx.NoFunction {
		fr = a.frames[0] // one for all frames
	}
	if r, ok := fr.regions[id]; ok {
		return r
	}
	r := a.newRegion(id, v.Space == ptx.Local || v.Space == ptx.Param)
	fr.regions[id] = r
	return r
}

func (a *analysis) newRegion(id ptx.VariableID, followed bool) int32 {
	r := int32(len(a.regions))
	a.regions = append(a.regions, region{variable: id, followed: followed, entry: -1})
	a.regionBase = append(a.regionBase, a.newBase(regionBase, r))
	a.changed = true
	return r
}

// variable is the address of a variable.
func (a *analysis) variable(fr *frame, id ptx.VariableID) int32 {
	if b, ok := a.symbols[id]; ok {
		return b
	}
	if v := &a.m.Variables[id]; v.Space == ptx.Global || v.Space == ptx.Const || v.Space == ptx.Tex { // declared in a body
		b := a.newBase(symbolBase, int32(len(a.report.Symbols)))
		a.symbols[id] = b
		a.report.Symbols = append(a.report.Symbols, Symbol{Variable: id})
		return b
	}
	return a.regionBase[a.region(fr, id)]
}

// load is what a region holds at an offset.
func (a *analysis) load(r int32, known bool, offset, size int64) value {
	g := &a.regions[r]
	if g.entry >= 0 {
		return a.loadParameter(g.entry, known, offset, size)
	}
	if !g.followed {
		return number(fromMemory)
	}
	v := g.anywhere
	for _, c := range g.cells {
		switch {
		case !known || c.offset == offset && c.size == size:
			v = join(v, c.value)
		case c.offset < offset+size && offset < c.offset+c.size:
			v = join(v, derive(c.value))
		}
	}
	return v
}

// loadParameter is what an argument of the kernel holds at an offset.
func (a *analysis) loadParameter(param int, known bool, offset, size int64) value {
	bases := a.fields[param]
	if size < a.cellSize || len(bases) == 0 {
		return number(fromInteger)
	}
	if !known {
		v := value{set: true}
		for _, b := range bases {
			v.terms = append(v.terms, term{b, zero | plus})
		}
		return v
	}
	if i := offset / a.cellSize; offset%a.cellSize == 0 && offset >= 0 && int(i) < len(bases) {
		return address(bases[i], 0)
	}
	return number(fromInteger)
}

// store adds to what a region may hold at an offset.
func (a *analysis) store(r int32, offset, size int64, v value) {
	g := &a.regions[r]
	if !g.followed || !v.set {
		return
	}
	for i := range g.cells {
		if c := &g.cells[i]; c.offset == offset && c.size == size {
			a.update(&c.value, v)
			return
		}
	}
	if len(g.cells) == maxCells {
		a.storeAnywhere(r, v)
		return
	}
	g.cells = append(g.cells, cell{offset, size, v})
	a.changed = true
}

// storeAnywhere adds to what a region may hold at any offset.
func (a *analysis) storeAnywhere(r int32, v value) {
	if g := &a.regions[r]; g.followed {
		a.update(&g.anywhere, v)
	}
}

// update joins a value into a place.
func (a *analysis) update(to *value, v value) {
	if !v.set {
		return
	}
	*a.visits -= len(v.terms)
	if joined := join(*to, v); !joined.same(*to) {
		*to = joined
		a.changed = true
	}
}
