// Buffers of a pipeline file: place, type, shape, and the file that one is saved to.

package file

import (
	"fmt"
	"math"
	"path/filepath"
	"strings"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/internal/files"
	"github.com/dagrun/dagrun/internal/words"
	"gopkg.in/yaml.v3"
)

func (p *parser) readBuffers(f field) {
	p.buffers = map[string]dag.BufferID{}
	if f.value == nil || isNull(f.value) {
		return
	}
	p.bufferEntries(f.value)
}

// bufferEntries reads a mapping of names to buffers. An entry with a foreach is repeated; one with buffers: in it is a group
// whose own name says nothing.
func (p *parser) bufferEntries(n *yaml.Node) {
	if n.Kind != yaml.MappingNode {
		p.wrongKind(n, "buffers", "a mapping of names to buffers")
		return
	}
	for k := 0; k+1 < len(n.Content); k += 2 {
		key, value := n.Content[k], n.Content[k+1]
		if !p.isKey(key) {
			continue
		}
		if bufferKeys.find(key.Value) >= 0 && !declaresBuffer(value) {
			p.mistake(position(key), "indent it below the name of its buffer", "%q is a key of a buffer, not the name of one", key.Value)
			continue
		}
		var f [bufferKeyCount]field
		if !p.fields(value, &bufferKeys, f[:]) {
			if name, ok := p.expanded(key, "name"); ok {
				p.buffers[name] = broken
			}
			continue
		}
		unknownKeys := p.unknownKeys
		body := func() { p.buffer(key, value, &f, unknownKeys) }
		size, rest := func() int64 { return 1 }, &yaml.Node{}
		if group := f[bufferBuffers]; group.value != nil {
			if f[bufferForeach].value == nil {
				p.mistake(position(group.key), "", "buffers: inside of a buffer belongs to a foreach")
				continue
			}
			for i := range f {
				if f[i].value != nil && i != bufferForeach && i != bufferBuffers {
					p.mistake(position(f[i].key), "", "a foreach with buffers: has no %s of its own", f[i].key.Value)
				}
			}
			body = func() { p.bufferEntries(group.value) }
			size, rest = func() int64 { return p.countEntries(group.value) }, group.value
		}
		if f[bufferForeach].value == nil {
			body()
			continue
		}
		p.foreach(f[bufferForeach].value, rest, size, body)
	}
}

// declaresBuffer reports whether a mapping has keys that only a buffer or a group of buffers has.
func declaresBuffer(n *yaml.Node) bool {
	for _, key := range []string{"place", "dtype", "shape", "buffers"} {
		if lookup(n, key) != nil {
			return true
		}
	}
	return false
}

// countItem counts what an item of nodes or an entry of buffers makes; group is the key of those that hold others.
func (p *parser) countItem(item *yaml.Node, group string, count func(*yaml.Node) int64) int64 {
	loop, inner := lookup(item, "foreach"), lookup(item, group)
	size, rest := func() int64 { return 1 }, &yaml.Node{}
	if inner != nil {
		size, rest = func() int64 { return count(inner) }, inner
	}
	if loop == nil {
		return size()
	}
	return p.repetitions(loop, rest, size)
}

// countEntries counts the buffers that a group makes, up to the budget.
func (p *parser) countEntries(n *yaml.Node) int64 {
	if n.Kind != yaml.MappingNode {
		return 0
	}
	total := int64(0)
	for k := 1; k < len(n.Content) && total <= p.budget; k += 2 {
		total += p.countItem(n.Content[k], "buffers", p.countEntries)
	}
	return total
}

