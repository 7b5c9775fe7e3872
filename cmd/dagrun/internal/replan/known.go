// What a recording tells of a graph: what each node touches, through which words of its parameters, and which of these words can be moved.

package replan

import (
	"encoding/binary"
	"fmt"
	"slices"
	"sort"

	"github.com/dagrun/dagrun/internal/recording"
)

// Known is what was found out about a graph. Addresses in it are those of the process that was recorded, and serve as names.
type Known struct {
	Version int     `json:"version"`
	Device  string  `json:"device"`
	Torch   string  `json:"torch"`
	Nodes   []Seen  `json:"nodes"`
	Values  []Value `json:"values"`

	recorded *Graph // as it was in the process that was recorded
}

// Graph is the graph in the process that was recorded, with durations that were measured in another; nil if there are none.
func (k *Known) Graph(us []float64) *Graph {
	g := *k.recorded
	if len(us) == len(g.Nodes) {
		g.US = us
	}
	return &g
}

// Value is memory that nodes write before others read it: a tensor of the graph, or one of the contents that a workspace has one after the other.
type Value struct {
	Bytes  uint64 `json:"bytes"`
	Pool   bool   `json:"pool"`             // of the graph's own memory
	At     uint64 `json:"at"`               // where it was
	Born   int    `json:"born"`             // its turn among all that the program was given
	Pinned string `json:"pinned,omitempty"` // why it cannot be moved
}

func (v *Value) within(e Extent) bool { return e[0] <= v.At && v.At+v.Bytes <= e.end() }

// Seen is a node with what it was seen to touch.
type Seen struct {
	Node
	Stream int    `json:"stream"`           // on which it was captured
	Opaque string `json:"opaque,omitempty"` // why it may have touched more
	Words  []Word `json:"words,omitempty"`
	Uses   []Use  `json:"uses,omitempty"`
}

// Word is a word of a kernel's parameters that points to a value.
type Word struct {
	Offset  int    `json:"offset"`
	Value   int    `json:"value"`
	Delta   int64  `json:"delta"` // from the beginning of the value
	Touched bool   `json:"touched"`
	Fixed   string `json:"fixed,omitempty"` // why it cannot be changed
}

// Use is how a node uses a value.
type Use struct {
	Value  int  `json:"value"`
	Read   bool `json:"read,omitempty"`
	Write  bool `json:"write,omitempty"`
	Guess  bool `json:"guess,omitempty"` // it points there, and was not seen to touch it
	Atomic bool `json:"atomic,omitempty"`

	Old []Extent `json:"old,omitempty"` // bytes of the value that it reads and nothing in the graph writes
}

const (
	notOwn    = "not the graph's own memory"
	readFirst = "it is read before the graph writes it"
)

const sometimes = "its accesses change when a word is moved"

// learner collects what is known of a graph.
type learner struct {
	p      *recording.Process
	g      *Graph
	known  *Known
	order  []int
	usual  []byMode
	tries  [][]attempt
	apart  map[int][]int // of kernels whose accesses cannot be measured: the words that lead to places of their own, by their results
	blocks *blocks
	values map[int32]int // by block
	uses   map[int][]used

	position []int // of each node in the order in which they were captured
}

// attempt is a launch with words moved.
type attempt struct {
	offsets  []int
	distance int64
	seen     byMode
	measured bool
}

// used is an access of a node to a value, in bytes.
type used struct {
	node int
	byMode
}

// Learn reads what the Python package noted about a graph in a recording.
func Learn(p *recording.Process, note recording.NoteInfo) (*Known, error) {
	g, err := DecodeGraph([]byte(note.Text))
	if err != nil {
		return nil, err
	}
	l := &learner{p: p, g: g, known: &Known{Version: 1, Device: g.Device, Torch: g.Torch, Nodes: make([]Seen, len(g.Nodes)), recorded: g},
		usual: make([]byMode, len(g.Nodes)), tries: make([][]attempt, len(g.Nodes)), blocks: newBlocks(p), values: map[int32]int{}, apart: map[int][]int{},
		uses: map[int][]used{}}
	for k, n := range g.Nodes {
		l.known.Nodes[k].Node = n
	}
	if l.order, err = g.order(); err != nil {
		return nil, err
	}
	if err := l.launches(note.Value); err != nil {
		return nil, err
	}
	moments, err := l.captured(note.Value)
	if err != nil {
		return nil, err
	}
	l.position = make([]int, len(g.Nodes))
	for turn, k := range moments {
		l.position[k.node] = turn
		l.blocks.until(k.moment)
		l.look(k.node)
	}
	l.split()
	return l.known, nil
}

