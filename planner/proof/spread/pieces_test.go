// Tests of what the proof of a spread compares before it follows any bytes: every buffer, node and body must be what it stands for. Each case
// changes one thing of a right spread.

package spread

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/dag/file"
	"github.com/dagrun/dagrun/kernels"
	"github.com/dagrun/dagrun/planner/internal/placement"
	"github.com/dagrun/dagrun/planner/plan"
	"github.com/dagrun/dagrun/planner/proof"
)

const declaredPipeline = `version: 1
name: declared
buffers:
  h: {place: host, dtype: f32, shape: [64]}
  out: {place: host, dtype: f32, shape: [64], save: out.npy}
  x: {place: device, dtype: f32, shape: [64], init: 1}
  y: {place: device, dtype: f32, shape: [64]}
  z: {place: device, dtype: f32, shape: [64], device: 0}
  r: {place: device, dtype: f32, shape: [64], save: r.npy, expect: {value: 1}}
  t: {place: device, dtype: f32, shape: [64]}
  p: {place: device, dtype: f32, shape: [64]}
  spare: {place: device, dtype: f32, shape: [64]}
nodes:
  - {name: up, memcpy: {from: h, to: y}}
  - {name: fill, memset: {to: r, value: 1}, after: [up]}
  - {name: scale, kernel: scale, args: [64, 2, x], cost: {us: 5}}
  - {name: add, kernel: add, args: [64, x, y, z], device: 0}
  - name: loop
    repeat: {until: t(0..1) > 5, most: 7}
    nodes:
      - {name: grow, kernel: add, args: [64, y, x, t]}
      - {name: more, kernel: scale, args: [64, 3, t]}
  - {name: peers, kernel: add, args: [64, z, z, p], peer: true, device: 0}
  - {name: down, memcpy: {from: z, to: out}}
`

func parsed(t *testing.T, text string) *dag.Graph {
	t.Helper()
	g, err := file.Parse([]byte(text), file.Options{Library: kernels.Library()})
	require.NoError(t, err)
	return g
}

// declaredSpread puts scale and the loop on device 1, and the rest on device 0.
func declaredSpread(t *testing.T) (*dag.Graph, *plan.Spread) {
	t.Helper()
	g := parsed(t, declaredPipeline)
	p, err := placement.NewProblem(g, 2, nil)
	require.NoError(t, err)
	at := make([]int32, len(p.Fixed))
	for i, node := range g.Nodes {
		if node.Name == "scale" || node.Name == "loop" {
			at[i] = 1
		}
	}
	for i := len(g.Nodes); i < len(at); i++ {
		at[i] = 1
	}
	s, err := placement.Transform(p, at)
	require.NoError(t, err)
	require.NoError(t, Verify(g, s))
	return g, s
}

// Places of the spread's buffers and nodes.
const (
	hostH, hostOut, xOn1, xOn0, yOn0, yOn1, zOn0, rOn0, tOn1, pOn0, spare = 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10

	nodeUp, nodeFill, nodeScale, copyX, nodeAdd, copyY, nodeLoop, nodePeers, nodeDown = 0, 1, 2, 3, 4, 5, 6, 7, 8
)

// parts gives cases what they change.
type parts struct {
	g *dag.Graph // the original
	s *plan.Spread
}

func (c *parts) buffer(k int) *dag.Buffer { return &c.s.Graph.Buffers[k] }
func (c *parts) node(k int) *dag.Node     { return &c.s.Graph.Nodes[k] }

// copy, set, launch and control return what the original does not share.
func (c *parts) copy(k int) *dag.Copy {
	own := *c.node(k).Copy
	c.node(k).Copy = &own
	return &own
}

func (c *parts) set(k int) *dag.Set {
	own := *c.node(k).Set
	c.node(k).Set = &own
	return &own
}

func (c *parts) launch(k int) *dag.Launch {
	own := *c.node(k).Launch
	own.Args = slices.Clone(own.Args)
	c.node(k).Launch = &own
	return &own
}

func (c *parts) control() *dag.Control {
	own := *c.node(nodeLoop).Control
	c.node(nodeLoop).Control = &own
	return &own
}

func (c *parts) condition() *dag.Condition {
	own := *c.control().Condition
	own.Types, own.Operands = slices.Clone(own.Types), slices.Clone(own.Operands)
	c.node(nodeLoop).Control.Condition = &own
	return &own
}

func (c *parts) access(k, j int) *dag.Access { return &c.s.Graph.Accesses(dag.NodeID(k))[j] }

// twin makes the spare buffer like another one.
func (c *parts) twin(k int) { *c.buffer(spare), c.s.Buffers[spare] = *c.buffer(k), c.s.Buffers[k] }

// named makes t a variable of a module, in both graphs.
func (c *parts) named() {
	c.g.Buffers[6].Symbol, c.g.Buffers[6].Device = "m.t", 1
	c.buffer(tOn1).Symbol = "m.t"
}