// buffer reads one buffer in the present repetition. unknownKeys: see parser.unknownKeys.
func (p *parser) buffer(key, value *yaml.Node, f *[bufferKeyCount]field, unknownKeys bool) {
	if p.idle {
		p.complete(value, f, unknownKeys, key.Value)
		return
	}
	name, ok := p.expanded(key, "name")
	if !ok {
		return
	}
	b := dag.Buffer{Name: name, Pos: position(key)}
	if !p.freshBuffer(key, name) {
		return
	}
	p.buffers[name] = broken
	ok = p.where(value, &b, f)
	if !p.size(value, &b, f, unknownKeys) {
		return
	}
	ok = readRows(p, bufferRows[:], f[:], &b) && ok
	if f[bufferInit].value != nil {
		b.Init, ok = p.init(f[bufferInit].value, &b, ok)
	}
	bound := p.bound(name) // what uses this file says where such a buffer is saved, and to what it is compared
	if f[bufferSave].value != nil && bound == nil {
		b.Save, ok = p.save(f[bufferSave].value, name, ok)
	}
	if f[bufferExpect].value != nil {
		b.Expect, ok = p.expect(f[bufferExpect].value, &b, ok)
	}
	if !ok {
		return
	}
	if bound != nil {
		p.bindBuffer(name, &b, f[bufferDevice].value != nil, bound)
		return
	}
	if b.Name, ok = p.fullName(key, name); !ok {
		return
	}
	p.buffers[name] = dag.BufferID(len(p.pipeline.Buffers))
	p.pipeline.Buffers = append(p.pipeline.Buffers, b)
	if b.Pageable {
		p.warning(position(f[bufferPinned].value), "leave pinned out unless memory is short",
			"copies of %q are not asynchronous: its memory is not pinned%s", name, p.repetition())
	}
}

func (p *parser) freshBuffer(key *yaml.Node, name string) bool {
	if err := dag.CheckName(name); err != nil {
		p.mistake(position(key), "", "%s", err)
		return false
	}
	if strings.HasSuffix(name, ")") {
		p.mistake(position(key), "call it "+renamed(name), "the name of buffer %q ends in a parenthesis, so that it would read as a slice", name)
		return false
	}
	if first, ok := p.params[name]; ok {
		p.mistake(position(key), "", "%q is a param already (line %d)", name, first.pos.Line)
		p.buffers[name] = broken
		return false
	}
	for k := range p.loops {
		if p.loops[k].name == name {
			p.mistake(position(key), "", "%q is a variable of a foreach here", name)
			p.buffers[name] = broken
			return false
		}
	}
	id, ok := p.buffers[name]
	if !ok {
		return true
	}
	if id == broken {
		p.mistake(position(key), "", "buffer %q is declared twice%s", name, p.repetition())
		return false
	}
	first := p.pipeline.Buffers[id].Pos
	if first == position(key) {
		p.mistake(first, "put a variable of the foreach in its name, as in "+name+".$i", "each repetition declares the buffer %q again", name)
		return false
	}
	p.mistake(position(key), "", "buffer %q is declared twice%s; the first is on line %d", name, p.repetition(), first.Line)
	return false
}

// where reads place, device and pinned.
func (p *parser) where(value *yaml.Node, b *dag.Buffer, f *[bufferKeyCount]field) bool {
	ok := true
	if place := f[bufferPlace]; place.value != nil {
		switch p.word(place.value, "place", "host", "device") {
		case "device":
			b.Place = dag.Device
		case "":
			return false
		}
	}
	if device := f[bufferDevice]; device.value != nil {
		n, fine := p.between(device.value, "device", 0, dag.MaxDevices-1)
		b.Device, b.Fixed, ok = int32(n), true, ok && fine
		if b.Place == dag.Host && f[bufferPlace].value != nil {
			p.mistake(position(device.key), "", "a host buffer has no device")
			ok = false
		}
	}
	if pinned := f[bufferPinned]; pinned.value != nil {
		v, fine := p.truth(pinned.value, "pinned")
		b.Pageable, ok = !v, ok && fine
		if b.Place == dag.Device {
			p.mistake(position(pinned.key), "", "a device buffer is never pinned")
			ok = false
		}
	}
	return ok
}

// complete reports whether a buffer has the keys that all need.
func (p *parser) complete(value *yaml.Node, f *[bufferKeyCount]field, unknownKeys bool, name string) bool {
	var missing []string
	for _, k := range []int{bufferPlace, bufferDType, bufferShape} {
		if f[k].value == nil {
			missing = append(missing, bufferKeys.keys[k])
		}
	}
	if len(missing) > 0 && !unknownKeys {
		p.mistake(position(value), "write {place: device, dtype: f32, shape: [n]}", "buffer %q has no %s", words.Shorten(name), strings.Join(missing, ", no "))
	}
	return len(missing) == 0
}

