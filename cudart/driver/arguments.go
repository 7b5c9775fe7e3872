// Arguments of kernels, as the driver takes them.

package driver

import (
	"encoding/binary"
	"unsafe"

	"github.com/dagrun/dagrun/cudart"
)

// packArgs lays arguments out as cuLaunchKernel expects them: an array of addresses, one per value. The values can be changed later.
func packArgs(memory *arena, args []cudart.Value) (params uintptr, values []uint64, err error) {
	words, err := memory.words(len(args) + argWords(args))
	if err != nil || words == nil {
		return 0, nil, err
	}
	values = words[len(args):]
	at := 0
	for i := range cudart.OwnValues(args) {
		words[i] = uint64(uintptr(unsafe.Pointer(&values[at])))
		at += wordsOf(&args[i])
	}
	setArgs(values, args)
	return uintptr(unsafe.Pointer(&words[0])), values, nil
}

func setArgs(values []uint64, args []cudart.Value) {
	at := 0
	for i := range args {
		v := &args[i]
		switch {
		case v.Within > 0:
			setMember(values, args, v)
		case v.Struct != nil:
			copy(unsafe.Slice((*byte)(unsafe.Pointer(&values[at])), len(v.Struct)), v.Struct)
		case v.Texture != nil:
			values[at] = v.Bits
		case v.Pointer:
			values[at] = uint64(v.Ptr) + uint64(v.Start)
		default:
			values[at] = v.Bits
		}
		at += wordsOf(v)
	}
}

// setMember writes an address into the structure that it is a member of.
func setMember(values []uint64, args []cudart.Value, v *cudart.Value) {
	at := uintptr(8*argWords(args[:v.Within-1])) + uintptr(v.Offset)
	address := v.Bits
	if v.Pointer {
		address = uint64(v.Ptr) + uint64(v.Start)
	}
	binary.NativeEndian.PutUint64(unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(&values[0]), at)), 8), address)
}

// wordsOf is how many words of eight bytes a value takes.
func wordsOf(v *cudart.Value) int {
	if v.Within > 0 {
		return 0
	}
	return max(1, (len(v.Struct)+7)/8)
}

func argWords(args []cudart.Value) int {
	n := 0
	for i := range args {
		n += wordsOf(&args[i])
	}
	return n
}