// variables is a kernel that uses a variable of its module.
type variables struct {
	dag.LaunchKernel
	constant bool
}

func (v variables) SymbolUses() []dag.SymbolUse {
	return []dag.SymbolUse{{Symbol: dag.Symbol{Name: "v", Constant: v.constant}}}
}

// onVariables lets the loose kernel scale use a variable of its module.
func (c *parts) onVariables(constant bool) {
	kernel := variables{c.g.Nodes[2].Launch.Kernel, constant}
	own := *c.g.Nodes[2].Launch
	own.Kernel = kernel
	c.g.Nodes[2].Launch = &own
	c.launch(nodeScale).Kernel = kernel
}

func TestSpreadsThatAreNotThePipelineAreRefused(t *testing.T) {
	const (
		sync     = `its modules or its sync are not those of the pipeline`
		hostStay = `host buffer "h" must stay as it is`
		tStays   = `buffer "t" must stay as it is on device 1`
		otherR   = `buffer "r" is saved or compared in place of "r", but is not the same`
		test     = `"loop" makes other passes or has another condition than in the pipeline`
		noCopy   = `"x 1->0" is not in the pipeline, and is no copy`
	)
	work := func(name string) string { return `"` + name + `" does other work than "` + name + `" of the pipeline` }
	for _, c := range []struct {
		name  string
		spoil func(c *parts)
		want  string
	}{
		{"nothing", func(c *parts) {}, ""},
		{"a piece too few", func(c *parts) { c.s.Buffers = c.s.Buffers[:10] }, "it stands for 10 buffers and 9 nodes, but has 11 and 9"},
		{"a node too few", func(c *parts) { c.s.Nodes = c.s.Nodes[:8] }, "it stands for 11 buffers and 8 nodes, but has 11 and 9"},
		{"another sync", func(c *parts) { c.s.Graph.Sync = dag.SyncExplicit }, sync},
		{"a module too many", func(c *parts) { c.s.Graph.Modules = append(c.s.Graph.Modules, dag.Module{Name: "m"}) }, sync},
		{"a module of another name", func(c *parts) {
			c.g.Modules, c.s.Graph.Modules = []dag.Module{{Name: "m", Path: "a.ptx"}}, []dag.Module{{Name: "n", Path: "a.ptx"}}
		}, sync},
		{"a module of another file", func(c *parts) {
			c.g.Modules, c.s.Graph.Modules = []dag.Module{{Name: "m", Path: "a.ptx"}}, []dag.Module{{Name: "m", Path: "b.ptx"}}
		}, sync},
		{"a piece of no buffer", func(c *parts) { c.s.Buffers[tOn1].Buffer = -1 }, `buffer "t" stands for buffer -1, but there are 9`},
		{"a piece behind the buffers", func(c *parts) { c.s.Buffers[tOn1].Buffer = 9 }, `buffer "t" stands for buffer 9, but there are 9`},
		{"a piece that begins too early", func(c *parts) { c.s.Buffers[tOn1].Lo = -1 }, `buffer "t" stands for bytes -1 to 255 of "t", which has 256`},
		{"a piece that ends too late", func(c *parts) { c.s.Buffers[tOn1].Lo = 1 }, `buffer "t" stands for bytes 1 to 257 of "t", which has 256`},
		{"a piece behind its buffer", func(c *parts) { c.s.Buffers[tOn1].Lo, c.buffer(tOn1).Bytes = 257, 0 }, `buffer "t" stands for bytes 257 to 257 of "t", which has 256`},
		{"a piece of less than nothing", func(c *parts) { c.buffer(tOn1).Bytes = -1 }, `buffer "t" stands for bytes 0 to -1 of "t", which has 256`},
		{"another type", func(c *parts) { c.buffer(tOn1).DType = dag.F64 }, `buffer "t" is of another kind than "t", for which it stands`},
		{"a variable", func(c *parts) { c.buffer(tOn1).Symbol = "m.t" }, `buffer "t" is of another kind than "t", for which it stands`},
		{"scratch", func(c *parts) { c.buffer(tOn1).Scratch = true }, `buffer "t" is of another kind than "t", for which it stands`},
		{"a host buffer on a device", func(c *parts) { c.buffer(hostH).Place = dag.Device }, hostStay},
		{"a host buffer that is pageable", func(c *parts) { c.buffer(hostH).Pageable = true }, hostStay},
		{"a part of a host buffer", func(c *parts) { c.buffer(hostH).Bytes = 128 }, hostStay},
		{"the end of a host buffer", func(c *parts) { c.buffer(hostH).Bytes, c.s.Buffers[hostH].Lo = 128, 128 }, hostStay},
		{"a host buffer twice", func(c *parts) { c.twin(hostH) }, hostStay},
		{"a variable as it is", func(c *parts) { c.named() }, ""},
		{"a variable in host memory", func(c *parts) { c.named(); c.buffer(tOn1).Place = dag.Host }, tStays},
		{"a variable on another device", func(c *parts) { c.named(); c.buffer(tOn1).Device = 0 }, tStays},
		{"a part of a variable", func(c *parts) { c.named(); c.buffer(tOn1).Bytes = 128 }, tStays},
		{"a variable twice", func(c *parts) { c.named(); c.twin(tOn1) }, tStays},
		{"a buffer that is fixed", func(c *parts) { c.buffer(zOn0).Device = 1 }, `buffer "z" must stay on device 0`},
		{"a buffer before the first device", func(c *parts) { c.buffer(tOn1).Device = -1 }, `buffer "t" is on device -1 of 2`},
		{"a buffer behind the last device", func(c *parts) { c.buffer(tOn1).Device = 2 }, `buffer "t" is on device 2 of 2`},
		{"first contents on two devices", func(c *parts) { c.buffer(xOn0).Init = c.g.Buffers[2].Init }, ""},
		{"other first contents", func(c *parts) { c.buffer(xOn1).Init = &dag.Init{Kind: dag.InitRamp} }, `buffer "x" does not begin as "x" does`},
		{"first contents of a part", func(c *parts) { c.twin(xOn1); c.buffer(spare).Bytes = 128 }, `buffer "x" does not begin as "x" does`},
		{"a result of another name", func(c *parts) { c.buffer(rOn0).Name = "q" }, `buffer "q" is saved or compared in place of "r", but is not the same`},
		{"a result in another file", func(c *parts) { c.buffer(rOn0).Save = "q.npy" }, otherR},
		{"a result in no file", func(c *parts) { c.buffer(rOn0).Save = "" }, otherR},
		{"a result compared with something else", func(c *parts) { c.buffer(rOn0).Expect = &dag.Expect{} }, otherR},
		{"a result that is not compared", func(c *parts) { c.buffer(rOn0).Expect = nil }, otherR},
		{"a result of another shape", func(c *parts) { c.buffer(rOn0).Shape = []int64{8, 8} }, otherR},
		{"a part of a result", func(c *parts) { c.buffer(rOn0).Bytes = 128 }, otherR},
		{"no result", func(c *parts) { c.buffer(rOn0).Save, c.buffer(rOn0).Expect = "", nil }, `no buffer holds the result "r"`},
		{"what is kept", func(c *parts) { c.s.Kept = []dag.BufferID{6} }, ""},
		{"what is kept of another name", func(c *parts) { c.s.Kept = []dag.BufferID{6}; c.buffer(tOn1).Name = "tt" }, `no buffer holds the result "t"`},
		{"a part of what is kept", func(c *parts) { c.s.Kept = []dag.BufferID{6}; c.buffer(tOn1).Bytes = 128 }, `no buffer holds the result "t"`},
		{"the end of what is kept", func(c *parts) {
			c.s.Kept = []dag.BufferID{8}
			c.s.Buffers[spare].Lo, c.buffer(spare).Bytes = 128, 128
		}, `no buffer holds the result "spare"`},
		{"a result twice", func(c *parts) { c.twin(rOn0) }, `buffers "r" and "r" are both saved or compared in place of "r"`},

		{"a body too many", func(c *parts) { c.s.Bodies = append(c.s.Bodies, nil) }, "it stands for the nodes of 1 bodies more than it has"},
		{"a node of no node", func(c *parts) { c.s.Nodes[nodeUp] = -2 }, `"up" comes where "up" was declared`},
		{"a node behind the nodes", func(c *parts) { c.s.Nodes[nodeDown] = 7 }, `"down" comes where "down" was declared`},
		{"a node twice", func(c *parts) { c.s.Nodes[nodeFill] = 0 }, `"fill" is there twice`},
		{"nodes of each other", func(c *parts) { c.s.Nodes[nodeFill], c.s.Nodes[nodeScale] = 2, 1 }, `"scale" does other work than "fill" of the pipeline`},
		{"nodes that communicate in another order", func(c *parts) {
			c.s.Nodes[nodeFill], c.s.Nodes[nodeScale] = 2, 1
			c.g.Nodes[0].Communication = &dag.Communication{}
		}, `"fill" comes where "fill" was declared`},
		{"nodes of a body in another order", func(c *parts) { c.s.Bodies[0] = []dag.NodeID{1, 0} }, `"grow" comes where "grow" was declared`},
		{"a node missing", func(c *parts) {
			c.g = parsed(t, declaredPipeline+"  - {name: again, memcpy: {from: z, to: out}}\n")
			c.g.Buffers[5].Expect = c.buffer(rOn0).Expect
		}, `"again" is missing`},
		{"a node too many", func(c *parts) {
			c.g = parsed(t, strings.TrimSuffix(declaredPipeline, "  - {name: down, memcpy: {from: z, to: out}}\n"))
			c.g.Buffers[5].Expect = c.buffer(rOn0).Expect
		}, `"down" comes where nothing more was declared`},
		{"no node of a body", func(c *parts) { c.s.Bodies = nil }, `nothing says what the nodes of a body of "loop" stand for`},
		{"too few nodes of a body", func(c *parts) { c.s.Bodies[0] = c.s.Bodies[0][:1] }, `nothing says what the nodes of a body of "loop" stand for`},

		{"more passes", func(c *parts) { c.control().Times++ }, test},
		{"while for until", func(c *parts) { c.control().While = true }, test},
		{"tests of fewer passes", func(c *parts) { c.control().Every++ }, test},
		{"too many passes that are no failure", func(c *parts) { c.control().OrStop = true }, test},
		{"a number of passes that is compared", func(c *parts) { c.control().Expect = new(int64) }, test},
		{"a body twice", func(c *parts) { m := c.control(); m.Bodies = append(slices.Clone(m.Bodies), m.Bodies[0]) }, test},
		{"no condition", func(c *parts) { c.control().Condition = nil }, test},
		{"a condition where none is declared", func(c *parts) {
			own := *c.g.Nodes[4].Control
			own.Condition = nil
			c.g.Nodes[4].Control = &own
		}, test},
		{"another text of the condition", func(c *parts) { c.condition().Text = "t(0..1) > 6" }, test},
		{"another type in the condition", func(c *parts) { c.condition().Types[0] = dag.F64 }, test},
		{"another formula of the condition", func(c *parts) { c.condition().Expr = nil }, test},
		{"another element in the condition", func(c *parts) { c.condition().Operands[0] = dag.Range{Buffer: tOn1, Lo: 4, Hi: 8} }, test},
		{"two elements in the condition", func(c *parts) { m := c.condition(); m.Operands = append(m.Operands, m.Operands[0]) }, test},
		{"a condition on another device", func(c *parts) { c.node(nodeLoop).Device = 0 }, `"loop" tests t(0..1) on device 0, but it is on device 1`},
		{"a condition in host memory", func(c *parts) { c.buffer(tOn1).Place = dag.Host }, `"loop" tests t(0..1) on device 1, but it is on the host`},

		{"an inserted kernel", func(c *parts) { c.s.Nodes[nodeScale] = plan.Inserted }, `"scale" is not in the pipeline, and is no copy`},
		{"an inserted task", func(c *parts) { c.node(copyX).Kind = dag.Task }, noCopy},
		{"an inserted copy of nothing", func(c *parts) { c.node(copyX).Copy = nil }, noCopy},
		{"an inserted copy that writes its source", func(c *parts) { c.access(copyX, 0).Mode = dag.ReadWrite }, noCopy},
		{"an inserted copy that reads what it writes", func(c *parts) { c.access(copyX, 1).Mode = dag.ReadWrite }, noCopy},
		{"an inserted copy that reads less", func(c *parts) { c.access(copyX, 0).Hi -= 4 }, noCopy},
		{"an inserted copy that writes less", func(c *parts) { c.access(copyX, 1).Hi -= 4 }, noCopy},
		{"an inserted copy to another buffer", func(c *parts) { c.copy(copyX).Dst.Buffer = yOn0; c.access(copyX, 1).Buffer = yOn0 },
			`"x 1->0" copies x to y, which are not the same bytes of one buffer`},
		{"an inserted copy of other bytes", func(c *parts) { c.copy(copyX).Src.Lo = 4; c.access(copyX, 0).Lo = 4 },
			`"x 1->0" copies x(1..64) to x@0, which are not the same bytes of one buffer`},
		{"an inserted copy from a piece of other bytes", func(c *parts) {
			c.twin(xOn0)
			c.buffer(spare).Bytes, c.s.Buffers[spare].Lo = 128, 128
			*c.copy(copyX) = dag.Copy{Src: dag.Range{Buffer: xOn1, Lo: 0, Hi: 128}, Dst: dag.Range{Buffer: spare, Lo: 0, Hi: 128}}
			c.access(copyX, 0).Range, c.access(copyX, 1).Range = c.node(copyX).Copy.Src, c.node(copyX).Copy.Dst
		}, `"x 1->0" copies x(0..32) to x@0, which are not the same bytes of one buffer`},
		{"an inserted copy of rows", func(c *parts) { c.copy(copyX).Src.Pitch = 32; c.access(copyX, 0).Pitch = 32 },
			`"x 1->0" copies x(0..64) to x@0, which are not the same bytes of one buffer`},
		{"an inserted copy in host memory", func(c *parts) {
			*c.copy(copyX) = dag.Copy{Src: dag.Range{Buffer: hostH, Hi: 256}, Dst: dag.Range{Buffer: hostH, Hi: 256}}
			c.access(copyX, 0).Range, c.access(copyX, 1).Range = c.node(copyX).Copy.Src, c.node(copyX).Copy.Dst
		}, `"x 1->0" copies h to h, which are not the same bytes of one buffer`},
		{"an inserted copy on the other device", func(c *parts) { c.node(copyX).Device = 0 }, ""},
		{"an inserted copy on a third device", func(c *parts) { c.s.Devices = 3; c.node(copyX).Device = 2 }, `"x 1->0" runs on device 2, where none of its buffers is`},
		{"a copy on another device", func(c *parts) { c.node(nodeUp).Device = 1 }, `"up" runs on device 1, where none of its buffers is`},
		{"a copy to the host on another device", func(c *parts) { c.node(nodeDown).Device = 1 }, `"down" runs on device 1, where none of its buffers is`},

		{"another name", func(c *parts) { c.node(nodeFill).Name = "full" }, `"full" does other work than "fill" of the pipeline`},
		{"another kind", func(c *parts) { c.node(nodeFill).Kind = dag.Task }, work("fill")},
		{"another priority", func(c *parts) { c.node(nodeFill).Priority = dag.High }, work("fill")},
		{"another stream", func(c *parts) { c.node(nodeFill).Stream = dag.OnStream(1) }, work("fill")},
		{"no peers", func(c *parts) { c.node(nodePeers).Peer = false }, work("peers")},
		{"no cost", func(c *parts) { c.node(nodeScale).HasCost = false }, work("scale")},
		{"another cost", func(c *parts) { c.node(nodeScale).CostUS++ }, work("scale")},
		{"more to do", func(c *parts) { c.node(nodeFill).Work.Bytes++ }, work("fill")},
		{"a function", func(c *parts) { c.node(nodeFill).Function = "f" }, work("fill")},
		{"a loop that is none", func(c *parts) { c.node(nodeLoop).Control = nil }, work("loop")},
		{"communication", func(c *parts) { c.node(nodeFill).Communication = &dag.Communication{} }, work("fill")},
		{"no copy", func(c *parts) { c.node(nodeUp).Copy = nil }, work("up")},
		{"no set", func(c *parts) { c.node(nodeFill).Set = nil }, work("fill")},
		{"no launch", func(c *parts) { c.node(nodeAdd).Launch = nil }, work("add")},
		{"a copy from elsewhere", func(c *parts) { c.copy(nodeUp).Src.Buffer = hostOut }, work("up")},
		{"a copy to elsewhere", func(c *parts) { c.copy(nodeUp).Dst.Buffer = xOn0 }, work("up")},
		{"a copy that begins later", func(c *parts) { c.copy(nodeUp).Src.Lo = 4 }, work("up")},
		{"a copy that ends earlier", func(c *parts) { c.copy(nodeUp).Dst.Hi = 252 }, work("up")},
		{"a copy of rows", func(c *parts) { c.copy(nodeUp).Dst.Pitch = 32 }, work("up")},
		{"another value", func(c *parts) { c.set(nodeFill).Bits++ }, work("fill")},
		{"a value elsewhere", func(c *parts) { c.set(nodeFill).Dst.Hi = 4 }, work("fill")},
		{"a kernel of another name", func(c *parts) { c.launch(nodeAdd).Name = "addd" }, work("add")},
		{"a kernel of another module", func(c *parts) { c.launch(nodeAdd).Module++ }, work("add")},
		{"another kernel", func(c *parts) { c.launch(nodeAdd).Kernel = c.node(nodeScale).Launch.Kernel }, work("add")},
		{"another grid", func(c *parts) { c.launch(nodeAdd).Grid[1]++ }, work("add")},
		{"another block", func(c *parts) { c.launch(nodeAdd).Block[2]++ }, work("add")},
		{"more shared memory", func(c *parts) { c.launch(nodeAdd).Shared++ }, work("add")},
		{"a grid that waits for itself", func(c *parts) { c.launch(nodeAdd).Cooperative = true }, work("add")},
		{"a cluster", func(c *parts) { c.launch(nodeAdd).Cluster[0] = 2 }, work("add")},
		{"a map", func(c *parts) { c.launch(nodeAdd).Map = &dag.MapSpec{} }, work("add")},
		{"an argument too few", func(c *parts) { l := c.launch(nodeAdd); l.Args = l.Args[:3] }, work("add")},
		{"a number for a buffer", func(c *parts) { c.launch(nodeAdd).Args[1].IsBuffer = false }, work("add")},
		{"an argument of another type", func(c *parts) { c.launch(nodeAdd).Args[0].DType = dag.F64 }, work("add")},
		{"another number", func(c *parts) { c.launch(nodeAdd).Args[0].Bits++ }, work("add")},
		{"another structure", func(c *parts) { c.launch(nodeAdd).Args[0].Struct = "s" }, work("add")},
		{"an argument of another mode", func(c *parts) { c.launch(nodeAdd).Args[1].Mode = dag.ReadWrite }, work("add")},
		{"a mode from the code", func(c *parts) { a := &c.launch(nodeAdd).Args[1]; a.Inferred = !a.Inferred }, work("add")},
		{"a texture", func(c *parts) { c.launch(nodeAdd).Args[1].Texture = &dag.Texture{} }, work("add")},
		{"another buffer as argument", func(c *parts) { c.launch(nodeAdd).Args[1].Range.Buffer = yOn0 }, work("add")},
		{"another node in a body", func(c *parts) { c.control().Bodies[0].Nodes[1].CostUS++ }, work("more")},

		{"an access of another mode", func(c *parts) { c.access(nodeAdd, 0).Mode = dag.ReadWrite }, `"add" uses x@0 (inout) where the pipeline says x (in)`},
		{"an access to another buffer", func(c *parts) { c.access(nodeAdd, 0).Buffer = yOn0 }, `"add" uses y (in) where the pipeline says x (in)`},
		{"an access that ends earlier", func(c *parts) { c.access(nodeAdd, 2).Hi = 252 }, `"add" uses z(0..63) (out) where the pipeline says z (out)`},
		{"an argument on another device", func(c *parts) { c.launch(nodeAdd).Args[1].Range.Buffer = xOn1 }, `"add" declares that it uses x@0, but is given another address`},
		{"a copy to another device", func(c *parts) { c.copy(nodeUp).Dst.Buffer = yOn1 }, `"up" declares that it uses y, but is given another address`},
		{"a value on another device", func(c *parts) {
			c.twin(rOn0)
			c.buffer(spare).Save, c.buffer(spare).Expect = "", nil
			c.set(nodeFill).Dst.Buffer = spare
		}, `"fill" declares that it uses r, but is given another address`},
		{"a copy from another device", func(c *parts) { c.twin(zOn0); c.copy(nodeDown).Src.Buffer = spare }, `"down" declares that it uses z, but is given another address`},
		{"no after:", func(c *parts) { c.node(nodeFill).After = nil }, `"fill" does not come after "up", as the pipeline says`},
		{"after: another node", func(c *parts) { c.node(nodeFill).After = []dag.NodeID{nodeFill} }, `"fill" does not come after "up", as the pipeline says`},

		{"a node before the first device", func(c *parts) { c.node(nodeScale).Device = -1 }, `"scale" runs on device -1 of 2`},
		{"a node behind the last device", func(c *parts) { c.node(nodeScale).Device = 2 }, `"scale" runs on device 2 of 2`},
		{"a node that is fixed", func(c *parts) { c.node(nodeAdd).Device = 1 }, `"add" runs on device 1, but belongs on device 0`},
		{"a node with peers", func(c *parts) { c.g.Nodes[5].Fixed = false; c.node(nodePeers).Device = 1 }, `"peers" runs on device 1, but belongs on device 0`},
		{"a node with variables", func(c *parts) { c.onVariables(false) }, `"scale" runs on device 1, but belongs on device 0`},
		{"a node with constants", func(c *parts) { c.onVariables(true) }, ""},
		{"a kernel on the device of no argument", func(c *parts) { c.node(nodeScale).Device = 0 }, `"scale" runs on device 0, but uses "x", which is on device 1`},
		{"a kernel on host memory", func(c *parts) { c.buffer(rOn0).Place = dag.Host }, `"fill" uses "r", which is not in device memory`},
		{"a copy of half of what is read", func(c *parts) {
			c.copy(copyX).Src.Hi, c.node(copyX).Copy.Dst.Hi = 128, 128
			c.access(copyX, 0).Hi, c.access(copyX, 1).Hi = 128, 128
		}, `"add" reads x(32..64) on device 0 and finds bytes that nothing brought there, but in the pipeline it reads what "scale" wrote`},
		{"a copy of the other half", func(c *parts) {
			c.copy(copyY).Src.Lo, c.node(copyY).Copy.Dst.Lo = 128, 128
			c.access(copyY, 0).Lo, c.access(copyY, 1).Lo = 128, 128
		}, `"grow" reads y(0..32) on device 1 and finds what was there when the replay began, but in the pipeline it reads what "up" wrote`},
		{"a result that is elsewhere", func(c *parts) {
			c.twin(pOn0)
			c.s.Kept = []dag.BufferID{7}
			c.buffer(pOn0).Name = "q"
		}, `p ends with what was there when the replay began on device 0, but in the pipeline with what "peers" wrote`},
		{"peers elsewhere", func(c *parts) { c.buffer(pOn0).Device = 1 }, `"peers" uses peers, and finds "p" on device 1 instead of 0`},
	} {
		t.Run(c.name, func(t *testing.T) {
			g, s := declaredSpread(t)
			changed := &parts{g, s}
			c.spoil(changed)
			err := Verify(changed.g, changed.s)
			if c.want == "" {
				require.NoError(t, err)
				return
			}
			require.EqualError(t, err, c.want)
			require.ErrorIs(t, err, ErrWrong)
			var v *proof.Violation
			require.ErrorAs(t, err, &v)
			require.Equal(t, []int32{-1, -1, -1, -1, -1, -1}, []int32{int32(v.Before), v.Stream, v.BeforeStream, v.Op, v.Event, int32(v.Other)}, "they do not apply")
			require.Equal(t, v.NodeName == "", v.Node == -1)
			require.Equal(t, v.BufferName == "", v.Buffer == -1)
		})
	}
}

