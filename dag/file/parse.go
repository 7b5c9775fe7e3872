// Reading a pipeline file from its first line to its graph. Each part of a file has a file of its own here, and parser.go what they share.

package file

import (
	"context"
	"errors"
	"path/filepath"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/dagrun/dagrun/dag"
)

// Parse reads a pipeline file and derives its graph. The error is a *ParseError with every mistake of the file, in file order; the
// graph is then nil. What is legal but probably not meant is in Graph.Warnings.
func Parse(source []byte, options Options) (*dag.Graph, error) {
	return ParseContext(context.Background(), source, options)
}

// ParseContext is Parse with a context, which ends compilations: modules may be compiled to find out what their kernels do (see [Confirmer]).
func ParseContext(ctx context.Context, source []byte, options Options) (*dag.Graph, error) {
	return newParser(options).read(ctx, source)
}

func (p *parser) read(ctx context.Context, source []byte) (*dag.Graph, error) {
	if ctx != nil {
		p.ended = ctx.Done()
	}
	graph := p.parse(ctx, source)
	if err := p.err(); err != nil {
		return nil, err
	}
	if p.stopped() {
		return nil, context.Cause(ctx)
	}
	return graph.WithWarnings(p.merged(&p.warnings, func(f *usedFile) *findings { return &f.warnings })), nil
}

// err returns the mistakes found so far as an error, or nil.
func (p *parser) err() error {
	if !p.failed() {
		return nil
	}
	return &ParseError{p.merged(&p.mistakes, func(f *usedFile) *findings { return &f.mistakes })}
}

func (p *parser) parse(ctx context.Context, source []byte) *dag.Graph {
	root := p.root(source)
	if root == nil || !p.declare(ctx, root) || p.stopped() {
		return nil
	}
	return p.derive()
}

// declare reads the parts of a file into the pipeline, and reports whether there is no mistake.
func (p *parser) declare(ctx context.Context, root *yaml.Node) bool {
	p.uses.outermost = outermostPath(&p.options)
	p.pipeline = &dag.Draft{Pipeline: dag.Pipeline{Dir: p.options.Dir, Rank: int32(p.options.Rank), Ranks: int32(p.options.Ranks), MaxEdges: p.options.MaxEdges}}
	if p.memory != nil && p.memory.old != nil {
		p.pipeline.Reuse(p.memory.old)
	}
	p.budget = p.options.mostRepeated()
	if !p.version(root) {
		return false
	}
	var f [fileKeyCount]field
	if !p.fields(root, &fileKeys, f[:]) {
		return false
	}
	unknownKeys := p.unknownKeys
	p.name(f[fileName])
	p.readParams(f[fileParams])
	p.devices(f[fileDevices])
	p.readModules(f[fileModules])
	p.readBuffers(f[fileBuffers])
	p.sync(f[fileSync])
	if f[fileNodes].value == nil && !unknownKeys {
		p.mistake(position(root), "", "nodes are missing")
	} else if f[fileNodes].value != nil {
		p.readNodes(ctx, f[fileNodes])
	}
	p.bindFiles()
	p.readAfter()
	p.checkStreams()
	p.finishBodies()
	p.confirm(ctx)
	if p.failed() {
		return false
	}
	p.pipeline.OrderCommunication()
	return true
}

// derive derives the dependencies of a pipeline without mistakes.
func (p *parser) derive() *dag.Graph {
	graph, err := p.pipeline.Derive(p.ended)
	if err != nil && p.stopped() {
		return nil
	}
	if err != nil {
		var cycle *dag.CycleError
		pos := dag.Pos{}
		if errors.As(err, &cycle) {
			pos = cycle.Pos
		}
		hint := ""
		var limit *dag.EdgeLimitError
		if errors.As(err, &limit) {
			pos, hint = limit.Pos, limit.Hint
			err = errors.New(limit.Problem)
		}
		p.mistake(pos, hint, "%s", err)
		return nil
	}
	p.warn(graph)
	return graph
}

func (p *parser) name(f field) {
	if f.value == nil {
		base := filepath.Base(p.options.Name)
		p.pipeline.Name = strings.TrimSuffix(base, filepath.Ext(base))
		if p.pipeline.Name == "" || p.pipeline.Name == "." || strings.ContainsAny(base[:1], "-<") {
			p.pipeline.Name = "pipeline"
		}
		return
	}
	name, ok := p.string(f.value, "name")
	if !ok {
		return
	}
	if err := dag.CheckName(name); err != nil {
		p.mistake(position(f.value), "", "%s", err)
		return
	}
	p.pipeline.Name = name
}

func (p *parser) sync(f field) {
	if f.value == nil {
		return
	}
	switch word := p.word(f.value, "sync", "auto", "explicit"); word {
	case "explicit":
		p.pipeline.Sync = dag.SyncExplicit
	}
}

// root reads the tree of a file, or returns nil where it is not one of a pipeline.
func (p *parser) root(source []byte) *yaml.Node {
	if err := p.options.problem(); err != nil {
		p.text, _ = newText(source)
		p.mistake(dag.Pos{}, "", "%s", err)
		return nil
	}
	return p.pipelineTree(source)
}
