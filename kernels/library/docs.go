// The table as documentation, for `dagrun kernels`.

package library

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dagrun/dagrun/dag"
)

// Doc describes one kernel of the library.
type Doc struct {
	Name     string
	Alias    string // another name, "" for none
	Text     string // one line
	Params   []ParamDoc
	Flops    string // how many operations a launch takes, as a formula over its arguments; "" for kernels that compute nothing
	Variants []Variant
}

// ParamDoc describes one parameter that the user gives an argument for.
type ParamDoc struct {
	Name   string
	Type   string // "i64", or a letter that each variant binds: T is the element type, S the type T is computed in, A the type of sums of T
	Mode   dag.Mode
	Buffer bool
	Extent string // of a buffer: the number of elements, as a formula over the other arguments
	Range  string // "1..512" of an integer, "" for any
	Tile   bool   // the buffer may be a tile
}

// Variant is the kernel for one choice of element types.
type Variant struct {
	Entry string
	Elems []dag.DType        // by argument, as [dag.Library] takes them: InvalidDType for a number
	Forms []dag.LaunchKernel // the kernel itself, and its forms for launches of some shapes and on tiles
}

// Docs describes all kernels, by family.
func Docs() []Doc {
	t := kernelTable()
	var docs []Doc
	for i := range t.rows {
		r := &t.rows[i]
		versions := t.byName[r.name]
		d := Doc{Name: r.name, Alias: r.alias, Text: r.doc, Flops: r.flops}
		for _, p := range versions[0].parameters {
			if p.scratch {
				continue
			}
			pd := ParamDoc{Name: p.name, Type: p.typeName, Mode: p.mode, Buffer: p.mode != 0}
			if p.extent != nil {
				pd.Extent = p.extent.text
			}
			if p.bounded {
				pd.Range = fmt.Sprintf("%d..", p.min)
				if p.max != 1<<63-1 {
					pd.Range += fmt.Sprint(p.max)
				}
			}
			pd.Tile = slices.ContainsFunc(r.matrices, func(m matrix) bool { return m.param == p.name })
			d.Params = append(d.Params, pd)
		}
		for _, k := range versions {
			v := Variant{Entry: k.entry}
			for _, f := range k.inAllForms() {
				v.Forms = append(v.Forms, f)
			}
			for _, p := range k.given {
				if p.Buffer {
					v.Elems = append(v.Elems, p.DType)
				} else {
					v.Elems = append(v.Elems, dag.InvalidDType)
				}
			}
			d.Variants = append(d.Variants, v)
		}
		docs = append(docs, d)
	}
	return docs
}

// String returns the parameter as the documentation shows it: "y inout T[n]".
func (p ParamDoc) String() string {
	if !p.Buffer {
		return strings.TrimSpace(p.Name + " " + p.Type + " " + p.Range)
	}
	return fmt.Sprintf("%s %s %s[%s]", p.Name, p.Mode, p.Type, p.Extent)
}

// Signature returns the kernel with its parameters on one line: "axpy(n i64, alpha S, x in T[n], y inout T[n])".
func (d Doc) Signature() string {
	var params []string
	for _, p := range d.Params {
		params = append(params, p.String())
	}
	return d.Name + "(" + strings.Join(params, ", ") + ")"
}

// Types lists the variants' element types: "f32 f64", or "a:i32 b:f32" if they differ by argument.
func (d Doc) Types() []string {
	var types []string
	for _, v := range d.Variants {
		var named []string
		distinct := map[dag.DType]bool{}
		letters := map[string]bool{}
		for i, p := range d.Params {
			if p.Buffer && (p.Type == "T" || p.Type == "X") && !letters[p.Type] {
				letters[p.Type] = true
				distinct[v.Elems[i]] = true
				named = append(named, p.Name+":"+v.Elems[i].String())
			}
		}
		switch {
		case len(named) == 0:
			continue
		case len(distinct) == 1 && len(letters) == 1:
			named = []string{v.Elems[slices.IndexFunc(d.Params, func(p ParamDoc) bool { return p.Buffer && p.Type == "T" })].String()}
		}
		types = append(types, strings.Join(named, " "))
	}
	return types
}
