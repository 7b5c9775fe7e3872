// Host function nodes of a pipeline file.

package file

import (
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/internal/words"
	"gopkg.in/yaml.v3"
)

const hostArgsHint = "write args: [{in: x}, {out: y}], with in, out or inout for each buffer"

// hostFunction reads a node that runs a host function.
func (p *parser) hostFunction(node *dag.Node, f *[nodeKeyCount]field) ([]dag.Access, bool) {
	function, ok := p.expanded(f[nodeHost].value, "host")
	if !ok {
		return nil, false
	}
	if err := dag.CheckName(function); err != nil {
		p.mistake(position(f[nodeHost].value), "", "%s", err)
		return nil, false
	}
	node.Function, node.Device = function, max(node.Device, 0)
	list := f[nodeArgs].value
	if list == nil || isNull(list) {
		return nil, true
	}
	if list.Kind != yaml.SequenceNode {
		p.wrongList(list, "args", "a list")
		return nil, false
	}
	var accesses []dag.Access
	for _, n := range list.Content {
		a, fine := p.arg(n)
		switch {
		case !fine:
		case !a.IsBuffer:
			p.mistake(position(n), hostArgsHint, "a host function takes buffers only%s", p.repetition())
			fine = false
		case a.Mode == 0, a.Mode == dag.Untouched:
			p.mistake(position(n), hostArgsHint, "how the host function accesses %q is not said%s", words.Shorten(p.pipeline.Buffers[a.Range.Buffer].Name),
				p.repetition())
			fine = false
		default:
			if problem, hint := p.pipeline.HostAccessProblem(a.Range); problem != "" {
				p.mistake(position(n), hint, "%s%s", problem, p.repetition())
				fine = false
			}
		}
		ok = ok && fine
		accesses = append(accesses, dag.Access{Range: a.Range, Mode: a.Mode})
	}
	node.Work = dag.HostWork(accesses)
	return accesses, ok
}
