// The keys of buffers and nodes: the tables that parsing, writing and formatting go by, and that a test makes the schema and docs/format.md from.

package file

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/internal/words"
	"gopkg.in/yaml.v3"
)

// The places of bufferKeys.
const (
	bufferPlace = iota
	bufferDType
	bufferShape
	bufferDevice
	bufferPinned
	bufferSymbol
	bufferInit
	bufferSave
	bufferExpect
	bufferForeach
	bufferBuffers
	bufferKeyCount
)

// The places of nodeKeys.
const (
	nodeName = iota
	nodeMemcpy
	nodeMemset
	nodeKernel
	nodeMap
	nodeCall
	nodeHost
	nodeAllReduce
	nodeReduce
	nodeBroadcast
	nodeAllGather
	nodeReduceScatter
	nodeAllToAll
	nodeExchange
	nodeSend
	nodeReceive
	nodeTemplate
	nodeArgs
	nodeWith
	nodeGrid
	nodeBlock
	nodeShared
	nodeCooperative
	nodeCluster
	nodeAfter
	nodeStream
	nodePriority
	nodeCost
	nodeDevice
	nodePeer
	nodeWhen
	nodeForeach
	nodeNodes
	nodeRank
	nodeUse
	nodeRepeat
	nodeIf
	nodeElse
	nodeKeyCount
)

// keyRow is what there is to know of a key of T, a buffer or a node.
type keyRow[T any] struct {
	name   string
	before string // the key that it precedes in the canonical form; "": the next one
	of     uint64 // the actions that it belongs to, one bit for each; 0: every node may have it, loops and branches too
	value  string // in the schema: a definition there (x3: up to three of them), boolean, or words; "": the schema says it by hand
	help   string // its line in docs/format.md, which the schema and editors show too

	read   func(p *parser, n *yaml.Node, of *T) bool           // nil: it is read together with others
	launch func(p *parser, f field, spec *dag.LaunchSpec) bool // reads a key of kernels
	write  func(y *yamlWriter, of *T) string                   // "" where it is left out
}

const (
	ofKernel  = 1 << nodeKernel
	anyAction = 1<<(nodeReceive+1) - 1<<nodeMemcpy
	maxStream = 1<<16 - 1
)

// What every CUDA device allows.
var (
	maxGrid  = [3]int64{1<<31 - 1, 65535, 65535}
	maxBlock = [3]int64{1024, 1024, 64}
)

var bufferRows = [bufferKeyCount]keyRow[dag.Buffer]{
	bufferPlace: {name: "place", value: "host, device", help: "`host` or `device`; required",
		write: func(_ *yamlWriter, b *dag.Buffer) string { return b.Place.String() }},
	bufferDType: {name: "dtype",
		help: "`f16` `bf16` `f32` `f64` `i8` `i16` `i32` `i64` `u8` `u16` `u32` `u64` `bool`, " +
			"complex `c64` `c128`, or a [vector](#vectors-and-complex-numbers) such as `f32x4`; required",
		write: func(_ *yamlWriter, b *dag.Buffer) string { return b.DType.String() }},
	bufferShape: {name: "shape", help: "elements along each dimension: `[rows, cols]`; `[]` is a single element; required",
		write: func(_ *yamlWriter, b *dag.Buffer) string { return strings.ReplaceAll(fmt.Sprint(b.Shape), " ", ", ") }},
	bufferDevice: {name: "device", before: "dtype", value: "device", help: "which device; 0 if left out",
		write: func(_ *yamlWriter, b *dag.Buffer) string {
			return given(b.Device != 0 || b.Fixed, int(b.Device), strconv.Itoa)
		}},
	bufferPinned: {name: "pinned", before: "dtype", value: "boolean",
		help:  "`false` for host memory that the driver does not pin. Copies from and to it are not asynchronous",
		write: func(_ *yamlWriter, b *dag.Buffer) string { return given(b.Pageable, false, strconv.FormatBool) }},
	bufferSymbol: {name: "symbol", before: "dtype", help: "the [variable of a module](#variables-of-modules) that the buffer stands for, `MODULE.VARIABLE`",
		read:  (*parser).symbol,
		write: func(_ *yamlWriter, b *dag.Buffer) string { return given(b.Symbol != "", dollars(b.Symbol), yamlText) }},
	bufferInit: {name: "init", help: "the contents before the first replay; for a host buffer, `--load x=in.npy` takes a file instead",
		write: func(y *yamlWriter, b *dag.Buffer) string { return y.init(b.Init) }},
	bufferSave: {name: "save", help: "the `.npy` or raw `.bin` file that the contents are written to after the run (`--save y=out.npy`)",
		write: func(_ *yamlWriter, b *dag.Buffer) string { return given(b.Save != "", dollars(b.Save), yamlText) }},
	bufferExpect: {name: "expect", help: "what the contents must be after the run",
		write: func(y *yamlWriter, b *dag.Buffer) string { return y.expect(b) }},
	bufferForeach: {name: "foreach", before: "place"},
	bufferBuffers: {name: "buffers"},
}

