// What hostile callers call: the functions of the public packages, and valid and invalid values of the types that have methods.

package tests

import (
	"bytes"
	"context"
	"errors"
	"reflect"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/cudart/fault"
	"github.com/dagrun/dagrun/cudart/host"
	"github.com/dagrun/dagrun/cudart/libraries"
	"github.com/dagrun/dagrun/cudart/world"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/dag/bucket"
	"github.com/dagrun/dagrun/dag/exchange"
	"github.com/dagrun/dagrun/dag/expr"
	"github.com/dagrun/dagrun/dag/file"
	"github.com/dagrun/dagrun/dag/outline"
	"github.com/dagrun/dagrun/kernels"
	"github.com/dagrun/dagrun/kernels/calls"
	"github.com/dagrun/dagrun/kernels/conditions"
	"github.com/dagrun/dagrun/kernels/launch"
	"github.com/dagrun/dagrun/kernels/library"
	"github.com/dagrun/dagrun/kernels/library/cubin"
	"github.com/dagrun/dagrun/kernels/maps"
	"github.com/dagrun/dagrun/kernels/source"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/planner/analysis"
	"github.com/dagrun/dagrun/planner/effort"
	"github.com/dagrun/dagrun/planner/model"
	"github.com/dagrun/dagrun/planner/picture"
	"github.com/dagrun/dagrun/planner/plan"
	"github.com/dagrun/dagrun/planner/proof"
	"github.com/dagrun/dagrun/planner/proof/ranks"
	spreadproof "github.com/dagrun/dagrun/planner/proof/spread"
	"github.com/dagrun/dagrun/planner/spread"
	"github.com/dagrun/dagrun/runtime"
	"github.com/dagrun/dagrun/runtime/learn"
)

// dangerous lists functions that a test cannot call with arbitrary arguments, with the reason.
var dangerous = map[string]bool{
	"runtime.MeasureMachine":    true, // takes seconds whatever its arguments are
	"*host.Platform.Close":      true, // would end what all other calls need
	"*host.Platform.HostBytes":  true, // hands out memory, which the harness does not touch
	"*runtime.Program.Close":    true,
	"*runtime.Program.Host":     true,
	"world.Join":                true, // waits for other processes
	"recorder.Run":              true, // starts a program
	"*dag.Draft.Launch":         true, // drafts trust the ids and ranges that they are given: Builder and dag/file have checked them
	"*dag.Draft.Fits":           true,
	"*dag.Draft.Copy":           true,
	"*dag.Draft.Memset":         true,
	"*dag.Draft.Communicate":    true,
	"*dag.Draft.Enclose":        true,
	"*dag.Draft.Derive":         true,
	"*dag.Draft.BindSymbol":     true,
	"*dag.Draft.Swap":           true,
	"*dag.Draft.Reuse":          true,
	"recorder.Library":          true, // writes to the user's cache
	"libraries.Open":            true, // these load and call C
	"libraries.OpenWith":        true,
	"libraries.Library":         true,
	"libraries.Session":         true,
	"*fault.Platform.Close":     true,
	"*fault.Platform.HostBytes": true,
}

type namedFunction struct {
	name string
	of   reflect.Value
}