// launches finds the launches that the Python package made, and what they touched.
func (l *learner) launches(until uint64) error {
	var calls []*recording.Call
	for i := range l.p.Calls {
		if c := &l.p.Calls[i]; c.Kind == recording.Launch && len(c.Args) > 3 && c.Args[0] == l.g.Stream && c.Begin < until {
			calls = append(calls, c)
		}
	}
	if len(calls) < len(l.g.Tried) {
		return fmt.Errorf("the recording has %d of the %d launches by which a graph of %d nodes was tried: it was cut, or the program was killed", len(calls),
			len(l.g.Tried), len(l.g.Nodes))
	}
	calls = calls[len(calls)-len(l.g.Tried):]
	for k, try := range l.g.Tried {
		c, node := calls[k], &l.known.Nodes[try.Node]
		if name := l.p.FunctionName(c.Args[2], c.Begin); name != node.Function {
			return fmt.Errorf("launch %d of the trial of a graph is of %s, where the graph has %s", k, name, node.Function)
		}
		a := l.p.Accesses[c.Args[3]]
		whole := a != nil && !a.Lost && !a.Unmeasured && !a.Opaque
		var seen byMode
		if a != nil {
			seen = split(a.Runs)
		}
		if try.Results != 0 {
			if try.Results == sameResults {
				l.apart[try.Node] = try.Offsets
			}
			continue
		}
		if len(try.Offsets) > 0 {
			l.tries[try.Node] = append(l.tries[try.Node], attempt{try.Offsets, try.Distance, seen, whole})
			continue
		}
		l.usual[try.Node] = seen
		switch f := l.function(c); {
		case a == nil, a != nil && a.Unmeasured:
			node.Opaque = "its accesses were not measured"
		case f != nil && f.Opaque, a.Opaque:
			node.Opaque = "its code has accesses that cannot be measured"
		case a.Lost:
			node.Opaque = "it made too many accesses to be measured"
		}
	}
	return nil
}

func (l *learner) function(c *recording.Call) *recording.FunctionInfo {
	var found *recording.FunctionInfo
	for k, f := range l.p.Functions[c.Args[2]] {
		if f.Sequence <= c.Begin {
			found = &l.p.Functions[c.Args[2]][k]
		}
	}
	return found
}

type captured struct {
	node   int
	moment uint64
}

// captured returns the nodes in the order in which they were captured, with the moments, and notes on which streams.
func (l *learner) captured(until uint64) ([]captured, error) {
	calls := map[uint64]*recording.Call{}
	for i := range l.p.Calls {
		if c := &l.p.Calls[i]; c.Begin < until && len(c.Args) > 1 &&
			(c.Kind == recording.Launch || c.Kind == recording.Copy || c.Kind == recording.Set) && c.Args[1] != 0 {
			calls[c.Args[1]] = c
		}
	}
	var out []captured
	streams := map[uint64]int{}
	for k, n := range l.g.Nodes {
		c, found := calls[n.Handle]
		if !found && n.Type != emptyNode {
			return nil, fmt.Errorf("node %d of a graph is of no launch, copy or memset that was captured: graphs that were built node by node cannot be planned again",
				k)
		}
		if !found {
			out = append(out, captured{k, 0})
			continue
		}
		if _, known := streams[c.Args[0]]; !known {
			streams[c.Args[0]] = len(streams)
		}
		l.known.Nodes[k].Stream = streams[c.Args[0]]
		out = append(out, captured{k, c.Begin})
	}
	sort.SliceStable(out, func(a, b int) bool { return out[a].moment < out[b].moment })
	return out, nil
}

