// Ways out of mistakes that concern a node and the buffers it uses: arguments in the wrong order, and buffers declared with another type or
// size than their use needs.

package file

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/internal/words"
)

// declared says how a buffer is declared and on which line: "d_x is f32 [4096] on line 12".
func (p *parser) declared(id dag.BufferID) string {
	b := &p.pipeline.Buffers[id]
	file := ""
	if w := p.within; w != nil && int(id) < w.firstBuffer {
		file = " of " + w.user.options.Name
	}
	return fmt.Sprintf("%s is %s %s on line %d%s", words.Shorten(b.Name), b.DType, shapeList(b.Shape), b.Pos.Line, file)
}

// declaredBoth is declared of the two buffers of a copy.
func (p *parser) declaredBoth(src, dst dag.BufferID) string {
	if src == dst {
		return p.declared(src)
	}
	return p.declared(src) + ", " + p.declared(dst)
}

// launchHint says what mends a launch, if one change does: two arguments swapped, or another type for a buffer. Otherwise it says how the
// buffer that the problem is about is declared, unless the argument says how the buffer is used: then that is what is wrong, not the size.
func (p *parser) launchHint(node *dag.Node, spec *dag.LaunchSpec, bad *dag.LaunchProblem) string {
	if bad.Part != dag.PartArg && bad.Part != dag.PartArgs {
		return ""
	}
	if spec.Map == nil && spec.Names == nil {
		if hint := p.swapHint(node, spec, bad.Arg); hint != "" {
			return hint
		}
	}
	if hint := p.typeHint(node, spec); hint != "" {
		return hint
	}
	if bad.Arg >= 0 && spec.Args[bad.Arg].IsBuffer && spec.Args[bad.Arg].Mode == 0 {
		return p.declared(spec.Args[bad.Arg].Range.Buffer)
	}
	return ""
}

// swapHint finds two arguments that make the launch right if they are swapped, the argument that the problem is about first.
func (p *parser) swapHint(node *dag.Node, spec *dag.LaunchSpec, about int) string {
	const most = 16 // arguments; all pairs are tried
	if len(spec.Args) > most {
		return ""
	}
	order := make([]int, 0, len(spec.Args))
	if about >= 0 {
		order = append(order, about)
	}
	for k := range spec.Args {
		if k != about {
			order = append(order, k)
		}
	}
	for i, a := range order {
		for _, b := range order[i+1:] {
			swapped := *spec
			swapped.Args = slices.Clone(spec.Args)
			swapped.Args[a], swapped.Args[b] = spec.Args[b], spec.Args[a]
			if p.pipeline.Fits(p.options.Library, *node, &swapped) {
				hint := fmt.Sprintf("swap arguments %d and %d", min(a, b)+1, max(a, b)+1)
				if !spec.Args[a].IsBuffer && !spec.Args[b].IsBuffer && about >= 0 && spec.Args[about].IsBuffer {
					// Two swapped numbers may fit by chance, so show the buffer's declaration too.
					hint += ", or " + p.declared(spec.Args[about].Range.Buffer)
				}
				return hint
			}
		}
	}
	return ""
}

// typeHint finds the types that make the launch right if one of its buffers has them.
func (p *parser) typeHint(node *dag.Node, spec *dag.LaunchSpec) string {
	var ways []string
	tried := map[dag.BufferID]bool{}
	for k := range spec.Args {
		id := spec.Args[k].Range.Buffer
		if !spec.Args[k].IsBuffer || tried[id] {
			continue
		}
		tried[id] = true
		buffer := &p.pipeline.Buffers[id]
		was := *buffer
		for t := dag.F16; t <= dag.Bool; t++ {
			if t == was.DType {
				continue
			}
			// The elements stay the same, so that the ranges of all arguments that use the buffer change with the type.
			other := *spec
			other.Args = slices.Clone(spec.Args)
			for i := range other.Args {
				if a := &other.Args[i]; a.IsBuffer && a.Range.Buffer == id {
					a.Range.Lo, a.Range.Hi = a.Range.Lo/was.DType.Size()*t.Size(), a.Range.Hi/was.DType.Size()*t.Size()
					a.Range.Pitch = int32(int64(a.Range.Pitch) / was.DType.Size() * t.Size())
				}
			}
			buffer.DType, buffer.Bytes = t, was.Bytes/was.DType.Size()*t.Size()
			if p.pipeline.Fits(p.options.Library, *node, &other) {
				ways = append(ways, fmt.Sprintf("%s as %s (line %d)", words.Shorten(was.Name), t, was.Pos.Line))
			}
			*buffer = was
		}
	}
	if len(ways) == 0 {
		return ""
	}
	return "it fits with " + strings.Join(ways, ", or ")
}

// shapeList writes a shape as a pipeline file does.
func shapeList(shape []int64) string {
	sizes := make([]string, len(shape))
	for k, n := range shape {
		sizes[k] = fmt.Sprint(n)
	}
	return "[" + strings.Join(sizes, ", ") + "]"
}