// size reads dtype and shape and computes the bytes.
func (p *parser) size(value *yaml.Node, b *dag.Buffer, f *[bufferKeyCount]field, unknownKeys bool) bool {
	ok := p.complete(value, f, unknownKeys, b.Name)
	if f[bufferDType].value != nil {
		b.DType = p.dtype(f[bufferDType].value)
		ok = ok && b.DType != dag.InvalidDType
	}
	if f[bufferShape].value != nil {
		shape, fine := p.shape(f[bufferShape].value)
		b.Shape, ok = shape, ok && fine
	}
	if !ok {
		return false
	}
	if err := b.SetBytes(); err != nil {
		p.mistake(position(f[bufferShape].value), "", "buffer %q: %s", words.Shorten(b.Name), err)
		return false
	}
	return true
}

func (p *parser) dtype(n *yaml.Node) dag.DType {
	s, ok := p.string(n, "dtype")
	if !ok {
		return dag.InvalidDType
	}
	t, ok := dag.ParseDType(s)
	if !ok {
		p.mistake(position(n), dtypeHint(s), "unknown dtype %q", words.Shorten(s))
	}
	return t
}

// dtypeHint suggests the type for its name in other languages.
func dtypeHint(s string) string {
	other := map[string]string{"float": "f32", "float32": "f32", "fp32": "f32", "single": "f32", "double": "f64", "float64": "f64", "fp64": "f64",
		"half": "f16", "float16": "f16", "fp16": "f16",
		"bfloat16": "bf16", "int": "i32", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64", "uint": "u32", "uint8": "u8", "uint16": "u16",
		"uint32": "u32", "uint64": "u64",
		"char": "i8", "uchar": "u8", "byte": "u8", "short": "i16", "ushort": "u16", "long": "i64", "ulong": "u64", "longlong": "i64",
		"ulonglong": "u64", "boolean": "bool",
		"complex64": "c64", "complex128": "c128", "complex": "c64", "cucomplex": "c64", "cufloatcomplex": "c64", "cudoublecomplex": "c128"}
	lower := strings.ToLower(s)
	base := strings.TrimRight(lower, "234")
	if _, ok := dag.ParseDType(lower); ok {
		return fmt.Sprintf("did you mean %q?", lower)
	} else if near, ok := other[lower]; ok {
		return fmt.Sprintf("did you mean %q?", near)
	} else if near, ok := dag.ParseDType(other[base] + "x" + lower[len(base):]); ok { // float4
		return fmt.Sprintf("did you mean %q?", near)
	}
	if near := words.Suggest(lower, dag.DTypes()); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	return "there are " + strings.Join(dag.DTypes()[:dag.C128], ", ") + ", and vectors such as f32x4"
}

func (p *parser) shape(n *yaml.Node) ([]int64, bool) {
	if n.Kind != yaml.SequenceNode {
		p.wrongList(n, "shape", "a list of dimensions")
		return nil, false
	}
	const most = 16
	if len(n.Content) > most {
		p.mistake(position(n), "", "shape has %d dimensions; at most %d are allowed", len(n.Content), most)
		return nil, false
	}
	shape, ok := make([]int64, len(n.Content)), true
	for k, c := range n.Content {
		v, fine := p.between(c, "a dimension", 0, math.MaxInt64)
		shape[k], ok = v, ok && fine
	}
	return shape, ok
}

// save reads the file that a buffer is saved to, which must not be another one's too. Sound is handed on, as by init.
func (p *parser) save(n *yaml.Node, buffer string, sound bool) (string, bool) {
	path, ok := p.dataFile(n, "save")
	if !ok {
		return "", false
	}
	file, pos := files.Full(p.options.Dir, path), position(n)
	first, taken := p.saves[file]
	if !taken {
		p.saves[file] = savePlace{buffer, pos}
		return path, sound
	}
	if first.pos == pos && p.within == nil {
		extension := filepath.Ext(path)
		p.mistake(pos, "put a variable of the foreach in it, as in "+strings.TrimSuffix(path, extension)+".$i"+extension, "each repetition is saved to %q",
			words.Shorten(path))
	} else {
		p.mistake(pos, "give each buffer a file of its own", "%q is saved to the same file as %q (line %d)", words.Shorten(buffer),
			words.Shorten(first.buffer), first.pos.Line)
	}
	return path, false
}