// spreadOf spreads a pipeline; at has the devices of its nodes, those of bodies last.
func spreadOf(t *testing.T, text string, at ...int32) (*dag.Graph, *plan.Spread) {
	t.Helper()
	g := parsed(t, text)
	p, err := placement.NewProblem(g, 4, nil)
	require.NoError(t, err)
	s, err := placement.Transform(p, at)
	require.NoError(t, err)
	require.NoError(t, Verify(g, s))
	return g, s
}

// A pass of a loop must find what the pass before left, wherever that ran.
func TestPassesFindWhatPassesLeft(t *testing.T) {
	g, s := spreadOf(t, `version: 1
name: passes
buffers:
  x: {place: device, dtype: f32, shape: [64], init: 1}
  y: {place: device, dtype: f32, shape: [64], save: y.npy}
nodes:
  - name: loop
    repeat: {times: 3}
    nodes:
      - {name: use, kernel: add, args: [64, x, x, y]}
      - {name: change, kernel: scale, args: [64, 2, x]}
`, 1, 1, 0)
	body := s.Graph.Nodes[len(s.Graph.Nodes)-1].Control
	for i := range s.Graph.Nodes {
		if s.Graph.Nodes[i].Control != nil {
			body = s.Graph.Nodes[i].Control
		}
	}
	inner := body.Bodies[0]
	for i := range inner.Nodes {
		if move := inner.Nodes[i].Copy; move != nil {
			move.Src.Hi, move.Dst.Hi = 128, 128
			inner.Accesses(dag.NodeID(i))[0].Hi, inner.Accesses(dag.NodeID(i))[1].Hi = 128, 128
			break
		}
	}
	err := Verify(g, s)
	require.EqualError(t, err, `"use" reads x(32..64) on device 1 and finds what was there when the replay began, but in the pipeline it reads what a run of a body of "loop" begins with`)
	v := err.(*proof.Violation)
	require.Equal(t, [2]int64{128, 256}, [2]int64{v.Lo, v.Hi})
	require.Equal(t, "use", v.NodeName)
	require.Equal(t, s.Graph.Buffers[v.Buffer].Name, v.BufferName)
	require.Equal(t, dag.Read, v.Access)
}