// functions are the exported functions of the public packages.
func (h *hostile) functions() []namedFunction {
	var all []namedFunction
	for name, f := range map[string]any{
		"dag.BFloatFromFloat32": dag.BFloatFromFloat32, "dag.BFloatToFloat32": dag.BFloatToFloat32, "dag.HalfFromFloat32": dag.HalfFromFloat32,
		"cudart.OwnValues": cudart.OwnValues, "cudart.MemberProblem": cudart.MemberProblem, "dag.HalfToFloat32": dag.HalfToFloat32, "dag.DTypes": dag.DTypes, "dag.ParseDType": dag.ParseDType, "dag.Vector": dag.Vector, "dag.VectorStructure": dag.VectorStructure, "file.Format": file.Format, "file.Parse": file.Parse,
		"dag.New": dag.New, "dag.OnStream": dag.OnStream, "dag.Grid": dag.Grid, "dag.Block": dag.Block,
		"dag.Shared": dag.Shared, "dag.RunOn": dag.RunOn, "dag.WithPeers": dag.WithPeers, "dag.Cooperative": dag.Cooperative, "dag.Cluster": dag.Cluster, "dag.ClusterProblem": dag.ClusterProblem,

		"exchange.FromGraph": exchange.FromGraph[string, int], "exchange.Directed": exchange.Directed,

		"expr.Functions": expr.Functions, "expr.IsKeyword": expr.IsKeyword, "expr.LooksLikeSlice": expr.LooksLikeSlice, "expr.Rand": expr.Rand,
		"expr.PartOf": expr.PartOf, "expr.ValidName": expr.ValidName, "expr.Integral": expr.Integral, "expr.Parse": expr.Parse, "expr.ParseMap": expr.ParseMap,
		"expr.ParseSlice": expr.ParseSlice, "expr.RightBounds": expr.RightBounds, "expr.ParseTemplate": expr.ParseTemplate, "expr.BoolValue": expr.BoolValue,
		"expr.FloatValue": expr.FloatValue, "expr.Fraction": expr.Fraction, "expr.Int": expr.Int,

		"plan.Action": plan.Action, "model.Durations": model.Durations, "effort.Names": effort.Names, "planner.LayoutMemory": planner.LayoutMemory,
		"model.MachineNames": model.MachineNames, "planner.PeakBuffers": planner.PeakBuffers, "model.Predict": model.Predict,
		"planner.Strategies": planner.Strategies, "planner.Verify": planner.Verify, "proof.VerifyEdges": proof.VerifyEdges, "proof.VerifyEarly": proof.VerifyEarly,
		"proof.VerifyBodyEdges": proof.VerifyBodyEdges,
		"proof.Replay":          proof.Replay, "proof.VerifySingleUse": proof.VerifySingleUse, "plan.WriteGraphDOT": plan.WriteGraphDOT,
		"model.LowerBound": model.LowerBound, "model.LowerBoundGraph": model.LowerBoundGraph, "planner.Compare": planner.Compare,
		"effort.Parse": effort.Parse, "planner.Explain": planner.Explain, "plan.EngineOf": plan.EngineOf,
		"planner.GraphEdges": planner.GraphEdges, "model.Clean": model.Clean, "model.DecodeMachine": model.DecodeMachine, "planner.H200": planner.H200,
		"model.MachineByName": model.MachineByName, "planner.Unit": planner.Unit, "model.OccupancyOf": model.OccupancyOf,
		"planner.DecodePlan": planner.DecodePlan, "planner.New": planner.New, "model.DecodeProfile": model.DecodeProfile,
		"planner.Simulate": planner.Simulate, "model.SimulateGraph": model.SimulateGraph, "model.Repeated": model.Repeated, "planner.Violations": planner.Violations, "proof.Pairs": proof.Pairs,

		"spread.Policies": spread.Policies, "spread.New": spread.New, "spread.At": spread.At, "spread.Nodes": spread.Nodes, "spread.Spill": spread.Spill, "spread.SpillAt": spread.SpillAt,
		"spread.Decode": spread.Decode, "spread.Compare": spread.Compare, "planner.Resolve": planner.Resolve, "planner.CheckMemory": planner.CheckMemory,
		"plan.DecodeSpread": plan.DecodeSpread, "spread.Verify": spreadproof.Verify,
		"plan.AlignUp": plan.AlignUp, "plan.BufferName": plan.BufferName, "plan.NodeName": plan.NodeName,
		"plan.DecodePlan": plan.DecodePlan,

		"model.BusesOf": model.BusesOf, "model.CopierOf": model.CopierOf,
		"model.Simulate": model.Simulate, "model.SimulateWith": model.SimulateWith,
		"model.LowerBoundWith": model.LowerBoundWith,
		"model.H200":           model.H200,
		"model.Unit":           model.Unit,

		"proof.CheckOps": proof.CheckOps, "proof.CheckPlaced": proof.CheckPlaced, "proof.Verify": proof.Verify,
		"proof.Explain": proof.Explain, "proof.Violations": proof.Violations,

		"analysis.Measured": analysis.Measured, "analysis.Of": analysis.Of, "analysis.HeldUS": analysis.HeldUS,

		"picture.WriteGraphMermaid": picture.WriteGraphMermaid, "picture.New": picture.New, "picture.NewSheet": picture.NewSheet,

		"model.Costs": model.Costs, "plan.CostText": plan.CostText, "model.CostsOf": model.CostsOf,
		"dag.CallsOf": dag.CallsOf, "dag.WordsOf": dag.WordsOf, "dag.CheckRank": dag.CheckRank, "dag.NewCondition": dag.NewCondition, "dag.CheckName": dag.CheckName,
		"dag.HostWork": dag.HostWork, "dag.SizeText": dag.SizeText, "dag.WholeSize": dag.WholeSize, "dag.MapLaunch": dag.MapLaunch, "file.Write": file.Write,
		"file.Params": file.Params, "file.Buffers": file.Buffers, "dag.ParseNorm": dag.ParseNorm, "dag.JoinName": dag.JoinName, "dag.OperandName": dag.OperandName, "kernels.ModuleOpener": kernels.ModuleOpener,
		"learn.Recall": learn.Recall, "learn.KnownPasses": learn.KnownPasses, "learn.KeepPasses": learn.KeepPasses, "learn.KeptMachine": learn.KeptMachine, "learn.KeepMachine": learn.KeepMachine, "learn.Fingerprints": learn.Fingerprints, "learn.DeviceKey": learn.DeviceKey, "learn.Learn": learn.Learn, "learn.Refit": learn.Refit,

		"learn.From": learn.From, "learn.MergeProfiles": learn.MergeProfiles,
		"runtime.CompareNodes": runtime.CompareNodes,

		"kernels.Library": kernels.Library, "library.Module": library.Module, "maps.Join": maps.Join, "library.Sources": library.Sources, "library.Docs": library.Docs,
		"kernels.OpenModule": kernels.OpenModule, "launch.CubinParameters": launch.CubinParameters, "launch.ReadCubin": launch.ReadCubin, "launch.Compile": launch.Compile, "source.MostBytes": source.MostBytes, "calls.Docs": calls.Docs, "libraries.Names": libraries.Names, "libraries.Title": libraries.Title,

		"cubin.Architectures": cubin.Architectures, "cubin.For": cubin.For, "cubin.Read": cubin.Read, "cubin.Write": cubin.Write,

		"runtime.New": func(ctx context.Context, g *dag.Graph, p *plan.Plan, platform cudart.Platform, o runtime.Options) error {
			program, err := runtime.New(ctx, g, p, platform, o)
			if program != nil {
				err = errors.Join(err, program.Close())
			}
			return err
		},
		"runtime.Summarize": runtime.Summarize, "runtime.CompareResults": runtime.CompareResults, "runtime.Generate": runtime.Generate, "runtime.CheckArrayFile": runtime.CheckArrayFile, "runtime.MachineOf": runtime.MachineOf, "runtime.CanOverlap": runtime.CanOverlap,

		"host.Open": func(o host.Options) error {
			platform, err := host.Open(o)
			if platform != nil {
				err = errors.Join(err, platform.Close())
			}
			return err
		},

		"fault.Wrap": fault.Wrap,

		"bucket.AllReduces": bucket.AllReduces, "outline.Of": outline.Of, "outline.DifferenceFrom": outline.DifferenceFrom, "outline.Difference": outline.Difference,
		"outline.WorkOf": outline.WorkOf, "outline.WorkDifference": outline.WorkDifference, "outline.Modules": outline.Modules, "outline.Parts": outline.Parts,
		"file.ParseFamily": file.ParseFamily, "file.ParseContext": file.ParseContext, "file.ParseFamilyContext": file.ParseFamilyContext, "ranks.Prove": ranks.Prove,
		"world.Join": world.Join, "world.FreeAddress": world.FreeAddress, "runtime.WriteChromeRanks": runtime.WriteChromeRanks, "picture.WriteRanksPage": picture.WriteRanksPage, "world.Find": world.Find,
	} {
		all = append(all, namedFunction{name, reflect.ValueOf(f)})
	}
	sort.Slice(all, func(a, b int) bool { return all[a].name < all[b].name })
	return all
}

