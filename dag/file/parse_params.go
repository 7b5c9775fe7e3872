// Params of a pipeline file, and those given on the command line.

package file

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/dag/expr"
	"github.com/dagrun/dagrun/internal/words"
	"gopkg.in/yaml.v3"
)

// readParams evaluates the params in order; each may use the ones before it.
func (p *parser) readParams(f field) {
	p.params = map[string]*binding{}
	defer p.unknownOverrides()
	if f.value == nil || isNull(f.value) {
		return
	}
	if f.value.Kind != yaml.MappingNode {
		p.wrongKind(f.value, "params", "a mapping of names to numbers")
		return
	}
	content := f.value.Content
	for k := 0; k+1 < len(content); k += 2 {
		key, value := content[k], content[k+1]
		if !p.isKey(key) || !p.usableName(key, key.Value, "param") {
			continue
		}
		b := &binding{name: key.Value, pos: position(key)}
		p.inParams = true
		v, ok := p.number(value, "param "+key.Value)
		p.inParams = false
		if ok {
			v, ok = p.override(key.Value, v)
		}
		if ok {
			v, ok = p.boundParam(key.Value, b.pos, v)
		}
		b.value, b.broken = v, !ok
		p.params[b.name] = b
		p.names = append(p.names, b.name)
		if p.within == nil {
			p.pipeline.Params = append(p.pipeline.Params, dag.Param{Name: b.name, Value: v})
		}
	}
}

// override returns what -p gives for a param, of the type that its default has.
func (p *parser) override(name string, standard expr.Value) (expr.Value, bool) {
	given := -1
	for k := range p.options.Params {
		if p.options.Params[k].Name == name {
			given = k
		}
	}
	if given < 0 {
		return standard, true
	}
	written := p.options.Params[given].Value
	refuse := func(hint, format string, args ...any) (expr.Value, bool) {
		p.mistake(dag.Pos{}, hint, "-p %s=%s: %s", name, words.Shorten(written), fmt.Sprintf(format, args...))
		return expr.Value{}, false
	}
	e, err := expr.Parse(written)
	var v expr.Value
	if err == nil {
		v, err = e.Eval(expr.Empty{})
	}
	if err != nil {
		var place *expr.Error
		hint := ""
		if errors.As(err, &place) {
			hint = place.Hint
			err = errors.New(place.Message)
		}
		return refuse(hint, "%s", err)
	}
	v, problem, hint := fit(name, standard, v)
	if problem != "" {
		return refuse(hint, "%s", problem)
	}
	return v, true
}

func (p *parser) unknownOverrides() {
	for _, o := range p.options.Params {
		if _, ok := p.params[o.Name]; ok {
			continue
		}
		hint := ""
		if near := p.near(o.Name, func() []string { return p.names }); near != "" {
			hint = fmt.Sprintf("did you mean %q?", near)
		} else if len(p.names) == 0 {
			hint = "the file has no params"
		} else {
			hint = "the file has " + words.Shorten(strings.Join(p.names, ", "))
		}
		p.mistake(dag.Pos{}, hint, "-p %s=%s: unknown param %q", words.Shorten(o.Name), words.Shorten(o.Value), words.Shorten(o.Name))
	}
}

// seed evaluates the seed of a random fill.
func (p *parser) seed(f field) (uint64, bool) {
	if f.value == nil {
		return 0, true
	}
	n, ok := p.between(f.value, "seed", 0, math.MaxInt64)
	return uint64(n), ok
}
