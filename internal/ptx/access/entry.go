// The analysis of one entry: goes over its functions in rounds until nothing changes.

package access

import "github.com/dagrun/dagrun/internal/ptx"

// Analyse finds out what an entry may touch.
func Analyse(m *ptx.Module, entry ptx.FunctionID) *Report {
	visits := maxVisits
	return analyseWithin(m, entry, &visits)
}

// AnalyseAll analyses all entries of a module, in the order of [ptx.Module.Entries]. They share a limit on the work.
func AnalyseAll(m *ptx.Module) []*Report { return analyseEach(m, maxVisits, 4*maxVisits) }

// analyseEach visits at most so much for one entry, and for all together.
func analyseEach(m *ptx.Module, one, visits int) []*Report {
	var reports []*Report
	for _, entry := range m.Entries() {
		share := min(visits, one)
		before := share
		reports = append(reports, analyseWithin(m, entry, &share))
		visits -= before - share
	}
	return reports
}

// analyseWithin takes what it does off visits.
func analyseWithin(m *ptx.Module, entry ptx.FunctionID, visits *int) *Report {
	a := &analysis{m: m, visits: visits, report: &Report{Entry: entry}, symbols: map[ptx.VariableID]int32{}, functions: map[ptx.FunctionID]int32{},
		split: map[ptx.FunctionID]*ptx.Function{}, cellSize: int64(m.AddressSize / 8)}
	f := &m.Functions[entry]
	for i, p := range f.Params {
		var bases []int32
		if p.Variable != ptx.NoVariable {
			for offset := int64(0); offset+a.cellSize <= m.Variables[p.Variable].Size && len(a.report.Fields) < maxTerms; offset += a.cellSize {
				bases = append(bases, a.newBase(fieldBase, int32(len(a.report.Fields))))
				a.report.Fields = append(a.report.Fields, Field{Param: i, Offset: offset})
			}
		}
		a.fields = append(a.fields, bases)
	}
	for _, id := range m.Globals {
		if v := &m.Variables[id]; v.Space == ptx.Global || v.Space == ptx.Const || v.Space == ptx.Tex {
			a.symbols[id] = a.newBase(symbolBase, int32(len(a.report.Symbols)))
			a.report.Symbols = append(a.report.Symbols, Symbol{Variable: id})
		}
	}
	root := a.newFrame(entry, nil)
	for i, p := range f.Params {
		if p.Variable != ptx.NoVariable {
			a.regions[a.region(root, p.Variable)].entry = i
		}
	}
	for a.changed = true; a.changed && *a.visits > 0; {
		a.changed = false
		a.round()
	}
	a.judging = true
	if *a.visits <= 0 {
		a.undecide(root, nil, "the kernel is too large to be analysed")
	}
	a.round()
	a.settle()
	return a.report
}

// round visits every instruction once.
func (a *analysis) round() {
	for i := 0; i < len(a.frames); i++ { // frames grow on the way
		fr := a.frames[i]
		if *a.visits <= 0 {
			a.undecide(fr, nil, "the kernel is too large to be analysed")
			return
		}
		for at := range fr.f.Code {
			if fr.reached[at] {
				*a.visits--
				a.visit(fr, at, &fr.f.Code[at])
			}
		}
	}
}

// visit applies one instruction to the values of its frame.
func (a *analysis) visit(fr *frame, at int, in *ptx.Instruction) {
	form := in.Form
	if form.Op == ptx.OpCall {
		a.call(fr, at, in)
		return
	}
	if form.Op == ptx.OpUnknown {
		a.undecide(fr, in, "instruction "+form.Text+" is not known")
	}
	switch form.Op.Class() {
	case ptx.Linear, ptx.Derived, ptx.Fresh:
		if form.Op != ptx.OpWmma && form.Op != ptx.OpCreatepolicy { // these two have forms that access memory
			if len(in.Operands) > 0 {
				a.set(fr, in.Operands[0], a.result(fr, in))
			}
			return
		}
	}
	a.memory(fr, at, in)
}