var nodeRows = [nodeKeyCount]keyRow[dag.Node]{
	nodeName:   {name: "name"},
	nodeMemcpy: {name: "memcpy"}, nodeMemset: {name: "memset"}, nodeKernel: {name: "kernel"}, nodeMap: {name: "map"}, nodeCall: {name: "call"},
	nodeHost: {name: "host"}, nodeAllReduce: {name: "allreduce"}, nodeReduce: {name: "reduce"}, nodeBroadcast: {name: "broadcast"},
	nodeAllGather: {name: "allgather"}, nodeReduceScatter: {name: "reducescatter"}, nodeAllToAll: {name: "alltoall"}, nodeExchange: {name: "exchange"},
	nodeSend: {name: "send"}, nodeReceive: {name: "recv"},
	nodeTemplate: {name: "template", of: ofKernel, launch: (*parser).template},
	nodeArgs:     {name: "args", of: ofKernel | 1<<nodeCall | 1<<nodeHost},
	nodeWith:     {name: "with", of: 1<<nodeMap | 1<<nodeUse},
	nodeGrid: {name: "grid", of: ofKernel, value: "count x3",
		help: "blocks: a number or a list of up to three. Library kernels choose for themselves, others need it",
		launch: func(p *parser, f field, spec *dag.LaunchSpec) bool {
			size, ok := p.size3(f.value, "grid", 0, maxGrid)
			if size[1] == 0 || size[2] == 0 {
				size[0] = 0 // nothing is launched
			}
			spec.Grid, spec.HasGrid = size, true
			return ok
		},
		write: func(y *yamlWriter, n *dag.Node) string {
			return given(!y.usual.HasHint || n.Launch.Grid != dag.WholeSize(y.usual.Grid), n.Launch.Grid, dag.SizeText)
		}},
	nodeBlock: {name: "block", of: ofKernel, value: "positive x3",
		help: "threads in a block, likewise; if left out, chosen by occupancy",
		launch: func(p *parser, f field, spec *dag.LaunchSpec) bool {
			size, ok := p.size3(f.value, "block", 1, maxBlock)
			if threads := size[0] * size[1] * size[2]; ok && threads > 1024 {
				p.mistake(position(f.value), "", "block has %d threads; no device allows more than 1024", threads)
				return false
			}
			spec.Block = size
			return ok
		},
		write: func(y *yamlWriter, n *dag.Node) string {
			return given(n.Launch.Block != dag.WholeSize(y.usual.Block) && n.Launch.Block[0] != 0, n.Launch.Block, dag.SizeText)
		}},
	nodeShared: {name: "shared", of: ofKernel, value: "count", help: "bytes of dynamic shared memory",
		launch: func(p *parser, f field, spec *dag.LaunchSpec) bool {
			bytes, ok := p.between(f.value, "shared", 0, 1<<30)
			spec.Shared, spec.HasShared = uint32(bytes), true
			return ok
		},
		write: func(y *yamlWriter, n *dag.Node) string {
			return given(n.Launch.Shared != y.usual.Shared, int(n.Launch.Shared), strconv.Itoa)
		}},
	nodeCooperative: {name: "cooperative", of: ofKernel, value: "boolean",
		help: "`true` if a kernel of a module waits for its whole grid (`cooperative_groups::this_grid().sync()`)",
		launch: func(p *parser, f field, spec *dag.LaunchSpec) (ok bool) {
			spec.Cooperative, ok = p.truth(f.value, "cooperative")
			return p.ofModule(f, spec, !spec.Cooperative, "no kernel of the library waits for its whole grid") && ok
		},
		write: func(y *yamlWriter, n *dag.Node) string { return given(n.Launch.Cooperative, true, strconv.FormatBool) }},
	nodeCluster: {name: "cluster", of: ofKernel, value: "positive x3",
		help: "for kernels of modules: the blocks of a thread block cluster, a number or a list of up to three, 8 blocks at most. " +
			"A kernel with `__cluster_dims__` needs no such line. GPUs have clusters from compute capability 9.0 on",
		launch: func(p *parser, f field, spec *dag.LaunchSpec) (ok bool) {
			spec.Cluster, ok = p.size3(f.value, "cluster", 1, [3]int64{dag.MaxCluster, dag.MaxCluster, dag.MaxCluster})
			if !p.ofModule(f, spec, false, "no kernel of the library uses clusters") {
				return false
			}
			if problem := dag.ClusterProblem(spec.Cluster, [3]uint32{}); ok && problem != "" {
				p.mistake(position(f.value), "", "%s", problem)
				return false
			}
			return ok
		},
		write: func(y *yamlWriter, n *dag.Node) string {
			return given(n.Launch.Cluster != [3]uint32{}, n.Launch.Cluster, dag.SizeText)
		}},
	nodeAfter: {name: "after", help: "nodes that must finish first although no data requires it: `[fill]`, or a pattern, `[\"spin.*\"]`",
		write: func(y *yamlWriter, n *dag.Node) string {
			if len(n.After) == 0 {
				return ""
			}
			names := make([]string, len(n.After))
			for i, from := range n.After {
				names[i] = yamlText(dollars(y.p.Nodes[from].Name))
			}
			return "[" + strings.Join(names, ", ") + "]"
		}},
	nodeStream: {name: "stream", help: "the stream that it runs on, whatever the planner would choose",
		read: func(p *parser, n *yaml.Node, node *dag.Node) bool {
			v, ok := p.between(n, "stream", 0, maxStream)
			node.Stream = dag.OnStream(int32(v))
			return ok
		},
		write: func(y *yamlWriter, n *dag.Node) string {
			return given(n.Stream.Number() >= 0, int(n.Stream.Number()), strconv.Itoa)
		}},
	nodePriority: {name: "priority", value: "high, normal, low", help: "`high`, `normal` or `low`. Nodes of different priority never share a stream",
		read: func(p *parser, n *yaml.Node, node *dag.Node) bool {
			word := p.word(n, "priority", "high", "normal", "low")
			node.Priority = map[string]dag.Priority{"high": dag.High, "low": dag.Low}[word]
			return word != ""
		},
		write: func(y *yamlWriter, n *dag.Node) string {
			return given(n.Priority != y.usual.priority, n.Priority, dag.Priority.String)
		}},
	nodeCost: {name: "cost", help: "`{us: 12.5}`, how long it takes, for planning",
		read: (*parser).cost,
		write: func(y *yamlWriter, n *dag.Node) string {
			return given(n.HasCost, n.CostUS, func(us float64) string { return "{us: " + y.float(us) + "}" })
		}},
	nodeDevice: {name: "device", of: anyAction, value: "device", help: "where it runs; if left out, where its buffers are",
		read: func(p *parser, n *yaml.Node, node *dag.Node) bool {
			v, ok := p.between(n, "device", 0, dag.MaxDevices-1)
			node.Device, node.Fixed = int32(v), true
			return ok
		},
		write: func(y *yamlWriter, n *dag.Node) string {
			return given(n.Device != y.usual.device || n.Fixed, int(n.Device), strconv.Itoa)
		}},
	nodePeer: {name: "peer", of: ofKernel | 1<<nodeMap, value: "boolean", help: "`true` for a kernel that accesses buffers of another device",
		read: func(p *parser, n *yaml.Node, node *dag.Node) (ok bool) {
			node.Peer, ok = p.truth(n, "peer")
			return ok
		},
		write: func(y *yamlWriter, n *dag.Node) string { return given(n.Peer, true, strconv.FormatBool) }},
	nodeWhen:    {name: "when", value: "condition", help: "the node is left out if this is false"},
	nodeForeach: {name: "foreach", before: "name"},
	nodeNodes:   {name: "nodes"},
	nodeRank:    {name: "rank", before: "template", of: 1<<nodeSend | 1<<nodeReceive},
	nodeUse:     {name: "use", before: "allreduce", of: anyAction},
	nodeRepeat:  {name: "repeat", before: "memcpy"},
	nodeIf:      {name: "if", before: "memcpy"},
	nodeElse:    {name: "else"},
}

