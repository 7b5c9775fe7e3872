// devices: of a pipeline file: over how many devices it may be spread.

package file

import (
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/internal/words"
	"gopkg.in/yaml.v3"
)

// devices reads over how many devices the work may be spread. An option takes the place of what the file says.
func (p *parser) devices(f field) {
	asked, pos := p.options.Devices, dag.Pos{Line: 1, Column: 1}
	if f.value != nil {
		pos = position(f.value)
		said, ok := p.deviceCount(f.value)
		if !ok {
			return
		}
		if asked == 0 {
			asked = said
		}
	}
	if asked < dag.AllDevices || asked > dag.MostDevices {
		p.mistake(pos, "", "a pipeline can be spread over 1 to %d devices, not %d", dag.MostDevices, asked)
		return
	}
	if asked != 0 && asked != 1 && p.options.Ranks > 1 {
		p.mistake(pos, "leave out devices, or run one process without ranks", "each of several ranks has one device; spreading over devices is for one process")
		return
	}
	p.pipeline.Devices = int32(asked)
}

func (p *parser) deviceCount(n *yaml.Node) (int, bool) {
	if n.Kind == yaml.ScalarNode && n.Value == "all" {
		return dag.AllDevices, true
	}
	if _, known := p.params[n.Value]; n.Kind == yaml.ScalarNode && plainKey.MatchString(n.Value) && !known {
		p.mistake(position(n), "", "devices must be a number or all, not %q", words.Shorten(n.Value))
		return 0, false
	}
	v, ok := p.between(n, "devices", 1, dag.MostDevices)
	return int(v), ok
}

// usedDevices refuses devices in a file that another file uses.
func (p *parser) usedDevices(f field) {
	if f.value != nil {
		p.mistake(position(f.key), "write it in the file that uses this one", "devices is set once, for the whole pipeline")
	}
}
