// Splits registers that a function uses for several things one after the other, so that an analysis that joins all definitions of a register
// does not mix unrelated values.

package ptx

import "slices"

// occurrence is one place where a register is used or defined.
type occurrence struct {
	instruction int32
	defines     bool
	index       *int32 // the operand's index, or nil for the guard
}

const maxSteps = 1 << 21 // limit of the blocks that are walked; further registers are not split

// Split returns a function in which every register is one web: definitions that reach a common use. Parameters and results in registers keep
// their numbers. The function itself is not changed; if there is nothing to split, it is returned.
func (f *Function) Split() *Function {
	definitions := make([]int32, len(f.Registers))
	f.occurrences(f.Code, f.elements, func(id RegisterID, o occurrence) {
		if o.defines {
			definitions[id]++
		}
	})
	for _, list := range [][]Parameter{f.Params, f.Results} {
		for _, p := range list {
			if p.Register != NoRegister {
				definitions[p.Register] = 0
			}
		}
	}
	if !slices.ContainsFunc(definitions, func(n int32) bool { return n > 1 }) {
		return f
	}
	s := *f
	s.Registers = slices.Clone(f.Registers)
	s.Code = slices.Clone(f.Code)
	s.elements = slices.Clone(f.elements)
	for i := range s.Code {
		s.Code[i].Operands = slices.Clone(s.Code[i].Operands)
	}
	places := map[RegisterID][]occurrence{}
	var order []RegisterID
	f.occurrences(s.Code, s.elements, func(id RegisterID, o occurrence) {
		if definitions[id] > 1 {
			if places[id] == nil {
				order = append(order, id)
			}
			places[id] = append(places[id], o)
		}
	})
	w := newWebs(f.Blocks(), len(f.Code))
	for _, id := range order {
		if w.steps > maxSteps {
			break
		}
		w.split(&s, id, places[id])
	}
	return &s
}

// occurrences visits each use and definition, in order. Within an instruction, uses come first. A definition after which
// the old value is still possible (under a guard, or of a part) also counts as a use.
func (f *Function) occurrences(code []Instruction, elements []Operand, do func(RegisterID, occurrence)) {
	for i := range code {
		in := &code[i]
		if in.Guard != NoRegister {
			do(in.Guard, occurrence{instruction: int32(i)})
		}
		roles := in.Roles()
		for pass := range 2 {
			for j := range in.Operands {
				target := j < len(roles) && roles[j] == Target || in.Form.Op == OpCall && j == 0
				vague := in.Form.Op == OpUnknown
				var visit func(o *Operand)
				visit = func(o *Operand) {
					switch o.Kind {
					case RegisterKind, Address:
						if o.Index < 0 {
							return
						}
						defines := (target || vague) && o.Kind == RegisterKind
						uses := !defines || vague || in.Guard != NoRegister || o.Part != Whole
						if pass == 0 && uses || pass == 1 && defines {
							do(RegisterID(o.Index), occurrence{int32(i), pass == 1, &o.Index})
						}
					case Vector, Pair, List, TextureAddress:
						for k := o.Index; k < o.Index+o.Extra; k++ {
							visit(&elements[k])
						}
					}
				}
				visit(&in.Operands[j])
			}
		}
	}
}

// webs unites the occurrences of one register after the other.
type webs struct {
	blocks  []Block
	of      []int32 // the block of an instruction
	last    []int32 // per block: the last definition of the register in it, or -1
	walked  []int32 // per block: an occurrence whose walk has passed through it, or -1
	touched []int32
	parent  []int32
	steps   int
}

func newWebs(blocks []Block, code int) *webs {
	w := &webs{blocks: blocks, of: make([]int32, code), last: make([]int32, len(blocks)), walked: make([]int32, len(blocks))}
	for b := range blocks {
		w.last[b], w.walked[b] = -1, -1
		for i := blocks[b].Start; i < blocks[b].End; i++ {
			w.of[i] = int32(b)
		}
	}
	return w
}

func (w *webs) root(i int32) int32 {
	for w.parent[i] != i {
		w.parent[i] = w.parent[w.parent[i]]
		i = w.parent[i]
	}
	return i
}

func (w *webs) unite(a, b int32) {
	if a, b = w.root(a), w.root(b); a < b {
		w.parent[b] = a
	} else {
		w.parent[a] = b
	}
}

// split gives each web of a register beyond the first a register of its own.
func (w *webs) split(f *Function, id RegisterID, places []occurrence) {
	w.parent = w.parent[:0]
	for i, o := range places {
		w.parent = append(w.parent, int32(i))
		if o.defines {
			w.last[w.of[o.instruction]] = int32(i)
			w.touched = append(w.touched, w.of[o.instruction])
		}
	}
	here := int32(-1) // the last definition above, in the same block
	for i, o := range places {
		if i == 0 || w.of[places[i-1].instruction] != w.of[o.instruction] {
			here = -1
		}
		switch {
		case o.defines:
			// A definition that is also a use belongs to the web of the old value.
			for j := i - 1; j >= 0 && places[j].instruction == o.instruction; j-- {
				if places[j].index == o.index {
					w.unite(int32(i), int32(j))
				}
			}
			here = int32(i)
		case here >= 0:
			w.unite(int32(i), here)
		default:
			w.walk(int32(i), w.of[o.instruction])
		}
	}
	names := map[int32]int32{w.root(0): int32(id)}
	for i, o := range places {
		root := w.root(int32(i))
		name, ok := names[root]
		if !ok {
			name = int32(len(f.Registers))
			names[root] = name
			f.Registers = append(f.Registers, f.Registers[id])
		}
		if o.index == nil {
			f.Code[o.instruction].Guard = RegisterID(name)
		} else {
			*o.index = name
		}
	}
	for _, b := range w.touched {
		w.last[b], w.walked[b] = -1, -1
	}
	w.touched = w.touched[:0]
}

// walk goes back from a use at the start of a block to the definitions that reach it.
func (w *webs) walk(use, from int32) {
	if earlier := w.walked[from]; earlier >= 0 {
		w.unite(use, earlier)
		return
	}
	w.walked[from] = use
	w.touched = append(w.touched, from)
	work := []int32{from}
	for len(work) > 0 {
		b := work[len(work)-1]
		work = work[:len(work)-1]
		w.steps += 1 + len(w.blocks[b].Before)
		for _, before := range w.blocks[b].Before {
			if w.last[before] >= 0 {
				w.unite(use, w.last[before])
			} else if earlier := w.walked[before]; earlier >= 0 {
				w.unite(use, earlier)
			} else {
				w.walked[before] = use
				w.touched = append(w.touched, before)
				work = append(work, before)
			}
		}
	}
}
