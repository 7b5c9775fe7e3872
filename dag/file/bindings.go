// Files that the command line binds to host buffers: --load names the initial contents, --save where the contents go after a run.

package file

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/internal/files"
	"github.com/dagrun/dagrun/internal/words"
)

// bindFiles applies Options.Load and Options.Save once all buffers are known.
func (p *parser) bindFiles() {
	p.bindAll("load", p.options.Load, func(b *dag.Buffer, _, path string) {
		b.Init = &dag.Init{Kind: dag.InitFile, File: path}
	})
	written := map[string]savePlace{} // by file
	for k := range p.pipeline.Buffers {
		if b := &p.pipeline.Buffers[k]; b.Save != "" && !bindsBuffer(p.options.Save, b.Name) {
			written[files.Full(p.options.Dir, b.Save)] = savePlace{b.Name, b.Pos}
		}
	}
	p.bindAll("save", p.options.Save, func(b *dag.Buffer, given, path string) {
		b.Save = path
		file := files.Full(p.options.Dir, path)
		if first, taken := written[file]; taken {
			p.mistake(dag.Pos{}, "give each buffer a file of its own", "--save %s: buffer %q%s is saved to the same file", bindingText(b.Name, given),
				words.Shorten(first.buffer), first.pos.OnLine())
			return
		}
		written[file] = savePlace{b.Name, dag.Pos{}}
	})
}

func bindsBuffer(bindings []Binding, name string) bool {
	for k := range bindings {
		if bindings[k].Buffer == name {
			return true
		}
	}
	return false
}

func bindingText(buffer, file string) string {
	return words.Shorten(buffer) + "=" + words.Shorten(file)
}

// bindAll finds the buffers of one kind of binding. The file is handed on as given, and as a pipeline file in Options.Dir would name it.
func (p *parser) bindAll(flag string, bindings []Binding, bind func(b *dag.Buffer, given, path string)) {
	seen := map[string]bool{}
	for _, f := range bindings {
		text := bindingText(f.Buffer, f.File)
		refuse := func(hint, format string, args ...any) {
			p.mistake(dag.Pos{}, hint, "--%s %s: %s", flag, text, fmt.Sprintf(format, args...))
		}
		id, known := p.buffers[f.Buffer]
		switch {
		case seen[f.Buffer]:
			refuse("", "%q is given a file already", words.Shorten(f.Buffer))
		case !hasSuffix(f.File, ".npy", ".bin"):
			refuse("", "the file must be a .npy or .bin file")
		case !known:
			refuse(p.hostBufferHint(f.Buffer), "unknown buffer %q", words.Shorten(f.Buffer))
		case id == broken: // it has a mistake of its own
		case p.pipeline.Buffers[id].Place == dag.Device:
			refuse(p.hostBufferHint(""), "%q%s is a device buffer; a file can be bound only to a host buffer", words.Shorten(f.Buffer),
				p.pipeline.Buffers[id].Pos.OnLine())
		default:
			bind(&p.pipeline.Buffers[id], f.File, relativeTo(p.options.Dir, f.File))
		}
		seen[f.Buffer] = true
	}
}

// hostBufferHint suggests a host buffer for a name, or lists those that there are.
func (p *parser) hostBufferHint(name string) string {
	const most = 8
	var names []string
	for k := range p.pipeline.Buffers {
		if b := &p.pipeline.Buffers[k]; b.Place == dag.Host {
			names = append(names, b.Name)
		}
	}
	if near := p.near(name, func() []string { return names }); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	switch {
	case len(names) == 0:
		return "the pipeline has no host buffers"
	case len(names) > most:
		return fmt.Sprintf("host buffers are %s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return "host buffers are " + strings.Join(names, ", ")
}

// relativeTo writes a path from the working directory as one from dir, so that both kinds of paths are read alike from there on.
func relativeTo(dir, path string) string {
	if filepath.IsAbs(path) || dir == "" {
		return path
	}
	if relative, err := filepath.Rel(dir, path); err == nil {
		return relative
	}
	if full, err := filepath.Abs(path); err == nil {
		return full
	}
	return path
}
