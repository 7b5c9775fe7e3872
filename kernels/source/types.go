// Types of kernels' parameters: what C++ declares, in the words of dag.

package source

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/dagrun/dagrun/dag"
)

var cudaTypes = map[string]dag.DType{
	"float": dag.F32, "double": dag.F64, "bool": dag.Bool,
	"half": dag.F16, "__half": dag.F16, "f16": dag.F16, "__nv_bfloat16": dag.BF16, "nv_bfloat16": dag.BF16, "bf16": dag.BF16,
	"char": dag.I8, "signed char": dag.I8, "int8_t": dag.I8, "unsigned char": dag.U8, "uint8_t": dag.U8, "uchar": dag.U8,
	"short": dag.I16, "int16_t": dag.I16, "unsigned short": dag.U16, "uint16_t": dag.U16, "ushort": dag.U16,
	"int": dag.I32, "int32_t": dag.I32, "unsigned int": dag.U32, "uint32_t": dag.U32, "uint": dag.U32,
	"long": dag.I64, "long long": dag.I64, "int64_t": dag.I64, "ptrdiff_t": dag.I64, "ssize_t": dag.I64, "intptr_t": dag.I64,
	"clock_t": dag.I64, "time_t": dag.I64,
	"unsigned long": dag.U64, "unsigned long long": dag.U64, "uint64_t": dag.U64, "size_t": dag.U64, "uintptr_t": dag.U64, "ulong": dag.U64,
	"void":      dag.InvalidDType,
	"cuComplex": dag.C64, "cuFloatComplex": dag.C64, "cuDoubleComplex": dag.C128,
	"cufftComplex": dag.C64, "cufftDoubleComplex": dag.C128, "cufftReal": dag.F32, "cufftDoubleReal": dag.F64,
	"complex < float >": dag.C64, "complex < double >": dag.C128, // of std and cuda::std
	"thrust :: complex < float >": dag.C64, "thrust :: complex < double >": dag.C128,
	"half2": dag.Vector(dag.F16, 2), "__half2": dag.Vector(dag.F16, 2), "__nv_bfloat162": dag.Vector(dag.BF16, 2), "nv_bfloat162": dag.Vector(dag.BF16, 2),
}

func init() {
	for name, t := range map[string]dag.DType{"char": dag.I8, "uchar": dag.U8, "short": dag.I16, "ushort": dag.U16, "int": dag.I32,
		"uint": dag.U32, "long": dag.I64, "ulong": dag.U64, "longlong": dag.I64, "ulonglong": dag.U64, "float": dag.F32, "double": dag.F64} {
		cudaTypes[name+"1"] = t
		for n := 2; n <= 4; n++ {
			cudaTypes[name+strconv.Itoa(n)] = dag.Vector(t, n)
		}
	}
}

// qualifiers say nothing about which type it is.
var qualifiers = []string{"volatile", "__restrict__", "restrict", "__restrict", "register", "__grid_constant__", "typename"}

// parameter is a parameter of a kernel, taken apart.
type parameter struct {
	name      string
	words     []token // the type without const, pointers and qualifiers
	stars     int
	constant  bool // what the first pointer points to is const
	structure bool
	problem   string
}