// Contents that each replay moves on by one device: what is wrong at first comes everywhere in the end.
func TestContentsMayWanderForSixteenReplays(t *testing.T) {
	wander := func(devices int) error {
		b := dag.New("wander")
		x := b.Device("x", dag.U8, 16)
		b.Init(x, dag.Init{Kind: dag.InitRamp})
		g, err := b.Graph()
		require.NoError(t, err)
		made := dag.New("wander")
		s := &plan.Spread{Devices: devices}
		for k := range devices {
			piece := g.Buffers[0]
			piece.Name, piece.Device = string(rune('a'+k)), int32(k)
			if k == 0 {
				piece.Init = nil
			}
			made.Buffer(piece)
			s.Buffers = append(s.Buffers, plan.Piece{Buffer: x})
		}
		for k := devices - 1; k > 0; k-- {
			made.Copy("to "+string(rune('a'+k)), made.Whole(dag.BufferID(k)), made.Whole(dag.BufferID(k-1)))
			s.Nodes = append(s.Nodes, plan.Inserted)
		}
		s.Graph, err = made.Graph()
		require.NoError(t, err)
		return Verify(g, s)
	}
	require.NoError(t, wander(2))
	require.NoError(t, wander(16))
	require.EqualError(t, wander(17), "after 16 replays, contents still wander from device to device")
}

