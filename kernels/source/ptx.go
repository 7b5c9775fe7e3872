// Entries of a user's PTX: their names, the sizes of their parameters, and the variables that they use.

package source

import (
	"fmt"
	"strings"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/internal/ptx"
	"github.com/dagrun/dagrun/internal/ptx/access"
)

// parsePTX lists entries in order. PTX does not tell whether a 64-bit parameter is a pointer, so the user must.
func parsePTX(text string) (entries []sourceKernel, globals []string, err error) {
	m, err := ptx.Parse(text)
	if err != nil {
		return nil, nil, err
	}
	entries, globals = entriesOf(m)
	return entries, globals, nil
}

// entriesOf lists the entries of a parsed module, with what their code shows.
func entriesOf(m *ptx.Module) (entries []sourceKernel, globals []string) {
	reports := access.AnalyseAll(m)
	for at, id := range m.Entries() {
		f, report := &m.Functions[id], reports[at]
		k := sourceKernel{name: f.Name, symbols: usesInPTX(m, report)}
		if len(report.FloatAtomics) > 0 {
			k.floatAtomics = report.FloatAtomics[0].String()
		}
		if len(report.References) > 0 {
			k.err = fmt.Errorf("reads the texture reference %s, which nothing can bind; pass a texture object", report.References[0])
		}
		for i, p := range f.Params {
			v := &m.Variables[p.Variable]
			param := dag.KernelParam{Size: int32(v.Size)}
			if !v.Array {
				param.DType = map[ptx.Type]dag.DType{ptx.F32: dag.F32, ptx.F64: dag.F64}[v.Type]
			}
			if use, ok := report.Field(i, 0); ok && v.Size == 8 {
				param.Code = codeUse(use)
			}
			k.params = append(k.params, param)
		}
		k.pointers = map[place]dag.CodeUse{}
		for _, field := range report.Fields {
			k.pointers[place{field.Param, field.Offset}] = codeUse(field.Use)
		}
		entries = append(entries, k)
	}
	return entries, access.WrittenGlobals(m, reports)
}

// codeUse translates the analysis of an argument into the types of dag.
func codeUse(use access.Use) dag.CodeUse {
	code := dag.CodeUse{Decided: use.Decided()}
	if use.Reads {
		code.Mode |= dag.Read
	}
	if use.Writes {
		code.Mode |= dag.Write
		code.Written = use.WrittenAt.String()
	}
	if f := &use.Fetch; f.Seen {
		code.Fetch = dag.Fetch{Seen: true, Surface: f.Surface, Dimensions: f.Dimensions, Floats: f.Floats, Integers: f.Integers,
			Coordinates: f.Coordinates, At: f.At.String()}
	}
	if use.Undecided {
		code.Why = fmt.Sprintf("%s (%s)", use.Why, use.UndecidedAt)
	}
	return code
}

// symbolsOfPTX lists the variables of PTX that launches share.
func symbolsOfPTX(m *ptx.Module) []dag.Symbol {
	var list []dag.Symbol
	for _, id := range m.Globals {
		if v := &m.Variables[id]; sharedVariable(v) {
			list = append(list, symbolOf(v))
		}
	}
	return list
}

// usesInPTX are the variables that an entry uses by what its code shows.
func usesInPTX(m *ptx.Module, report *access.Report) []dag.SymbolUse {
	var uses []dag.SymbolUse
	for _, s := range report.Symbols {
		v := &m.Variables[s.Variable]
		if !sharedVariable(v) || !s.Reads && !s.Writes && !s.Undecided {
			continue
		}
		use := dag.SymbolUse{Symbol: symbolOf(v), Evidence: dag.Proved}
		switch {
		case v.Space == ptx.Const, s.Reads && !s.Writes && !s.Undecided:
			use.Mode = dag.Read
		default:
			use.Mode = dag.ReadWrite
			if s.Undecided {
				use.Evidence = dag.Declared
			}
		}
		uses = append(uses, use)
	}
	return uses
}

// sharedVariable reports whether launches share a variable. Texts of printf are constants of the compiler's, and texture references are none.
func sharedVariable(v *ptx.Variable) bool {
	return v.Type != ptx.TexRef && (v.Space == ptx.Global || v.Space == ptx.Const) && !strings.HasPrefix(v.Name, "$str")
}

func symbolOf(v *ptx.Variable) dag.Symbol {
	return dag.Symbol{Name: v.Name, Bytes: v.Size, Constant: v.Space == ptx.Const, Initialised: len(v.Init) > 0 || len(v.Relocate) > 0}
}
