// Which bytes of its arguments a kernel accesses in a known launch, if indices follow from threads, blocks, numbers and counting
// loops.

package access

import "github.com/dagrun/dagrun/kernels/ptx"

// Ranges computes the bytes that an entry accesses through each field. A range is known only if every access that the field
// may be part of was understood.
func Ranges(m *ptx.Module, entry ptx.FunctionID, launch Launch) []Extent {
	report := Analyse(m, entry)
	extents := make([]Extent, len(report.Fields))
	for i, f := range report.Fields {
		extents[i] = Extent{Param: f.Param, Offset: f.Offset}
	}
	e := newEvaluator(m, entry, launch, report)
	if report.Undecided != "" || e == nil {
		return extents
	}
	for i, f := range report.Fields {
		if f.Decided() {
			extents[i].Reads.Known, extents[i].Writes.Known = true, true
		}
	}
	for at := range e.f.Code {
		if !e.reached[at] {
			continue
		}
		in := &e.f.Code[at]
		for k, role := range in.Roles() {
			switch role {
			case ptx.Fetches, ptx.Stores, ptx.Refines, ptx.Follows:
				return forget(extents) // textures access more than their address shows
			case ptx.Reads, ptx.Writes, ptx.Updates:
				if !e.access(extents, int32(at), in, k, role) {
					return forget(extents)
				}
			}
		}
	}
	return extents
}

// access adds one access to the ranges. It returns false if it is not known which argument the access belongs to.
func (e *evaluator) access(extents []Extent, at int32, in *ptx.Instruction, k int, role ptx.Role) bool {
	form := in.Form
	switch form.Space() {
	case ptx.Shared, ptx.SharedCluster, ptx.Local, ptx.Param:
		if len(form.Spaces) < 2 {
			return true
		}
	}
	switch form.Op {
	case ptx.OpLd, ptx.OpLdu, ptx.OpSt, ptx.OpAtom, ptx.OpRed:
	default:
		return false // the size of copies is not in the type
	}
	o := in.Operands[k]
	if o.Variable() != ptx.NoVariable {
		return e.m.Variables[o.Variable()].Owner == ptx.NoFunction || e.m.Variables[o.Variable()].Space != ptx.Param
	}
	c := e.context(at)
	s := anything
	if r := o.Register(); r != ptx.NoRegister && !o.Scaled {
		s = c.register(r, at).plus(exactly(o.Value))
	}
	if c.dead {
		return true // no thread executes this
	}
	if s.base < 0 {
		return s.base == elsewhere
	}
	end, fits := sumOf(s.hi, int64(form.Type().Size()*form.Vector))
	x := &extents[s.base]
	place := e.place(in)
	widen := func(r *Range, where *Place) {
		switch {
		case !r.Known:
		case !s.ok || !fits:
			*r = Range{}
		case r.Lo == r.Hi:
			*r, *where = Range{true, s.lo, end}, place
		default:
			if end > r.Hi || s.lo < r.Lo {
				*where = place
			}
			r.Lo, r.Hi = min(r.Lo, s.lo), max(r.Hi, end)
		}
	}
	if role != ptx.Writes {
		widen(&x.Reads, &x.ReadAt)
	}
	if role != ptx.Reads {
		widen(&x.Writes, &x.WroteAt)
	}
	return true
}