// The functions in the rows look up keys, so the lists of keys cannot be part of their declaration.
func init() { bufferKeys.keys, nodeKeys.keys = names(bufferRows[:]), names(nodeRows[:]) }

func names[T any](rows []keyRow[T]) (names []string) {
	for k := range rows {
		names = append(names, rows[k].name)
	}
	return names
}

// canonical is the keys in the order of the canonical form.
func canonical[T any](rows []keyRow[T]) []string {
	order := names(rows)
	for k := range rows {
		if row := &rows[k]; row.before != "" {
			order = slices.DeleteFunc(order, func(key string) bool { return key == row.name })
			order = slices.Insert(order, slices.Index(order, row.before), row.name)
		}
	}
	return order
}

// readRows reads the keys that a buffer or node has.
func readRows[T any](p *parser, rows []keyRow[T], f []field, of *T) bool {
	ok := true
	for k := range rows {
		if f[k].value != nil && rows[k].read != nil {
			ok = rows[k].read(p, f[k].value, of) && ok
		}
	}
	return ok
}

// writeRows writes the keys that a buffer or node has.
func writeRows[T any](y *yamlWriter, rows []keyRow[T], of *T, separator string, launches bool) {
	for k := range rows {
		row := &rows[k]
		if row.write == nil || row.launch != nil && !launches {
			continue
		}
		if text := row.write(y, of); text != "" {
			y.add(separator, row.name, ": ", text)
			separator = ", "
		}
	}
}