// A kernel may be given two pieces of a buffer that touch, but no byte of it twice.
func TestPiecesOfAnArgumentMayTouch(t *testing.T) {
	two := func(at, size int64) error {
		b := dag.New("two")
		b.Use(kernels.Library())
		x, y := b.Device("x", dag.F32, 64), b.Device("y", dag.F32, 32)
		b.Memset("fill", b.Whole(x), 1)
		b.Kernel("add", "add", dag.Args{32, b.Slice(x, 0, 32), b.Slice(x, 32, 64), b.Whole(y)})
		g, err := b.Graph()
		require.NoError(t, err)
		s := &plan.Spread{Devices: 1, Buffers: []plan.Piece{{Buffer: x}, {Buffer: y}, {Buffer: x, Lo: at}}, Nodes: []dag.NodeID{0, plan.Inserted, 1}}
		made := dag.New("two")
		made.Use(kernels.Library())
		for k := range g.Buffers {
			made.Buffer(g.Buffers[k])
		}
		rest := g.Buffers[x]
		rest.Name, rest.Bytes, rest.Shape = "rest", size, []int64{size / 4}
		high := made.Buffer(rest)
		made.Memset("fill", made.Whole(x), 1)
		made.Copy("move", made.Whole(high), made.Slice(x, at/4, (at+size)/4))
		made.Kernel("add", "add", dag.Args{32, made.Slice(x, 0, 32), made.Slice(high, (128-at)/4, (256-at)/4), made.Whole(y)})
		s.Graph, err = made.Graph()
		require.NoError(t, err)
		return Verify(g, s)
	}
	require.NoError(t, two(128, 128))
	require.NoError(t, two(64, 192), "the pieces overlap, but what is used of them does not")
}