// takeApart reads a parameter such as "const float *__restrict__ x". The type is through aliases, such as typedefs.
func takeApart(d []token, aliases map[string][]token) parameter {
	var p parameter
	for i := 0; i < len(d) && p.problem == ""; i++ {
		switch t := d[i].text; {
		case t == "=":
			i = len(d)
		case t == "const":
			p.constant = p.constant || p.stars == 0
		case slices.Contains(qualifiers, t):
		case t == "*":
			p.stars++
		case t == "[":
			p.stars++
			for i < len(d) && d[i].text != "]" {
				i++
			}
			if i+1 < len(d) && d[i+1].text == "[" { // a pointer to arrays
				i = len(d)
			}
		case t == "&":
			p.problem = "is a reference, which a kernel cannot take"
		case t == "struct" || t == "class" || t == "union":
			p.structure = true
		case t == "enum":
			p.words = append(p.words, token{text: "int"})
			i++
		case t == "<":
			_, end := angled(d, i)
			if end < 0 {
				p.problem = fmt.Sprintf("%q cannot be understood", textOf(d))
				break
			}
			p.words = append(p.words, d[i:end+1]...)
			i = end
		case t == "(" && p.stars == 0 && i+2 < len(d) && d[i+1].text == "*": // a pointer to an array or a function
			p.stars++
			for i++; i < len(d) && d[i].text != ")"; i++ {
				if d[i].word() {
					p.name = d[i].text
				}
			}
			p.words = append(p.words, token{text: "["}) // of a type without a name
			i = len(d)
		case t == "(" || t == ")" || t == ">" || t == "." || t == ",":
			p.problem = fmt.Sprintf("%q cannot be understood", textOf(d))
		case p.stars > 0:
			p.name = t
		default:
			p.words = append(p.words, d[i])
		}
	}
	last := len(p.words) - 1
	if p.name == "" && last > 0 && p.words[last].word() && !completes(p.words[last].text) && p.words[last-1].text != "::" {
		p.name, p.words = p.words[last].text, p.words[:last]
	}
	p.resolve(aliases)
	return p
}

// resolve puts what an alias stands for in its place.
func (p *parameter) resolve(aliases map[string][]token) {
	for range 20 {
		if len(p.words) != 1 || isHandle(p.words, textureTypes) || isHandle(p.words, surfaceTypes) {
			return
		}
		means, ok := aliases[p.words[0].text]
		if !ok || len(means) == 1 && means[0].text == p.words[0].text {
			return
		}
		inner := takeApart(append(slices.Clone(means), token{text: "x"}), nil)
		if inner.problem != "" {
			return
		}
		if inner.stars > 0 { // const of a pointer type does not make what it points to const
			p.constant = inner.constant
		} else {
			p.constant = p.constant || inner.constant
		}
		p.words, p.stars, p.structure = inner.words, p.stars+inner.stars, p.structure || inner.structure
	}
}

// dtype finds a type by its words, in any order.
func (p *parameter) dtype() (dag.DType, bool) {
	var words []string
	for _, t := range p.words {
		words = append(words, t.text)
	}
	text := strings.Join(words, " ")
	for _, space := range []string{":: ", "cuda :: ", "std :: "} {
		text = strings.TrimPrefix(text, space)
	}
	t, ok := cudaTypes[canonical(text)]
	return t, ok && !p.structure
}

// pointsTo is what a pointer points to, which is untyped where dag does not have its type, and how it may be used.
func (p *parameter) pointsTo() (dag.DType, dag.Mode) {
	if p.stars > 1 {
		return dag.InvalidDType, dag.ReadWrite
	}
	dtype, known := p.dtype()
	if !known {
		dtype = dag.InvalidDType
	}
	if p.constant {
		return dtype, dag.Read
	}
	return dtype, dag.ReadWrite
}

// The types of handles.
var (
	textureTypes = []string{"cudaTextureObject_t", "CUtexObject"}
	surfaceTypes = []string{"cudaSurfaceObject_t", "CUsurfObject"}
)

func isHandle(words []token, types []string) bool {
	return len(words) > 0 && slices.Contains(types, words[len(words)-1].text)
}

// canonical normalises a C integer type: "long unsigned int" becomes "unsigned long".
func canonical(text string) string {
	var unsigned, signed bool
	longs, base := 0, ""
	for _, w := range strings.Fields(text) {
		switch w {
		case "unsigned":
			unsigned = true
		case "signed":
			signed = true
		case "long":
			longs++
		case "int":
			if base == "" {
				base = "int"
			}
		case "const", "volatile":
		default:
			if base != "" && base != "int" {
				return text
			}
			base = w
		}
	}
	switch {
	case longs > 0 && (base == "" || base == "int"):
		base = strings.TrimSpace(strings.Repeat("long ", min(longs, 2)))
	case base == "" && (unsigned || signed):
		base = "int"
	}
	if unsigned {
		return "unsigned " + base
	}
	if signed && base == "char" {
		return "signed char"
	}
	return base
}
