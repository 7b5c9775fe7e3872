// Arguments that are textures.

package dag

import "github.com/dagrun/dagrun/internal/words"

// texture makes the argument of a parameter that is a texture.
func (r *resolution) texture(k int, a *ArgumentSpec) {
	param := &r.params[k]
	wrong := func(hint, format string, args ...any) {
		r.argProblem(k, format, args...)
		r.problems[len(r.problems)-1].Hint = hint
	}
	switch {
	case param.Buffer:
		wrong("", "is a pointer, not a texture")
		return
	case param.Struct != nil:
		wrong(param.Struct.hint(), "must be a structure, got a texture")
		return
	case param.DType != InvalidDType:
		wrong("", "must be a number (%s), got a texture", param.DType)
		return
	case !param.Texture && param.Size != 8:
		wrong("", "has %s, but the handle of a texture has 8", words.Count(int64(param.Size), "byte", "bytes"))
		return
	}
	b := &r.pipeline.Buffers[a.Range.Buffer]
	t := a.Texture.shaped(b, a.Range)
	if problem, hint := t.problem(r.pipeline, a.Range); problem != "" {
		wrong(hint, "%s", problem)
		return
	}
	r.args[k] = Arg{IsBuffer: true, Mode: Read, DType: b.DType, Range: a.Range, Texture: &t}
	if problem := r.args[k].fetchProblem(param); problem != "" {
		wrong("", "%s", problem)
	}
}

// texturesUnwritten reports a buffer that a launch reads as a texture and writes through another argument: textures do not see what their own
// launch writes.
func (r *resolution) texturesUnwritten() {
	for k := range r.args {
		if r.args[k].Texture == nil {
			continue
		}
		for i := range r.args {
			if a := &r.args[i]; a.IsBuffer && a.Mode&Write != 0 && a.Range.Buffer >= 0 && a.Range.Overlaps(r.args[k].Range) {
				r.argProblem(k, "is a texture over %s, which the same launch writes as argument %s; a texture does not see what its own launch writes",
					r.pipeline.rangeText(r.args[k].Range), r.paramName(i))
				break
			}
		}
	}
}