// order returns the values of this module's types in a fixed order.
func (h *hostile) order() []reflect.Value {
	var all []reflect.Value
	for t, values := range h.pool {
		if t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		if strings.HasPrefix(t.PkgPath(), module+"/") && t.Kind() != reflect.Interface && !strings.HasPrefix(t.Name(), "hostile") && t.Name() != "brokenWriter" {
			all = append(all, values...)
		}
	}
	sort.SliceStable(all, func(a, b int) bool { return all[a].Type().String() < all[b].Type().String() })
	return all
}

// subjects fills the pool with values of every type that has methods: valid ones, zero ones, and ones made by hand. It returns a function
// that closes them.
func (h *hostile) subjects(t *testing.T) (end func()) {
	add := func(values ...any) {
		for _, v := range values {
			h.add(reflect.ValueOf(v))
		}
	}
	ctx := context.Background()

	// Values that a careful caller would have.
	builder := hostileBuilder("right")
	g, err := hostileBuilder("graph").Graph()
	require.NoError(t, err)
	explicit, err := file.Parse([]byte("version: 1\nsync: explicit\nbuffers: {x: {place: device, dtype: f32, shape: [8]}}\nnodes:\n  - {name: a, memset: {to: x, value: 1}, stream: 0}\n  - {name: b, map: \"x = x + 1\", stream: 1}\n"), file.Options{Library: kernels.Library()})
	require.NoError(t, err)
	p, err := planner.New(ctx, g, planner.Options{})
	require.NoError(t, err)
	timeline, err := planner.Simulate(g, p, planner.H200(), nil)
	require.NoError(t, err)
	add(builder, g, g.Pipeline, explicit, explicit.Pipeline, p, timeline, p.Replay(1), planner.H200(), planner.Unit())

	// Values that functions return together with an error, and values that anybody can write down.
	add(&dag.Draft{}, &dag.KernelParam{}, (*dag.KernelParam)(nil), dag.Pos{}, &dag.Symbol{}, (*dag.Symbol)(nil))
	add((*dag.Graph)(nil), &dag.Graph{}, &dag.Graph{Pipeline: &dag.Pipeline{Nodes: make([]dag.Node, 2)}}, &dag.Builder{}, &dag.Pipeline{}, (*dag.Pipeline)(nil), &dag.Structure{}, &dag.Structure{Members: []dag.Member{{Count: -1, Mode: 99}}}, &dag.Member{}, &dag.Member{Mode: 99, DType: 99}, &dag.Texture{}, (*dag.Texture)(nil), &dag.Texture{Channels: -3, Width: 1 << 62, Height: -1, Filter: 99}, dag.Filter(99), dag.AddressMode(99), &dag.Arg{}, &dag.Arg{DType: 99, Texture: &dag.Texture{Channels: 99, Width: 1 << 62, Height: 1}}, dag.TextureArgument{}, dag.PlacedArgument{}, dag.Access{}, dag.Access{Mode: 99}, &dag.Control{}, (*dag.Control)(nil), &dag.Condition{}, (*dag.Condition)(nil), &dag.MapSpec{OutType: 99, InTypes: []dag.DType{98}}, (*dag.MapSpec)(nil), &conditions.Decider{}, &conditions.Launch{}, &conditions.Launch{Test: conditions.Test{Branch: true, Times: -1}, Clear: -9, Operands: []uint64{1}},
		&dag.Launch{}, (*dag.Launch)(nil), &dag.Diagnostic{}, &dag.Diagnostics{}, (*dag.Diagnostics)(nil), &file.ParseError{}, &dag.DeclarationError{}, &dag.CycleError{}, &dag.ArgumentError{},
		dag.DType(0), dag.F32, dag.U64, dag.DType(99), dag.Kind(0), dag.Kind(99), dag.Mode(0), dag.Mode(99), dag.Why(99), dag.Evidence(99), dag.Priority(99), dag.Severity(99), dag.Sync(99), dag.Place(99),
		dag.Verb(0), dag.Verb(99), dag.Reduction(99), dag.Among{}, dag.Among{First: 3, Count: -1, Step: 0}, &cudart.Communication{}, (*cudart.Communication)(nil), &cudart.Conditional{}, &cudart.Conditional{Bodies: make([]cudart.Body, 1), Operands: []cudart.Ptr{1}}, (*cudart.Conditional)(nil), &dag.Communication{}, (*dag.Communication)(nil), &dag.Communication{Verb: dag.Exchange, Transfers: []dag.Transfer{{Rank: 1}}},
		(*world.World)(nil), &world.World{}, &world.RankError{}, &file.RankParseError{}, (*file.RankParseError)(nil), &file.Family{}, (*file.Family)(nil), &ranks.Violation{},
		dag.InitKind(99), dag.ExpectKind(99), dag.Norm(99), dag.Range{}, dag.Range{Buffer: 99, Lo: 5, Hi: -5}, dag.Access{}, dag.Binding{}, dag.OnStream(-1),
		h.library(), h.kernel())
	for _, value := range []any{dag.Pipeline{}, dag.Graph{}, dag.Diagnostics{}, dag.Launch{}, dag.Node{}, dag.Buffer{}, dag.CycleError{}} {
		made := reflect.New(reflect.TypeOf(value))
		made.Elem().Set(h.value(made.Type().Elem(), 5))
		h.add(made)
	}
	over, err := spread.New(ctx, g, spread.Options{Devices: 2, Policy: "roundrobin"})
	require.NoError(t, err)
	add(over, &plan.Spread{}, (*plan.Spread)(nil), &plan.Spread{Graph: over.Graph}, plan.Spread{}, planner.Options{}, planner.Options{Spread: over}, spread.Options{})
	add((*plan.Plan)(nil), &plan.Plan{}, (*plan.Band)(nil), &plan.Band{}, (*plan.Timeline)(nil), &plan.Timeline{}, plan.Cause(99), plan.Engine(99), plan.OpKind(99),
		(*model.Machine)(nil), &model.Machine{}, (*model.Buses)(nil), model.BusesOf(model.H200(), 4), model.CarriesPeer, (*model.Profile)(nil), &model.Profile{}, model.Bound{}, model.EngineAt{},
		&proof.Violation{}, &proof.Enforcement{}, proof.How(99), &planner.Comparison{}, (*planner.Comparison)(nil), &planner.MemoryCapError{},
		&analysis.Analysis{}, (*analysis.Analysis)(nil), &picture.Schedule{}, (*picture.Schedule)(nil), &picture.Sheet{}, (*picture.Sheet)(nil), &picture.Calls{}, (*picture.Calls)(nil))
	for _, value := range []any{plan.Plan{}, plan.Timeline{}, plan.Replay{}, model.Machine{}, model.Profile{}, proof.Violation{}, planner.Comparison{}, planner.MemoryCapError{}} {
		for range 3 {
			made := reflect.New(reflect.TypeOf(value))
			made.Elem().Set(h.value(made.Type().Elem(), 5))
			h.add(made)
		}
	}
	for range 8 { // almost valid
		h.add(reflect.ValueOf(h.damaged(t, g, p)))
		h.add(reflect.ValueOf(h.spoilt(t)))
		h.add(reflect.ValueOf(h.distorted(timeline)))
	}

	e, err := expr.Parse("i * 2 + 1")
	require.NoError(t, err)
	compiled, err := e.Compile("i")
	require.NoError(t, err)
	slice, err := expr.ParseSlice("x(0..4)")
	require.NoError(t, err)
	template, err := expr.ParseTemplate("a.$i")
	require.NoError(t, err)
	add(e, &expr.Expr{}, (*expr.Expr)(nil), &expr.Expr{Root: &expr.Term{Op: expr.Add}}, &expr.Expr{Root: &expr.Term{Op: 99}}, &expr.Expr{Root: &expr.Term{Op: expr.Call, Name: "max"}},
		&expr.Expr{Root: &expr.Term{Op: expr.Call, Name: "len", Args: []*expr.Term{nil}}}, compiled, &expr.Function{}, (*expr.Function)(nil), slice, &expr.Slice{}, (*expr.Slice)(nil),
		template, &expr.Template{}, (*expr.Template)(nil), expr.Int(3), expr.FloatValue(2.5), expr.BoolValue(true), expr.Value{}, &expr.Error{}, expr.Empty{}, expr.Span{})

	device, err := host.Open(host.Options{Memory: 1 << 20})
	require.NoError(t, err)
	program, err := runtime.New(ctx, g, p, device, runtime.Options{})
	require.NoError(t, err)
	catalog := library.Catalog{}
	docs := library.Docs()
	add(catalog, docs[0], library.ParamDoc{}, library.Doc{}, &maps.Maker{}, plan.CostSource(99), plan.PassSource(99), plan.Passes{}, &plan.Passes{Count: -1, Source: 2}, runtime.Check{}, &runtime.Check{}, runtime.Loop{}, &runtime.Loop{}, &runtime.Turn{}, (*runtime.Turn)(nil), fault.Wrap(device, fault.Plan{}))
	add(cubin.For([2]int{9, 0}), &cubin.Archive{}, (*cubin.Archive)(nil), library.Module(), &launch.Module{}, (*launch.Module)(nil), &launch.Compiled{}, (*launch.Compiled)(nil), &launch.CompileError{}, (*launch.CompileError)(nil), planner.Normal, planner.Effort(99))
	add(calls.Catalog{}, calls.Doc{}, &calls.Doc{}, &runtime.TracedReplay{}, (*runtime.TracedReplay)(nil), &runtime.CallError{})
	add(&runtime.HostCall{}, (*runtime.HostCall)(nil), &runtime.HostError{}, (*runtime.HostError)(nil), &runtime.UnknownFunctionError{}, (*runtime.UnknownFunctionError)(nil))
	add(device, program, (*runtime.Program)(nil), runtime.Mode(99), runtime.Overlap(99), &runtime.Results{}, (*runtime.Results)(nil), &runtime.Trace{}, (*runtime.Trace)(nil),
		&runtime.NodeError{}, &runtime.OutOfMemoryError{}, &runtime.CarriedError{}, &learn.Recalled{}, (*learn.Recalled)(nil), learn.Way{}, &learn.Learned{}, (*learn.Learned)(nil), &learn.Learned{Machine: planner.H200(), Ways: []learn.Way{{Each: runtime.Series{Median: 1}}, {Plan: p, Each: runtime.Series{Median: 1}}}}, &dag.EdgeLimitError{}, &cudart.Error{}, &cudart.RaceError{}, &cudart.Command{}, &dag.TileLimitError{}, cudart.Strip{}, cudart.Strip{Rows: 3, Bytes: 5}, &cudart.Access{Rows: -1},
		cudart.Element(0), cudart.Element(99), &cudart.Texture{}, &cudart.Texture{Width: -1, Height: 1 << 62, Depth: 1 << 62, Pitch: 1 << 62, Channels: -3})
	for t := range h.pool { // cached before the pool was complete
		if t.Kind() == reflect.Interface {
			delete(h.pool, t)
		}
	}
	return func() {
		_ = program.Close()
		_ = device.Close()
	}
}

