// Arguments that are structures: their bytes, and the buffers that their pointers lead to, from the members that a file gives.

package dag

import "fmt"

// structure makes the argument of a parameter that is a structure, and returns what its pointers lead to.
func (r *resolution) structure(k int, v *StructureSpec) []pointed {
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
		return nil
	}
	r.args[k] = Arg{Struct: data}
	return pointers
}
