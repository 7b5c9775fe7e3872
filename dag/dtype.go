// Element types: numbers, complex numbers and short vectors of numbers; their names, sizes and parts.

package dag

import "strconv"

// DType is the type of a buffer's elements or of a scalar argument. The lower four bits say what the components are, the next two how many of
// them a vector has, less one.
type DType uint8

const (
	InvalidDType DType = iota
	F16
	BF16
	F32
	F64
	I8
	I16
	I32
	I64
	U8
	U16
	U32
	U64
	Bool
	C64  // complex: two F32
	C128 // complex: two F64
)

const (
	baseMask       = 15
	laneShift      = 4
	mostComponents = 4 // of a vector
)

var dtypes = [...]struct {
	name string
	size int64
}{
	InvalidDType: {"invalid", 0},
	F16:          {"f16", 2}, BF16: {"bf16", 2}, F32: {"f32", 4}, F64: {"f64", 8},
	I8: {"i8", 1}, I16: {"i16", 2}, I32: {"i32", 4}, I64: {"i64", 8},
	U8: {"u8", 1}, U16: {"u16", 2}, U32: {"u32", 4}, U64: {"u64", 8},
	Bool: {"bool", 1},
	C64:  {"c64", 8}, C128: {"c128", 16},
}

// Vector returns the type of CUDA's short vectors, such as f32x4 for float4: 2 to 4 numbers of type t, of which f16 and bf16 come in pairs
// only. It returns InvalidDType if there is no such type.
func Vector(t DType, components int) DType {
	v := t | DType(components-1)<<laneShift
	if t > U64 || components < 2 || components > mostComponents || !v.known() {
		return InvalidDType
	}
	return v
}

// String returns the name the pipeline file uses, such as "f32" or "f32x4".
func (t DType) String() string {
	switch {
	case t != InvalidDType && !t.known():
		return "DType(" + strconv.Itoa(int(t)) + ")"
	case t>>laneShift > 0:
		return dtypes[t&baseMask].name + "x" + strconv.Itoa(t.Components())
	}
	return dtypes[t].name
}

// Size returns the bytes of one element, 0 for a type that does not exist.
func (t DType) Size() int64 {
	if !t.known() {
		return 0
	}
	return dtypes[t&baseMask].size * int64(t>>laneShift+1)
}

// Align returns what the address of an element is a multiple of, as CUDA has it; 0 for a type that does not exist.
func (t DType) Align() int64 {
	if t.Components() == 3 {
		return t.Component().Size()
	}
	return min(t.Size(), 16)
}

// Components returns how many numbers an element consists of: 2 for a complex number, 2 to 4 for a vector, else 1.
func (t DType) Components() int {
	if t == C64 || t == C128 {
		return 2
	}
	return int(t>>laneShift) + 1
}

// Component returns the type of the numbers that an element consists of: the type itself where that is a number.
func (t DType) Component() DType {
	switch t {
	case C64:
		return F32
	case C128:
		return F64
	}
	return t & baseMask
}

// Complex reports whether the type is one of the complex ones.
func (t DType) Complex() bool { return t == C64 || t == C128 }

// isNumber reports whether the type is that of real numbers.
func (t DType) isNumber() bool { return t > InvalidDType && t <= Bool }

// known reports whether buffers can have elements of the type.
func (t DType) known() bool {
	base, components := t&baseMask, int(t>>laneShift)+1
	switch {
	case base == InvalidDType || components > mostComponents:
		return false
	case components == 1:
		return true
	case base == F16 || base == BF16:
		return components == 2
	}
	return base < Bool
}

// Float reports whether the type is that of floating-point numbers.
func (t DType) Float() bool { return t >= F16 && t <= F64 }

// Signed reports whether the type is that of signed integers.
func (t DType) Signed() bool { return t >= I8 && t <= I64 }

// sameComponents reports whether elements of both types are laid out as the same numbers, so that memory of one can be used as the other.
func sameComponents(a, b DType) bool { return a.Component() == b.Component() }

// ParseDType returns the type of that name.
func ParseDType(name string) (DType, bool) {
	if n := len(name) - 2; n > 0 && name[n] == 'x' && name[n+1] >= '2' && name[n+1] <= '4' {
		base, _ := ParseDType(name[:n])
		v := Vector(base, int(name[n+1]-'0'))
		return v, v != InvalidDType
	}
	for t := F16; t <= C128; t++ {
		if dtypes[t].name == name {
			return t, true
		}
	}
	return InvalidDType, false
}

// DTypes returns the names of all element types: numbers first, then complex numbers and vectors.
func DTypes() []string {
	var names []string
	for t := F16; t <= C128; t++ {
		names = append(names, dtypes[t].name)
	}
	for t := F16; t < Bool; t++ {
		for n := 2; n <= mostComponents; n++ {
			if v := Vector(t, n); v != InvalidDType {
				names = append(names, v.String())
			}
		}
	}
	return names
}