// A buffer with tiles is cut between rows.
func TestPiecesBeginAndEndBetweenRows(t *testing.T) {
	cut := func(lo, bytes int64) error {
		b := dag.New("rows")
		x := b.Device("x", dag.U8, 8, 4)
		b.Task("tile", dag.Access{Range: b.Tile(x, 0, 4, 1, 3), Mode: dag.Write})
		g, err := b.Graph()
		require.NoError(t, err)
		s := &plan.Spread{Devices: 1, Buffers: []plan.Piece{{Buffer: x}, {Buffer: x, Lo: lo}}, Nodes: []dag.NodeID{0}}
		made := dag.New("rows")
		made.Buffer(g.Buffers[x])
		rest := g.Buffers[x]
		rest.Name, rest.Bytes, rest.Shape = "rest", bytes, []int64{bytes}
		made.Buffer(rest)
		made.Task("tile", dag.Access{Range: made.Tile(x, 0, 4, 1, 3), Mode: dag.Write})
		s.Graph, err = made.Graph()
		require.NoError(t, err)
		return Verify(g, s)
	}
	require.NoError(t, cut(8, 12))
	require.NoError(t, cut(0, 32))
	for _, c := range [][2]int64{{6, 8}, {8, 10}, {6, 10}} {
		require.EqualError(t, cut(c[0], c[1]), `buffer "rest" begins or ends within a row of "x", which is used in tiles`)
	}
}