// look attributes the accesses of a node to the words of its parameters, with the memory as it was when the node was captured.
func (l *learner) look(k int) {
	node := &l.known.Nodes[k]
	switch {
	case node.Type == copyNode && node.Copy != nil:
		c := node.Copy
		l.touch(k, c.extent(&c.Source), recording.Read)
		l.touch(k, c.extent(&c.Destination), recording.Write)
		return
	case node.Type == setNode && node.Set != nil:
		l.touch(k, node.Set.extent(), recording.Write)
		return
	case node.Type == emptyNode:
		return
	case node.Type != kernelNode:
		node.Opaque = fmt.Sprintf("a node of type %d", node.Type)
		return
	}
	rest := l.usual[k]
	for _, group := range groupsOf(l.tries[k]) {
		if l.byResults(k, group) {
			for m, value := 0, l.wordApart(node, k, group); m < len(rest) && value >= 0; m++ {
				v := &l.known.Values[value]
				rest[m] = without(rest[m], []stretch{{v.At, v.At + v.Bytes}})
			}
			continue
		}
		follow, fixed := follows(&l.usual[k], group.together)
		if node.Opaque != "" {
			fixed = node.Opaque
		}
		for m := range rest {
			rest[m] = without(rest[m], follow[m])
		}
		l.words(node, k, group, &follow, fixed)
	}
	l.elsewhere(node, k, rest)
}

// group is the words of a launch that hold one address, with the launches in which they were moved: together, and each by itself if there are several.
type group struct {
	offsets  []int
	together []attempt
	alone    map[int][]attempt
}

func groupsOf(tries []attempt) []*group {
	var groups []*group
	for _, t := range tries {
		at := slices.IndexFunc(groups, func(g *group) bool { return slices.Contains(g.offsets, t.offsets[0]) })
		switch {
		case at < 0:
			groups = append(groups, &group{t.offsets, []attempt{t}, map[int][]attempt{}})
		case len(groups[at].offsets) == len(t.offsets):
			groups[at].together = append(groups[at].together, t)
		default:
			groups[at].alone[t.offsets[0]] = append(groups[at].alone[t.offsets[0]], t)
		}
	}
	return groups
}

// follows returns the accesses that followed a word in all tries, or why that cannot be said.
func follows(usual *byMode, tries []attempt) (byMode, string) {
	var follow byMode
	for n, t := range tries {
		if !t.measured {
			return byMode{}, "its accesses were not measured when a word was moved"
		}
		f, ok := followed(usual, &t.seen, t.distance)
		if !ok || n > 0 && !sameBytes(&f, &follow) {
			return byMode{}, sometimes
		}
		follow = f
	}
	return follow, ""
}

func sameBytes(a, b *byMode) bool {
	for m := range a {
		if !slices.Equal(a[m], b[m]) {
			return false
		}
	}
	return true
}

// byResults tells whether words of a kernel that cannot be measured were seen to lead to a place of their own.
func (l *learner) byResults(k int, g *group) bool {
	return l.known.Nodes[k].Opaque != "" && !slices.ContainsFunc(g.offsets, func(offset int) bool { return !slices.Contains(l.apart[k], offset) })
}

// wordApart notes such words, and returns the value that they point to, all of which the kernel reads and writes for all that is known; -1 if it is none.
func (l *learner) wordApart(node *Seen, k int, g *group) int {
	address := binary.LittleEndian.Uint64(node.Bytes[g.offsets[0]:])
	value := l.valueAt(address)
	if value < 0 {
		return value
	}
	v := &l.known.Values[value]
	for _, offset := range g.offsets {
		node.Words = append(node.Words, Word{Offset: offset, Value: value, Delta: int64(address - v.At), Touched: true})
	}
	whole := []stretch{{v.At, v.At + v.Bytes}}
	l.use(k, value, &byMode{whole, whole})
	return value
}

// words notes the words of a node that hold one address.
func (l *learner) words(node *Seen, k int, g *group, follow *byMode, fixed string) {
	address := binary.LittleEndian.Uint64(node.Bytes[g.offsets[0]:])
	reached := -1
	for m := range follow {
		for _, s := range follow[m] {
			switch value := l.valueAt(s.low); {
			case value < 0 || value != l.valueAt(s.high-1):
				fixed = "a word reaches what is no tensor"
			case reached >= 0 && reached != value:
				fixed = "a word reaches several tensors"
				l.pin(value, fixed)
			default:
				reached = value
			}
		}
	}
	touched := reached >= 0
	if !touched {
		if reached = l.valueAt(address); reached < 0 {
			return
		}
	}
	for _, offset := range g.offsets {
		own, why := follows(&l.usual[k], g.alone[offset])
		node.Words = append(node.Words, Word{offset, reached, int64(address - l.known.Values[reached].At), touched &&
			(len(g.alone) == 0 || why != "" || !own.empty()), fixed})
	}
	if fixed != "" {
		l.pin(reached, fixed)
	}
	if touched {
		l.use(k, reached, follow)
	} else {
		l.guess(k, reached)
	}
}

