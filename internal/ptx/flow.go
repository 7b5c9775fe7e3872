// Control flow within a function: where instructions lead, and basic blocks.

package ptx

// Jumps returns the instructions that a branch may go to, besides the next one; len(Code) stands for the end.
func (f *Function) Jumps(in *Instruction) (to []int32) {
	if in.Form.Op != OpBra && in.Form.Op != OpBrx {
		return nil
	}
	for _, o := range in.Operands {
		if o.Kind != LabelKind {
			continue
		}
		l := &f.Labels[o.Index]
		if l.Targets == nil {
			to = append(to, l.At)
		}
		for _, t := range l.Targets {
			to = append(to, f.Labels[t].At)
		}
	}
	return to
}

// Ends reports whether control never continues with the next instruction.
func (in *Instruction) Ends() bool {
	switch in.Form.Op {
	case OpBra, OpBrx, OpRet, OpExit, OpTrap:
		return in.Guard == NoRegister
	}
	return false
}

// Reachable returns for each instruction whether control can get there from the start.
func (f *Function) Reachable() []bool {
	reached := make([]bool, len(f.Code))
	work := []int32{0}
	for len(work) > 0 {
		at := int(work[len(work)-1])
		work = work[:len(work)-1]
		for at < len(f.Code) && !reached[at] {
			reached[at] = true
			in := &f.Code[at]
			work = append(work, f.Jumps(in)...)
			if in.Ends() {
				break
			}
			at++
		}
	}
	return reached
}

// Block is a run of instructions that control enters only at its start and leaves only at its end.
type Block struct {
	Start, End int32   // Code[Start:End]
	Next       []int32 // the blocks that may follow, the one below first
	Before     []int32 // the blocks that this one may follow
}

// Blocks cuts a function into basic blocks, in the order of the text. The function starts at the first one.
func (f *Function) Blocks() []Block {
	n := len(f.Code)
	if n == 0 {
		return nil
	}
	leader := make([]bool, n+1)
	leader[0] = true
	for i := range f.Code {
		in := &f.Code[i]
		to := f.Jumps(in)
		for _, at := range to {
			leader[at] = true
		}
		if len(to) > 0 || in.Ends() {
			leader[i+1] = true
		}
	}
	var blocks []Block
	of := make([]int32, n)
	for i := range n {
		if leader[i] {
			blocks = append(blocks, Block{Start: int32(i)})
		}
		of[i] = int32(len(blocks)) - 1
		blocks[of[i]].End = int32(i) + 1
	}
	for b := range blocks {
		last := &f.Code[blocks[b].End-1]
		follow := func(at int32) {
			if int(at) < n {
				blocks[b].Next = append(blocks[b].Next, of[at])
				blocks[of[at]].Before = append(blocks[of[at]].Before, int32(b))
			}
		}
		if !last.Ends() {
			follow(blocks[b].End)
		}
		for _, at := range f.Jumps(last) {
			follow(at)
		}
	}
	return blocks
}