// hostileBuilder declares a few valid nodes.
func hostileBuilder(name string) *dag.Builder {
	b := dag.New(name)
	b.Use(kernels.Library())
	x := b.Host("x", dag.F32, 8)
	b.Init(x, dag.Init{Kind: dag.InitRamp, B: 1})
	d := b.Device("d_x", dag.F32, 8)
	y := b.Host("y", dag.F32, 8)
	b.Copy("up", b.Whole(d), b.Whole(x))
	b.Kernel("twice", "scale", dag.Args{8, 2.0, b.Whole(d)})
	b.Map("more", "d = d + 1", map[string]any{"d": b.Whole(d)})
	b.Copy("down", b.Whole(y), b.Whole(d))
	return b
}

// damaged returns a plan with one field somewhere replaced.
func (h *hostile) damaged(t *testing.T, g *dag.Graph, p *plan.Plan) *plan.Plan {
	var text bytes.Buffer
	require.NoError(t, p.EncodeJSON(&text, g))
	read, err := plan.DecodePlan(&text, g)
	require.NoError(t, err)
	h.damage(reflect.ValueOf(read).Elem())
	return read
}

// spoilt returns a pipeline with one field somewhere replaced.
func (h *hostile) spoilt(t *testing.T) *dag.Pipeline {
	g, err := hostileBuilder("spoilt").Graph()
	require.NoError(t, err)
	h.damage(reflect.ValueOf(g.Pipeline).Elem())
	return g.Pipeline
}

