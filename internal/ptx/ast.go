// The parts of a parsed module: tables of plain values, which refer to each other by index.

package ptx

import (
	"fmt"
	"math"
)

// Numbers of things: indices into the module's or the function's tables.
type (
	VariableID int32 // Module.Variables
	FunctionID int32 // Module.Functions
	RegisterID int32 // Function.Registers
	LabelID    int32 // Function.Labels
)

// These values mean that there is none.
const (
	NoVariable VariableID = -1
	NoFunction FunctionID = -1
	NoRegister RegisterID = -1
)

// Position is a place in the text; both count from 1.
type Position struct{ Line, Column int32 }

// String returns line:column.
func (p Position) String() string { return fmt.Sprintf("%d:%d", p.Line, p.Column) }

// Module is one parsed source.
type Module struct {
	Major, Minor int      // .version
	Target       string   // the first name of .target, such as sm_80
	Options      []string // the further ones, such as debug
	AddressSize  int      // 32 or 64
	Variables    []Variable
	Globals      []VariableID // the variables declared outside functions, in order
	Functions    []Function
	Forms        []*Form // by Form.ID
	Pragmas      []string
	Files        map[int]string // .file
	names        map[string]symbol
}

// Function finds an entry or function by name.
func (m *Module) Function(name string) (FunctionID, bool) {
	s, ok := m.names[name]
	if !ok || s.kind != functionSymbol {
		return NoFunction, false
	}
	return FunctionID(s.id), true
}

// Variable finds a variable declared outside functions.
func (m *Module) Variable(name string) (VariableID, bool) {
	s, ok := m.names[name]
	if !ok || s.kind != variableSymbol {
		return NoVariable, false
	}
	return VariableID(s.id), true
}

// Entries lists the kernels that have a body, in the order of the text.
func (m *Module) Entries() []FunctionID {
	var ids []FunctionID
	for i := range m.Functions {
		if f := &m.Functions[i]; f.Entry && f.Defined {
			ids = append(ids, FunctionID(i))
		}
	}
	return ids
}

// Resolve follows an alias to the function that it stands for.
func (m *Module) Resolve(id FunctionID) FunctionID {
	for range len(m.Functions) {
		if id == NoFunction || m.Functions[id].Alias == NoFunction {
			return id
		}
		id = m.Functions[id].Alias
	}
	return id
}

// Source returns the place in the source that an instruction was compiled from, if the module has line information.
func (m *Module) Source(f *Function, in *Instruction) (file string, line, column int, ok bool) {
	if in.Location < 0 {
		return "", 0, 0, false
	}
	l := f.Locations[in.Location]
	return m.Files[int(l.File)], int(l.Line), int(l.Column), true
}

// Linkage is how a name is seen outside its module.
type Linkage uint8

// The kinds of linkage.
const (
	Internal Linkage = iota
	Visible
	Extern
	Weak
	Common
)

// Variable is anything with a name and bytes: a parameter, or memory of a module or function.
type Variable struct {
	Name     string
	Space    Space
	Type     Type
	Vector   uint8 // 1, 2 or 4
	Linkage  Linkage
	Managed  bool       // .attribute(.managed)
	Pointer  bool       // a parameter marked .ptr
	Points   Space      // what such a pointer points to, if the PTX says so
	Array    bool       // declared with brackets
	Open     bool       // declared with [] and no size: its size is given at the launch, or elsewhere
	Align    int        // in bytes, of a parameter's pointee where PointeeAlign says so
	Size     int64      // in bytes; 0 for an open array
	Pointee  int        // the alignment that .ptr .align promises, or 0
	Owner    FunctionID // NoFunction outside functions
	Position Position
	Init     []byte // the given bytes; the rest up to Size is 0
	Relocate []Relocation
}

// Relocation is a place in an initialiser that holds an address.
type Relocation struct {
	Offset   int64 // in Init
	Size     uint8 // bytes
	Variable VariableID
	Function FunctionID
	Addend   int64
	Generic  bool  // the generic address, not the one in the variable's own space
	Shift    uint8 // for mask(name): the first bit of the address that is stored here
}

// Location is one .loc directive.
type Location struct{ File, Line, Column int32 }

// Parameter is one parameter or result of a function: a variable in .param space, or a register.
type Parameter struct {
	Variable VariableID
	Register RegisterID
}

// Function is an entry (a kernel) or a function.
type Function struct {
	Name      string
	Entry     bool
	Defined   bool // has a body
	NoReturn  bool
	Linkage   Linkage
	Alias     FunctionID // the function that .alias names, or NoFunction
	Position  Position
	Begin     Position // of the first instruction or label of the body
	Params    []Parameter
	Results   []Parameter
	Limits    Limits
	Registers []Register
	Locals    []VariableID // .shared, .local, .param and other variables declared in the body
	Labels    []Label
	Code      []Instruction
	Locations []Location
	Pragmas   []string
	elements  []Operand
}

