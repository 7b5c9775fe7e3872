// What a used file sees of the file that uses it: prefixes, paths, bound params and buffers, and modules.

package file

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/dag/expr"
	"github.com/dagrun/dagrun/internal/words"
	"gopkg.in/yaml.v3"
)

// prefixed is a name of this file as the pipeline has it.
func (p *parser) prefixed(name string) string {
	if p.within == nil {
		return name
	}
	return p.within.prefix + name
}

// fullName is prefixed for a name that a node or buffer of the pipeline gets.
func (p *parser) fullName(at *yaml.Node, name string) (string, bool) {
	full := p.prefixed(name)
	if len(full) > dag.MaxName {
		p.mistake(position(at), "", "the name has %d bytes with the names of its uses; at most %d are allowed", len(full), dag.MaxName)
		return "", false
	}
	return full, true
}

// bound finds what with: gives for a name.
func (p *parser) bound(name string) *boundName {
	if p.within == nil {
		return nil
	}
	for k := range p.within.with {
		if b := &p.within.with[k]; b.name == name {
			b.used = true
			return b
		}
	}
	return nil
}

// bindBuffer puts a buffer of the file that uses this one in the place of one that is declared here.
func (p *parser) bindBuffer(name string, declared *dag.Buffer, hasDevice bool, b *boundName) {
	user := p.within.user
	place := fmt.Sprintf("%s of %s (line %d)", words.Shorten(name), p.options.Name, declared.Pos.Line)
	if !b.arg.IsBuffer {
		user.mistake(position(b.value), "", "%s is a buffer, not a number", place)
		return
	}
	given := &p.pipeline.Buffers[b.arg.Range.Buffer]
	switch {
	case declared.Symbol != "":
		user.mistake(position(b.value), "", "%s is a variable of a module, which no other buffer can stand for", place)
		return
	case b.arg.Range.Lo != 0 || b.arg.Range.Hi != given.Bytes:
		user.mistake(position(b.value), "copy the slice to a buffer of its own first", "%s is bound to a part of %q; only whole buffers are possible",
			place, words.Shorten(given.Name))
		return
	case given.Place != declared.Place || given.DType != declared.DType || !slices.Equal(given.Shape, declared.Shape) || hasDevice &&
		given.Device != declared.Device:
		user.mistake(position(b.value), "", "%s is %s, but %q (line %d) is %s%s", place, bufferText(declared), words.Shorten(given.Name), given.Pos.Line,
			bufferText(given), user.repetition())
		return
	}
	p.buffers[name] = b.arg.Range.Buffer
}

// fromRoot turns a path that this file names into one from the folder of the outermost file.
func (p *parser) fromRoot(path string) string {
	if p.within == nil || path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(p.within.folder, path)
}

// inBrokenUse reports whether a name is one of a use that could not be read.
func (p *parser) inBrokenUse(name string) bool { return hasPrefixOf(name, p.brokenUses) }

func hasPrefixOf(name string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

// boundParam is a param's value as the file that uses this one gives it, or its default.
func (p *parser) boundParam(name string, pos dag.Pos, standard expr.Value) (expr.Value, bool) {
	b := p.bound(name)
	if b == nil {
		return standard, true
	}
	user := p.within.user
	if b.arg.IsBuffer {
		user.mistake(position(b.value), "", "%q is a param of %s (line %d); it needs a number, not a buffer", words.Shorten(name), p.options.Name, pos.Line)
		return expr.Value{}, false
	}
	v, problem, hint := fit(name, standard, b.arg.Value)
	if problem != "" {
		user.mistake(position(b.value), hint, "%s in %s (line %d)%s", problem, p.options.Name, pos.Line, user.repetition())
		return expr.Value{}, false
	}
	return v, true
}

// moduleName is the name of a module in the pipeline: one that expressions can hold, for it stands before the dot of a kernel's name.
func (p *parser) moduleName(name string) string {
	if p.within != nil {
		name = strings.Map(func(r rune) rune {
			if r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
				return r
			}
			return '_'
		}, p.prefixed(name))
		if !expr.ValidName(name) {
			name = "_" + name
		}
	}
	unique := name
	for k := 2; p.uses.names[unique]; k++ {
		unique = fmt.Sprintf("%s_%d", name, k)
	}
	p.uses.names[unique] = true
	return unique
}

// openModule opens a module once, however often its file is used.
func (p *parser) openModule(m dag.Module) (dag.Library, error) {
	key := fmt.Sprintf("%q %q %q %q %q", m.Path, m.Include, m.Define, m.Options, m.Compiler)
	if library, ok := p.uses.libraries[key]; ok {
		return library, nil
	}
	library, err := p.options.OpenModule(m)
	if table, ok := library.(dag.Symbols); err == nil && (!ok || len(table.Symbols()) == 0) { // otherwise each use has variables of its own
		p.uses.libraries[key] = library
	}
	return library, err
}

// shownPath is a path for messages.
func (p *parser) shownPath(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(p.options.Dir, path)
}

// bufferText says what kind of memory a buffer is: "device f32 [4, 8]".
func bufferText(b *dag.Buffer) string {
	where := b.Place.String()
	if b.Device > 0 {
		where = fmt.Sprintf("%s %d", where, b.Device)
	}
	return fmt.Sprintf("%s %s %s", where, b.DType, shapeList(b.Shape))
}

// fit gives the value of a param the type that its default has, or says what keeps it from that.
func fit(name string, standard, v expr.Value) (fitted expr.Value, problem, hint string) {
	if (v.Kind() == expr.Bool) != (standard.Kind() == expr.Bool) {
		if v.Kind() == expr.Bool {
			return v, name + " is a number", ""
		}
		return v, name + " is true or false", ""
	}
	if _, integer := standard.Int(); integer && standard.Kind() == expr.Rational {
		n, ok := v.Int()
		if !ok {
			return v, name + " is an integer", fmt.Sprintf("write %s: %s.0 in the file for a param with fractions", name, standard)
		}
		return expr.Int(n), "", ""
	}
	if standard.Kind() == expr.Float {
		return expr.FloatValue(v.Float()), "", ""
	}
	return v, "", ""
}

// allBound refuses names of with: that the file does not have.
func (p *parser) allBound() {
	w := p.within
	for k := range w.with {
		b := &w.with[k]
		if b.used {
			continue
		}
		hint := ""
		if near := p.near(b.name, func() []string { return p.names }, p.bufferNames); near != "" {
			hint = fmt.Sprintf("did you mean %q?", near)
		}
		w.user.mistake(position(b.key), hint, "%s has no param and no buffer %q", p.options.Name, words.Shorten(b.name))
	}
}

// agreeOnSync refuses a file whose sync is not that of the file that uses it.
func (p *parser) agreeOnSync(root *yaml.Node, f field) {
	sync, at := dag.SyncAuto, root
	if f.value != nil {
		at = f.value
		switch p.word(at, "sync", "auto", "explicit") {
		case "explicit":
			sync = dag.SyncExplicit
		case "":
			return
		}
	}
	if sync != p.pipeline.Sync {
		p.mistake(position(at), "both files need the same", "sync is %s here, but %s in the file that uses this one", sync, p.pipeline.Sync)
	}
}
