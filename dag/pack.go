// The bytes of a structure whose members a file gives, and what its pointers lead to.

package dag

import (
	"fmt"
	"slices"

	"github.com/dagrun/dagrun/internal/words"
)

// memory is what is given for a pointer: a buffer, {in: b} and the like, or null; nil if it is neither.
func (v *StructureSpec) memory() *ArgumentSpec {
	if v.Memory != nil || len(v.Names) != 1 || v.List[0].Memory == nil || !v.List[0].Memory.IsBuffer {
		return v.Memory
	}
	for mode := Read; mode <= Untouched; mode++ {
		if v.Names[0] == mode.String() {
			a := *v.List[0].Memory
			a.Mode = mode
			return &a
		}
	}
	return nil
}

// number is how the value is named where it should be something else.
func (v *StructureSpec) number() string {
	switch {
	case v.Memory == nil:
		return fmt.Sprintf("the number %v", v.Number.Plain())
	case v.Memory.Null:
		return "null"
	}
	return "a buffer"
}

// pointed is the memory that was given for a pointer at an offset in a structure.
type pointed struct {
	offset int32
	memory *ArgumentSpec
}

// packing is a structure whose members are being written.
type packing struct {
	bytes    []byte
	pointers []pointed
}

// pack returns the bytes of a structure, and what its pointers point to, whose bytes are 0.
func (s *Structure) pack(v *StructureSpec) (string, []pointed, error) {
	p := packing{bytes: make([]byte, s.Size)}
	if err := p.fill(s, 0, v, ""); err != nil {
		return "", nil, err
	}
	return string(p.bytes), p.pointers, nil
}

// fill writes the members of a structure that lies at an offset. path is where in the argument it is: "" or ".eye".
func (p *packing) fill(s *Structure, offset int32, v *StructureSpec, path string) error {
	if !v.Whole {
		return fmt.Errorf("%sneeds the members of %s, got %s", memberText(path), s, v.number())
	}
	given := make([]*StructureSpec, len(s.Members))
	if v.Names == nil {
		if len(v.List) != len(s.Members) {
			return fmt.Errorf("%sneeds %s, got %d", memberText(path), membersText(s), len(v.List))
		}
		for k := range v.List {
			given[k] = &v.List[k]
		}
	}
	for k, name := range v.Names {
		at := slices.IndexFunc(s.Members, func(m Member) bool { return m.Name == name })
		if at < 0 {
			near := ""
			if text := words.Suggest(name, s.names()); text != "" {
				near = fmt.Sprintf("; did you mean %q?", text)
			}
			return fmt.Errorf("%shas no member %q: %s%s", memberText(path), name, s, near)
		}
		given[at] = &v.List[k]
	}
	for k := range s.Members {
		m := &s.Members[k]
		if given[k] == nil {
			return fmt.Errorf("%sis given no member %q of %s", memberText(path), m.Name, s)
		}
		if err := p.member(m, offset, given[k], path+"."+m.Name); err != nil {
			return err
		}
	}
	return nil
}

// memberText begins a message about a member; about the argument itself, the message begins with the verb.
func memberText(path string) string {
	if path == "" {
		return ""
	}
	return "has a member " + path[1:] + ", which "
}

func membersText(s *Structure) string {
	return fmt.Sprintf("%s of %s", words.Count(int64(len(s.Members)), "member", "members"), s)
}

func (p *packing) member(m *Member, offset int32, v *StructureSpec, path string) error {
	switch {
	case m.Count == 0:
		return p.element(m, offset+m.Offset, v, path)
	case !v.Whole || v.Names != nil || len(v.List) != int(m.Count):
		return fmt.Errorf("%sis an array, which needs a list of %d", memberText(path), m.Count)
	}
	for k := range v.List {
		if err := p.element(m, offset+m.Offset+int32(k)*m.Size(), &v.List[k], fmt.Sprintf("%s[%d]", path, k)); err != nil {
			return err
		}
	}
	return nil
}

func (p *packing) element(m *Member, offset int32, v *StructureSpec, path string) error {
	if m.Mode != 0 {
		memory := v.memory()
		if memory == nil {
			return fmt.Errorf("%sis a pointer, which needs a buffer, a slice or null", memberText(path))
		}
		p.pointers = append(p.pointers, pointed{offset, memory})
		return nil
	}
	if m.Struct != nil {
		return p.fill(m.Struct, offset, v, path)
	}
	if s := VectorStructure(m.DType); s != nil {
		return p.fill(s, offset, v, path)
	}
	switch {
	case v.Whole:
		return fmt.Errorf("%sis a number (%s), got a list", memberText(path), m.DType)
	case v.Memory != nil:
		return fmt.Errorf("%sis a number (%s), got %s", memberText(path), m.DType, v.number())
	case v.DType != InvalidDType && v.DType != m.DType:
		return fmt.Errorf("%sis of type %s, but the number is given as %s", memberText(path), m.DType, v.DType)
	}
	bits, err := m.DType.Bits(v.Number)
	if err != nil {
		return fmt.Errorf("%s%w", memberText(path), err)
	}
	putBits(p.bytes[offset:], bits, m.DType.Size())
	return nil
}

func putBits(bytes []byte, bits uint64, size int64) {
	for k := range size {
		bytes[k] = byte(bits >> (8 * k))
	}
}

// packTyped lays out numbers with types one after the other, as a compiler does, for a parameter of which only the size is known.
func packTyped(v *StructureSpec, size int32) (string, error) {
	var bytes []byte
	align := int64(1)
	for k := range v.List {
		m := &v.List[k]
		if m.Memory != nil {
			return "", fmt.Errorf("has members that the code does not name, so that a buffer cannot be one of them; name a source in CUDA C instead")
		}
		if m.Whole || v.Names != nil || m.DType == InvalidDType {
			return "", fmt.Errorf("has members that the code does not name; give a list of numbers with their types, such as {struct: [{f32: 1}, {i32: 2}]}")
		}
		bits, err := m.DType.Bits(m.Number)
		if err != nil {
			return "", fmt.Errorf("%s%w", memberText(fmt.Sprintf(".%d", k+1)), err)
		}
		bytes = roundUp(bytes, m.DType.Align())
		align = max(align, m.DType.Align())
		at := len(bytes)
		bytes = append(bytes, make([]byte, m.DType.Size())...)
		putBits(bytes[at:], bits, m.DType.Size())
	}
	if bytes = roundUp(bytes, align); len(bytes) != int(size) {
		return "", fmt.Errorf("has %s, the members that are given have %d", words.Count(int64(size), "byte", "bytes"), len(bytes))
	}
	return string(bytes), nil
}

// roundUp appends zeros up to a multiple of the alignment.
func roundUp(bytes []byte, align int64) []byte {
	for int64(len(bytes))%align != 0 {
		bytes = append(bytes, 0)
	}
	return bytes
}