// Elements returns the parts of a vector, pair, list or texture address.
func (f *Function) Elements(o Operand) []Operand {
	switch o.Kind {
	case Vector, Pair, List, TextureAddress:
		return f.elements[o.Index : o.Index+o.Extra]
	}
	return nil
}

// Limits holds the directives about launches and registers; 0 if there is none.
type Limits struct {
	MaxThreads       [3]int32 // .maxntid
	RequiredThreads  [3]int32 // .reqntid
	MinBlocks        int32    // .minnctapersm
	MaxBlocks        int32    // .maxnctapersm
	MaxRegisters     int32    // .maxnreg
	RequiredCluster  [3]int32 // .reqnctapercluster
	MaxClusterRank   int32    // .maxclusterrank
	ExplicitCluster  bool     // .explicitcluster
	BlocksAreCluster bool     // .blocksareclusters
}

// Register is one register of a function that its code uses.
type Register struct {
	Name   string // without its number, if it belongs to a group
	Number int32  // in its group, or -1
	Type   Type
	Vector uint8
}

// String returns the register's name as in the text.
func (r Register) String() string {
	if r.Number < 0 {
		return r.Name
	}
	return fmt.Sprintf("%s%d", r.Name, r.Number)
}

// Label is a name in a body: of a place, of a list of branch or call targets, or of a prototype.
type Label struct {
	Name      string
	Position  Position
	At        int32        // the instruction that follows; len(Code) at the end
	Targets   []LabelID    // .branchtargets
	Callees   []FunctionID // .calltargets
	Prototype *Prototype   // .callprototype
}

// Prototype describes the parameters and results of an indirect call.
type Prototype struct {
	Params, Results []Variable // in .param or .reg space
	NoReturn        bool
}

// Instruction is one instruction.
type Instruction struct {
	Form     *Form
	Operands []Operand
	Guard    RegisterID // its predicate, or NoRegister
	Negated  bool       // executed if the guard is false
	Position Position
	Location int32 // Function.Locations, or -1
}

// Kind is the kind of an operand.
type Kind uint8

// The kinds of operands.
const (
	None           Kind = iota
	RegisterKind        // Index: RegisterID; Part: component or selector; Value: a number that is added, of r+4
	Integer             // Value
	Float32             // Value: bits
	Float64             // Value: bits; decimal floats are of this kind in instructions of every width
	Address             // [base + Value]; Index: RegisterID or -1; Extra: VariableID or -1
	VariableKind        // a variable's name, with Value added: its address, or in a list of a call the variable itself
	FunctionKind        // Index: FunctionID
	LabelKind           // Index: LabelID
	SpecialKind         // Index: Special; Part: component; Value: number of %envreg and %pm
	Discard             // _
	Vector              // {a, b}; elements
	Pair                // d|p; elements
	List                // (a, b) of a call; elements
	TextureAddress      // [t, {x, y}]; elements
)

// Part is a component of a vector register, or the bytes that a video instruction selects.
type Part uint8

// The parts.
const (
	Whole Part = iota
	X
	Y
	Z
	W
	Byte0
	Byte1
	Byte2
	Byte3
	Half0
	Half1
	OtherPart // a selector of several bytes, such as .b3210
)

// Operand is one operand, without pointers.
type Operand struct {
	Kind    Kind
	Part    Part
	Negated bool // !p of a predicate
	Scaled  bool // of an address written a[r]: the register counts elements, not bytes
	Index   int32
	Extra   int32
	Value   int64
}

// Register returns the register of an operand or of an address, or NoRegister.
func (o Operand) Register() RegisterID {
	if o.Kind == RegisterKind || o.Kind == Address {
		return RegisterID(o.Index)
	}
	return NoRegister
}

// Variable returns the variable that an operand names or that an address is based on, or NoVariable.
func (o Operand) Variable() VariableID {
	if o.Kind == VariableKind || o.Kind == Address {
		return VariableID(o.Extra)
	}
	return NoVariable
}

// Float returns the value of an immediate in an instruction on floats.
func (o Operand) Float() float64 {
	switch o.Kind {
	case Float32:
		return float64(math.Float32frombits(uint32(o.Value)))
	case Float64:
		return math.Float64frombits(uint64(o.Value))
	}
	return float64(o.Value)
}

// Roles says what the instruction does with each of its operands, in order. The slice is shared: do not write to it.
func (in *Instruction) Roles() []Role {
	roles := in.Form.letters
	switch in.Form.Op {
	case OpMbarrier, OpCall:
		// Forms without a target start at the address.
		if len(in.Operands) > 0 && len(roles) > 1 && roles[0] == Target && in.Operands[0].Kind == Address {
			roles = roles[1:]
		}
	}
	return roles[:min(len(roles), len(in.Operands))]
}

// Role is what the instruction does with operand i.
func (in *Instruction) Role(i int) Role {
	if roles := in.Roles(); i < len(roles) {
		return roles[i]
	}
	return Source
}

type symbolKind uint8

const (
	noSymbol symbolKind = iota
	variableSymbol
	functionSymbol
	registerSymbol // id: parser.declared
)

type symbol struct {
	kind symbolKind
	id   int32
}
