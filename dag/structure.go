// Structures that kernels take by value: their layout.

package dag

import (
	"fmt"
	"strings"
)

// Structure is the layout of a structure or vector that a kernel takes by value.
type Structure struct {
	Name        string // as its author calls it
	Size, Align int32  // in bytes
	Members     []Member
}

// Member is a member of a structure.
type Member struct {
	Name   string
	Offset int32      // in bytes
	Count  int32      // elements of an array; 0: it is none
	DType  DType      // of a number or a vector, or of what a pointer points to; InvalidDType: the pointer is untyped
	Struct *Structure // of a structure in the structure
	Mode   Mode       // of a pointer: how a kernel may use what it points to; 0: it is no pointer
}

// addressBytes is the size of a pointer.
const addressBytes = 8

// Pointer is a pointer in a structure that a kernel takes by value, however deep.
type Pointer struct {
	Path   string // "view.data[2]", from the structure on
	Offset int32  // in bytes, in the structure
	DType  DType  // of what it points to; InvalidDType: it is untyped
	Mode   Mode
}

// Pointers lists the pointers in a structure by their offsets.
func (s *Structure) Pointers() []Pointer {
	var list []Pointer
	for k := range s.Members {
		m := &s.Members[k]
		if m.Mode == 0 && m.Struct == nil {
			continue
		}
		for i := range max(1, m.Count) {
			path, offset := m.Name, m.Offset+i*m.Size()
			if m.Count > 0 {
				path = fmt.Sprintf("%s[%d]", m.Name, i)
			}
			if m.Mode != 0 {
				list = append(list, Pointer{path, offset, m.DType, m.Mode})
				continue
			}
			for _, inner := range m.Struct.Pointers() {
				inner.Path, inner.Offset = path+"."+inner.Path, inner.Offset+offset
				list = append(list, inner)
			}
		}
	}
	return list
}

// VectorStructure is the layout of a vector such as float3, or of a complex number; nil for numbers.
func VectorStructure(t DType) *Structure {
	n := t.Components()
	if !t.known() || n < 2 {
		return nil
	}
	s := &Structure{Name: t.String(), Size: int32(t.Size()), Align: int32(t.Align())}
	for k := range n {
		s.Members = append(s.Members, Member{Name: "xyzw"[k : k+1], Offset: int32(int64(k) * t.Component().Size()), DType: t.Component()})
	}
	return s
}

// String describes the structure: "Camera {eye, angle}".
func (s *Structure) String() string { return s.Name + " {" + strings.Join(s.names(), ", ") + "}" }

func (s *Structure) names() []string {
	names := make([]string, len(s.Members))
	for k := range s.Members {
		names[k] = s.Members[k].Name
	}
	return names
}

// Size is that of one element.
func (m *Member) Size() int32 {
	switch {
	case m.Mode != 0:
		return addressBytes
	case m.Struct != nil:
		return m.Struct.Size
	}
	return int32(m.DType.Size())
}

// MostNested is how deep structures may lie in structures.
const MostNested = 20

// hint shows how to write the structure.
func (s *Structure) hint() string {
	return fmt.Sprintf("write {struct: [%s]}", strings.Join(s.names(), ", "))
}