// elsewhere attributes the accesses that followed no word: those of memory that is not the graph's own, which stays where it is.
func (l *learner) elsewhere(node *Seen, k int, rest byMode) {
	pointed := map[int]bool{}
	for _, p := range node.Parameters {
		for at := (p[0] + 7) &^ 7; at+8 <= p[0]+p[1] && at+8 <= len(node.Bytes); at += 8 {
			address := binary.LittleEndian.Uint64(node.Bytes[at:])
			tried := slices.ContainsFunc(node.Words, func(w Word) bool { return w.Offset == at })
			if value := l.valueAt(address); !tried && value >= 0 && !l.known.Values[value].Pool {
				node.Words = append(node.Words, Word{Offset: at, Value: value, Delta: int64(address - l.known.Values[value].At), Fixed: notOwn})
				pointed[value] = true
			}
		}
	}
	seen := map[int]*byMode{}
	for m := range rest {
		for _, s := range rest[m] {
			for s.low < s.high {
				value := l.valueAt(s.low)
				if value < 0 {
					value = l.addValue(Extent{s.low &^ 511, roundUp(s.high) - s.low&^511}, false, "no allocation")
				}
				v := &l.known.Values[value]
				end := min(s.high, v.At+v.Bytes)
				if seen[value] == nil {
					seen[value] = &byMode{}
				}
				seen[value][m] = extend(seen[value][m], stretch{s.low, end})
				s.low = end
			}
		}
	}
	for _, value := range sortedKeys(seen) {
		v := &l.known.Values[value]
		if v.Pool {
			l.pin(value, "it is reached by no word of the parameters alone")
			if node.Opaque == "" {
				node.Opaque = "it reaches memory by pointers that lie in memory"
			}
		}
		l.use(k, value, seen[value])
		delete(pointed, value)
		for w := range node.Words {
			if node.Words[w].Value == value {
				node.Words[w].Touched = true
			}
		}
	}
	for _, value := range sortedKeys(pointed) {
		l.guess(k, value)
	}
}

