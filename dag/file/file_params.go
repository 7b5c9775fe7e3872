// The params or the buffers of a pipeline file without the rest of it: what a shell completes.

package file

import (
	"gopkg.in/yaml.v3"

	"github.com/dagrun/dagrun/dag"
)

// Params reads the params of a pipeline file and nothing else, so that it is quick on a file of any size and answers for a file
// whose other parts have mistakes. The error is a *ParseError, as Parse's is.
func Params(source []byte, name string) ([]dag.Param, error) {
	p := newParser(Options{Name: name})
	p.beginPart(source, func(root *yaml.Node) { p.readParams(field{value: lookup(root, "params")}) })
	return p.pipeline.Params, p.err()
}

// Buffers reads the params and the buffers of a pipeline file and nothing else, as Params does: what a shell completes after
// --load and --save. The params are those that the options give.
func Buffers(source []byte, options Options) ([]dag.Buffer, error) {
	p := newParser(options)
	p.beginPart(source, func(root *yaml.Node) {
		p.readParams(field{value: lookup(root, "params")})
		p.readBuffers(field{value: lookup(root, "buffers")})
	})
	return p.pipeline.Buffers, p.err()
}

// beginPart reads the text of a file, and then the part of it that read takes.
func (p *parser) beginPart(source []byte, read func(root *yaml.Node)) {
	p.pipeline = &dag.Draft{}
	p.budget = p.options.mostRepeated()
	t, bad := newText(source)
	p.text = t
	if bad == nil {
		root, unreadable := t.document()
		if bad = unreadable; bad == nil && root != nil && p.admissible(root, 1) {
			read(root)
		}
	}
	if bad != nil {
		p.problem(bad)
	}
}