// distorted returns a timeline with one field somewhere replaced.
func (h *hostile) distorted(t *plan.Timeline) *plan.Timeline {
	c := *t
	c.Nodes, c.Host = slices.Clone(t.Nodes), slices.Clone(t.Host)
	h.damage(reflect.ValueOf(&c).Elem())
	return &c
}

// damage replaces one value inside of another.
func (h *hostile) damage(v reflect.Value) {
	switch {
	case v.Kind() == reflect.Struct && h.IntN(8) > 0:
		if f := v.Field(h.IntN(v.NumField())); f.CanSet() {
			h.damage(f)
		}
	case v.Kind() == reflect.Slice && v.Len() > 0 && h.IntN(4) > 0:
		h.damage(v.Index(h.IntN(v.Len())))
	case v.Kind() == reflect.Pointer && !v.IsNil() && h.IntN(4) > 0:
		h.damage(v.Elem())
	default:
		v.Set(h.value(v.Type(), 3))
	}
}

// hostileLibrary is a library that returns anything.
type hostileLibrary struct{ h *hostile }

func (h *hostile) library() *hostileLibrary { return &hostileLibrary{h} }

func (l *hostileLibrary) Names() []string { return []string{"", "b", "a"} }

func (l *hostileLibrary) Kernel(string, []dag.DType) (dag.LaunchKernel, error) { return l.any() }

func (l *hostileLibrary) Map(*dag.MapSpec) (dag.LaunchKernel, error) { return l.any() }

func (l *hostileLibrary) any() (dag.LaunchKernel, error) {
	switch l.h.IntN(4) {
	case 0:
		return nil, nil
	case 1:
		return nil, &dag.ArgumentError{Param: "x", Index: l.h.IntN(99) - 9, Problem: "is wrong"}
	}
	return l.h.kernel(), nil
}

// hostileKernel is a kernel whose description is arbitrary and changes with each call.
type hostileKernel struct{ h *hostile }

func (h *hostile) kernel() *hostileKernel { return &hostileKernel{h} }

func (k *hostileKernel) Entry() string { return hostileTexts[k.h.IntN(len(hostileTexts))] }

func (k *hostileKernel) Params() []dag.KernelParam {
	return k.h.value(reflect.TypeFor[[]dag.KernelParam](), 3).Interface().([]dag.KernelParam)
}

func (k *hostileKernel) Describe([]dag.Arg) (dag.LaunchInfo, error) {
	return k.h.value(reflect.TypeFor[dag.LaunchInfo](), 3).Interface().(dag.LaunchInfo), nil
}