// Where a tile lacks bytes, the error names those of the first rows that lack the same.
func TestMissingBytesOfTilesAreNamed(t *testing.T) {
	for _, c := range []struct {
		brought [][4]int64 // tiles: rows and columns
		reads   [4]int64
		want    string
		lo, hi  int64
	}{
		{nil, [4]int64{2, 6, 0, 2}, "x(2..4)(1..2)", 9, 14},
		{[][4]int64{{2, 3, 1, 2}}, [4]int64{2, 6, 0, 2}, "x(3..4)(1..2)", 13, 14},
		{[][4]int64{{0, 4, 0, 1}}, [4]int64{2, 6, 0, 2}, "x(2..4)(1..2)", 9, 14},
		{[][4]int64{{0, 4, 1, 2}}, [4]int64{0, 4, 0, 4}, "x(0..1)(2..3)", 2, 3},
		{[][4]int64{{0, 4, 1, 2}}, [4]int64{0, 8, 1, 4}, "x(0..4)(2..3)", 2, 15},
		{[][4]int64{{0, 4, 1, 3}}, [4]int64{0, 8, 0, 4}, "", 0, 0},
		{[][4]int64{{2, 4, 1, 2}}, [4]int64{2, 6, 0, 2}, "", 0, 0},
		{nil, [4]int64{4, 8, 0, 4}, "", 0, 0},
	} {
		declare := func(pieces int) (*dag.Builder, dag.BufferID) {
			b := dag.New("tiles")
			x := b.Device("x", dag.U8, 8, 4)
			last := x
			if pieces == 2 {
				last = b.Device("x on 1", dag.U8, 8, 4)
				b.OnDevice(last, 1)
			}
			b.Task("make", dag.Access{Range: b.Tile(x, 0, 4, 1, 3), Mode: dag.Write})
			return b, last
		}
		b, x := declare(1)
		b.Task("use", dag.Access{Range: b.Tile(x, c.reads[0], c.reads[1], c.reads[2], c.reads[3]), Mode: dag.Read})
		g, err := b.Graph()
		require.NoError(t, err)
		made, y := declare(2)
		s := &plan.Spread{Devices: 2, Buffers: []plan.Piece{{Buffer: x}, {Buffer: x}}, Nodes: []dag.NodeID{0}}
		for k, r := range c.brought {
			made.Copy(fmt.Sprintf("bring %d", k), made.Tile(y, r[0], r[1], r[2], r[3]), made.Tile(x, r[0], r[1], r[2], r[3]))
			s.Nodes = append(s.Nodes, plan.Inserted)
		}
		made.Task("use", dag.Access{Range: made.Tile(y, c.reads[0], c.reads[1], c.reads[2], c.reads[3]), Mode: dag.Read})
		s.Nodes = append(s.Nodes, 1)
		s.Graph, err = made.Graph()
		require.NoError(t, err)
		s.Graph.Nodes[len(s.Graph.Nodes)-1].Device = 1
		err = Verify(g, s)
		if c.want == "" {
			require.NoError(t, err)
			continue
		}
		require.EqualError(t, err,
			`"use" reads `+c.want+` on device 1 and finds what was there when the replay began, but in the pipeline it reads what "make" wrote`)
		v := err.(*proof.Violation)
		require.Equal(t, [2]int64{c.lo, c.hi}, [2]int64{v.Lo, v.Hi})
	}
}