func sortedKeys[T any](m map[int]T) []int {
	var keys []int
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func (l *learner) touch(k int, e Extent, mode uint32) {
	value := l.valueAt(e[0])
	if value < 0 {
		value = l.addValue(e, false, "no allocation")
	}
	seen := split([]recording.Run{{Address: e[0], Bytes: uint32(e[1]), Modes: mode}})
	l.use(k, value, &seen)
}

// valueAt returns the value of a block that an address lies in, or -1.
func (l *learner) valueAt(address uint64) int {
	b := l.blocks.at(address)
	if b < 0 {
		return -1
	}
	if value, found := l.values[b]; found {
		return value
	}
	is := &l.blocks.all[b]
	pool := slices.ContainsFunc(l.g.Pool, func(e Extent) bool { return e.overlaps(is.extent) })
	pinned := ""
	switch {
	case !pool:
		pinned = notOwn
	case !is.tensor:
		pinned = "the allocator did not tell of it"
	}
	value := l.addValue(is.extent, pool, pinned)
	l.known.Values[value].Born = int(b)
	l.values[b] = value
	return value
}

func (l *learner) addValue(e Extent, pool bool, pinned string) int {
	l.known.Values = append(l.known.Values, Value{Bytes: e[1], Pool: pool, At: e[0], Pinned: pinned})
	return len(l.known.Values) - 1
}

func (l *learner) pin(value int, why string) {
	if v := &l.known.Values[value]; v.Pinned == "" {
		v.Pinned = why
	}
}

func (l *learner) use(k, value int, seen *byMode) {
	v := &l.known.Values[value]
	own := used{node: k}
	for m := range seen {
		own.byMode[m] = within(seen[m], stretch{v.At, v.At + v.Bytes})
	}
	if list := l.uses[value]; len(list) > 0 && list[len(list)-1].node == k { // by another word
		for m := range own.byMode {
			list[len(list)-1].byMode[m] = union(list[len(list)-1].byMode[m], own.byMode[m])
		}
	} else {
		l.uses[value] = append(list, own)
	}
	l.add(k, Use{Value: value, Read: len(seen[0]) > 0, Write: len(seen[1]) > 0, Atomic: len(seen[2]) > 0})
}

func (l *learner) guess(k, value int) { l.add(k, Use{Value: value, Guess: true}) }

func (l *learner) add(k int, u Use) {
	node := &l.known.Nodes[k]
	for n := range node.Uses {
		if at := &node.Uses[n]; at.Value == u.Value {
			at.Read, at.Write, at.Atomic, at.Guess = at.Read || u.Read, at.Write || u.Write, at.Atomic || u.Atomic, at.Guess && u.Guess
			return
		}
	}
	node.Uses = append(node.Uses, u)
}

// split makes a value of each of the contents that a block has one after the other. Memory that is not the graph's own but used again and again, as workspaces
// are, keeps only what it holds at the end: all contents before that can lie elsewhere.
func (l *learner) split() {
	for value := range len(l.known.Values) {
		v := l.known.Values[value]
		shared := slices.ContainsFunc(l.g.Shared, (&v).within)
		if uses := l.uses[value]; len(uses) > 0 && (v.Pool || shared) {
			l.contents(value, uses, shared)
		}
	}
}

func (l *learner) contents(value int, uses []used, shared bool) {
	var left []stretch // bytes that others may read after the graph
	if shared {
		for _, u := range uses {
			left = union(left, u.byMode[1])
		}
	}
	starts, old := fresh(uses, left)
	if len(starts) == 0 || starts[0] != 0 {
		l.old(value, uses, old)
		starts = append([]int{0}, starts...)
	}
	last, is := value, l.known.Values[value]
	for _, start := range starts[1:] {
		if shared && is.Pinned == notOwn {
			l.known.Values[last].Pinned = ""
		}
		l.known.Values = append(l.known.Values, is)
		from := l.position[uses[start].node]
		for k := range l.known.Nodes {
			if l.position[k] >= from {
				l.known.Nodes[k].rename(last, len(l.known.Values)-1)
			}
		}
		last = len(l.known.Values) - 1
	}
}

// before returns the bytes at the place of a value that others wrote before a moment.
func (l *learner) before(value, moment int) []stretch {
	v := &l.known.Values[value]
	var all []stretch
	for other, uses := range l.uses {
		o := &l.known.Values[other]
		if other == value || o.At >= v.At+v.Bytes || v.At >= o.At+o.Bytes {
			continue
		}
		for _, u := range uses {
			if l.position[u.node] < moment {
				all = union(all, within(moved(u.byMode[1], int64(o.At)), stretch{v.At, v.At + v.Bytes}))
			}
		}
	}
	return all
}

// rename lets a node use another value where it used one.
func (s *Seen) rename(from, to int) {
	for k := range s.Words {
		if s.Words[k].Value == from {
			s.Words[k].Value = to
		}
	}
	for k := range s.Uses {
		if s.Uses[k].Value == from {
			s.Uses[k].Value = to
		}
	}
}

// fresh returns the uses of a value at which it begins anew: from there on, no byte is read that was written before.
// left is read after all of them.
// It returns, too, the bytes that are read before any of them writes.
func fresh(uses []used, left []stretch) (starts []int, old []stretch) {
	needed := left // bytes that are read from here on and were written before
	for k := len(uses) - 1; k >= 0; k-- {
		u := &uses[k]
		needed = union(without(needed, u.byMode[1]), union(u.byMode[0], u.byMode[2]))
		if len(needed) == 0 {
			starts = append(starts, k)
		}
	}
	slices.Reverse(starts)
	return starts, needed
}

// old deals with bytes of a value that are read before the graph writes them. If they may be state, the value stays. Else they are what lay there by chance,
// in padding for example, and the program tries whether it matters.
//
// They may be state if the graph writes them later, and nothing else in the graph wrote to the same place before. Kernels that add up in a workspace write
// bytes and read them in one launch, which looks the same; but where such a workspace lies in memory that other values have just used, it holds their bytes.
func (l *learner) old(value int, uses []used, bytes []stretch) {
	written := false
	for _, u := range uses {
		written = written || len(common(bytes, u.byMode[1])) > 0 || len(common(bytes, u.byMode[2])) > 0
	}
	if written && len(without(bytes, l.before(value, l.position[uses[0].node]))) > 0 {
		l.pin(value, readFirst)
		return
	}
	for _, u := range uses {
		node := &l.known.Nodes[u.node]
		for k := range node.Uses {
			if node.Uses[k].Value != value {
				continue
			}
			for _, s := range common(bytes, u.byMode[0]) {
				node.Uses[k].Old = append(node.Uses[k].Old, Extent{s.low, s.high - s.low})
			}
		}
	}
}
