// Arguments that are structures: their bytes, and the buffers that their pointers lead to, from the members that a file gives.

package dag

import (
	"fmt"
	"slices"
)

// structure makes the argument of a parameter that is a structure, and those of its pointers.
func (r *resolution) structure(k int, v *structValue) {
	param := &r.params[k]
	var data string
	var pointers []pointed
	var err error
	switch {
	case param.Buffer:
		err = fmt.Errorf("must be a buffer, got a structure")
	case param.Struct != nil:
		data, pointers, err = param.Struct.pack(v)
	case param.Texture:
		err = fmt.Errorf("must be a texture, got a structure")
	case param.DType != InvalidDType:
		err = fmt.Errorf("must be a number (%s), got a structure", param.DType)
	default:
		data, err = packTyped(v, param.Size)
	}
	if err != nil {
		r.argProblem(k, "%v", err)
		return
	}
	r.args[k] = Arg{Struct: data}
	for _, p := range pointers {
		at := slices.IndexFunc(r.params, func(m KernelParam) bool { return m.Within == int32(k)+1 && m.Offset == p.offset })
		switch {
		case at < 0:
			r.problem(launchKernel, -1, fmt.Sprintf("the library describes the structure %s of %s without its pointers", r.paramName(k), r.what), "")
			return
		case p.memory.Null:
			r.null(at)
		default:
			r.declared[at] = p.memory.Mode
			r.buffer(at, p.memory)
		}
	}
}
