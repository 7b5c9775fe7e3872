// The result of an analysis, and its texts.

package access

import (
	"fmt"
	"strings"

	"github.com/dagrun/dagrun/internal/ptx"
)

// Place is a place in the PTX, and in the source if the module has line information.
type Place struct {
	ptx.Position
	File string // "" without line information
	Line int
}

// String returns the place in the source, or else in the PTX.
func (p Place) String() string {
	if p.File != "" {
		return fmt.Sprintf("%s:%d", strings.TrimPrefix(p.File, "./"), p.Line)
	}
	return fmt.Sprintf("PTX line %d", p.Position.Line)
}

// Use is what an entry may do with one argument or variable.
type Use struct {
	Reads, Writes bool
	Undecided     bool   // it may do more than the rest says
	Why           string // why it is undecided
	ReadAt        Place  // the first access of each kind, in the order of the analysis
	WrittenAt     Place
	UndecidedAt   Place
	Fetch         Fetch
}

// Fetch is how an entry reads through a parameter that is the handle of a texture or surface. The zero value is for other parameters.
type Fetch struct {
	Seen        bool
	Surface     bool
	Dimensions  int8 // 0: several, or layers
	Floats      bool // floats are read
	Integers    bool // integers are read
	Coordinates bool // by coordinates that are floats
	At          Place
}

// Decided reports whether the text shows everything that can happen.
func (u Use) Decided() bool { return !u.Undecided }

// String returns "read", "written", "read and written", "not used" or "undecided".
func (u Use) String() string {
	switch {
	case u.Undecided:
		return "undecided"
	case u.Reads && u.Writes:
		return "read and written"
	case u.Reads:
		return "read"
	case u.Writes:
		return "written"
	}
	return "not used"
}

// Field is a part of an entry's parameters that may hold a pointer: a whole parameter of 8 bytes, or 8 bytes of a struct.
// 64-bit integers are fields too, because PTX does not distinguish them from pointers.
type Field struct {
	Param  int   // which parameter
	Offset int64 // in bytes, within it
	Use
}

// Symbol is a .global or .const variable of the module.
type Symbol struct {
	Variable ptx.VariableID
	Use
}

// Report is what one entry may access.
type Report struct {
	Entry        ptx.FunctionID
	Fields       []Field  // by parameter and offset
	Symbols      []Symbol // in the order of the module
	Undecided    string   // why nothing is decided, or ""
	UndecidedAt  Place
	FloatAtomics []Place  // float additions and similar ones, whose results depend on the order of threads
	References   []string // texture, sampler and surface references that are used
}

// Field finds a field.
func (r *Report) Field(param int, offset int64) (Use, bool) {
	for _, f := range r.Fields {
		if f.Param == param && f.Offset == offset {
			return f.Use, true
		}
	}
	return Use{}, false
}

// Symbol finds a variable.
func (r *Report) Symbol(id ptx.VariableID) (Use, bool) {
	for _, s := range r.Symbols {
		if s.Variable == id {
			return s.Use, true
		}
	}
	return Use{}, false
}

// WrittenGlobals names the .global variables that some entry of these reports may write, in the order of the module, without the texts of
// printf.
func WrittenGlobals(m *ptx.Module, reports []*Report) []string {
	candidates := map[ptx.VariableID]bool{}
	for _, id := range m.Globals {
		if v := &m.Variables[id]; v.Space == ptx.Global && !strings.HasPrefix(v.Name, "$str") {
			candidates[id] = true
		}
	}
	written := map[ptx.VariableID]bool{}
	for _, r := range reports {
		for _, s := range r.Symbols {
			if candidates[s.Variable] && (s.Writes || s.Undecided) {
				written[s.Variable] = true
			}
		}
	}
	var names []string
	for _, id := range m.Globals {
		if written[id] {
			names = append(names, m.Variables[id].Name)
		}
	}
	return names
}
