// Names in compiled code: from the symbol of a kernel that is not extern "C" back to what its author wrote (Itanium C++ ABI).

package source

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	itanium "github.com/ianlancetaylor/demangle"
)

// mangledName is what a symbol says.
type mangledName struct {
	name   string   // "ns::scan"
	args   []string // of the template; nil: none
	params []string // types; nil where they could not be read
}

// full is the name with its template's arguments.
func (m *mangledName) full() string {
	if m.args == nil {
		return m.name
	}
	return m.name + "<" + strings.Join(m.args, ", ") + ">"
}

// signature is the name with its types: "ns::scan<4>(float*)".
func (m *mangledName) signature() string {
	if m.params == nil {
		return m.full()
	}
	return m.full() + "(" + strings.Join(m.params, ", ") + ")"
}

// demangle reads a symbol; ok is false where it is not a mangled name of a function or variable.
func demangle(symbol string) (m mangledName, ok bool) {
	if len(symbol) > longestSymbol {
		return m, false
	}
	tree, err := itanium.ToAST(symbol)
	if err != nil {
		return m, false
	}
	if clone, is := tree.(*itanium.Clone); is {
		tree = clone.Base
	}
	if typed, is := tree.(*itanium.Typed); is {
		tree = typed.Name
		if of, is := typed.Type.(*itanium.FunctionType); is {
			m.params = typeTexts(of.Args)
		}
	}
	if member, is := tree.(*itanium.MethodWithQualifiers); is {
		tree = member.Method
	}
	if template, is := tree.(*itanium.Template); is {
		tree, m.args = template.Name, typeTexts(template.Args)
	}
	switch tree.(type) {
	case *itanium.Name, *itanium.Qualified:
	default:
		return m, false
	}
	m.name = strings.TrimPrefix(internalNamespace.ReplaceAllString(typeText(tree), anonymous), anonymous)
	return m, true
}

const (
	longestSymbol   = 1 << 14 // a longer one is left as it is
	longestTypeText = 14      // as a power of two
	anonymous       = "(anonymous namespace)::"
)

// internalNamespace is what nvcc puts names into that only one file sees.
var internalNamespace = regexp.MustCompile(`\b_INTERNAL_\w+::`)

// typeText writes a type, or an argument of a template, as people do: "const float*", not "float const*".
func typeText(tree itanium.AST) string {
	switch t := tree.(type) {
	case *itanium.PointerType:
		return typeText(t.Base) + "*"
	case *itanium.ReferenceType:
		return typeText(t.Base) + "&"
	case *itanium.TypeWithQualifiers:
		base, qualifiers := typeText(t.Base), itanium.ASTToString(t.Qualifiers)
		if strings.HasSuffix(base, "*") {
			return base + " " + qualifiers
		}
		return qualifiers + " " + base
	case *itanium.TemplateParam:
		if t.Template != nil && t.Index < len(t.Template.Args) {
			return typeText(t.Template.Args[t.Index])
		}
	}
	return itanium.ASTToString(tree, itanium.MaxLength(longestTypeText))
}

// typeTexts writes each of several; a pack counts as what is in it.
func typeTexts(trees []itanium.AST) []string {
	texts := []string{}
	for _, tree := range trees {
		if expansion, is := tree.(*itanium.PackExpansion); is && expansion.Pack != nil {
			tree = expansion.Pack
		}
		if pack, is := tree.(*itanium.ArgumentPack); is {
			texts = append(texts, typeTexts(pack.Args)...)
			continue
		}
		texts = append(texts, typeText(tree))
	}
	return texts
}

// sameArgument compares arguments of templates as they are written: 16, 16u and 0x10 are the same.
func sameArgument(a, b string) bool {
	return normalArgument(a) == normalArgument(b)
}

func normalArgument(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if v, err := strconv.ParseInt(strings.TrimRight(s, "uUlL"), 0, 64); err == nil {
		return fmt.Sprint(v)
	}
	switch s {
	case "true":
		return "1"
	case "false":
		return "0"
	}
	return strings.ReplaceAll(canonical(s), " *", "*")
}

// variableName is a variable's name as C++ has it.
func variableName(symbol string) string {
	if d, ok := demangle(symbol); ok {
		return d.name
	}
	return symbol
}