// given is the text of a value, or "" where it is left out.
func given[T any](is bool, value T, text func(T) string) string {
	if is {
		return text(value)
	}
	return ""
}

// ofModule refuses a key with a kernel of the library, unless it says nothing there.
func (p *parser) ofModule(f field, spec *dag.LaunchSpec, idle bool, why string) bool {
	if spec.Module == -1 && !idle {
		p.mistake(position(f.key), "", "%s belongs to a kernel of a module; %s", f.key.Value, why)
		return false
	}
	return true
}

// template reads the arguments of a template, as C++ has them in angle brackets.
func (p *parser) template(f field, spec *dag.LaunchSpec) bool {
	ok := p.ofModule(f, spec, false, "the library's kernels choose by the types of their buffers")
	if f.value.Kind != yaml.SequenceNode {
		p.wrongList(f.value, "template", "a list")
		return false
	}
	var list []string
	for _, item := range f.value.Content {
		text, fine := p.verbatim(item, "a template's argument")
		list, ok = append(list, text), ok && fine
	}
	arguments := "<" + strings.Join(list, ", ") + ">"
	spec.Kernel, spec.Label = spec.Kernel+arguments, spec.Label+arguments
	return ok
}

var costKeys = keySet{"cost", []string{"us"}}

func (p *parser) cost(n *yaml.Node, node *dag.Node) bool {
	var f [1]field
	if n.Kind == yaml.ScalarNode && !isNull(n) {
		hint := "write {us: 12.5}"
		if e, err := p.parsedExpr(n.Value); err == nil {
			if _, err = e.Eval(p); err == nil {
				hint = fmt.Sprintf("write {us: %s}", words.Shorten(n.Value))
			}
		}
		p.mistake(position(n), hint, "cost needs a unit")
		return false
	}
	if !p.fields(n, &costKeys, f[:]) {
		return false
	}
	if f[0].value == nil {
		p.mistake(position(n), "write {us: 12.5}", "cost is empty")
		return false
	}
	us, ok := p.float(f[0].value, "us")
	if ok && us < 0 {
		p.mistake(position(f[0].value), "", "us must not be negative, but is %v", us)
		return false
	}
	node.CostUS, node.HasCost = us, ok
	return ok
}
