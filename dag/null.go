// Null pointers as arguments of kernels of modules, which know that there is no memory.

package dag

// null makes argument k a null pointer.
func (r *resolution) null(k int) {
	param := &r.params[k]
	switch {
	case r.spec.Module < 0 || r.spec.Map != nil:
		r.argProblem(k, "must not be null; only kernels of modules take null pointers")
	case param.Struct != nil || param.Texture || param.Code.Fetch.Seen || !param.Buffer && (param.DType != InvalidDType || param.Size != 8):
		r.argProblem(k, "is no pointer, so it cannot be null")
	default:
		r.args[k] = Arg{DType: U64, Within: param.Within, Offset: param.Offset}
	}
}
