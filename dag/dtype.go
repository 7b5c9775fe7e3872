// Element types: their names and sizes.

package dag

import "strconv"

// DType is the type of a buffer's elements or of a scalar argument.
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
}

// String returns the name the pipeline file uses, such as "f32".
func (t DType) String() string {
	if int(t) >= len(dtypes) {
		return "DType(" + strconv.Itoa(int(t)) + ")"
	}
	return dtypes[t].name
}

// Size returns the bytes of one element, 0 for a type that does not exist.
func (t DType) Size() int64 {
	if int(t) >= len(dtypes) {
		return 0
	}
	return dtypes[t].size
}

// known reports whether buffers can have elements of the type.
func (t DType) known() bool { return t > InvalidDType && t <= Bool }

// Float reports whether the type is a floating-point one.
func (t DType) Float() bool { return t >= F16 && t <= F64 }

// Signed reports whether the type is a signed integer.
func (t DType) Signed() bool { return t >= I8 && t <= I64 }

// ParseDType returns the type of that name.
func ParseDType(name string) (DType, bool) {
	for t := F16; t <= Bool; t++ {
		if dtypes[t].name == name {
			return t, true
		}
	}
	return InvalidDType, false
}

// DTypes returns the names of all element types.
func DTypes() []string {
	var names []string
	for t := F16; t <= Bool; t++ {
		names = append(names, dtypes[t].name)
	}
	return names
}
