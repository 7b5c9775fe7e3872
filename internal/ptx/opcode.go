// The opcode table: what each instruction does with its operands. The parser, the access analysis and the interpreter use it.

package ptx

// Opcode is the first word of an instruction.
type Opcode uint8

// Role is what an instruction does with one operand.
type Role uint8

// The roles.
const (
	Source  Role = iota // a value that is used
	Target              // a register that is written
	Reads               // an address that is read
	Writes              // an address that is written
	Updates             // an address that is read and written
	Names               // an address that is not accessed
	Fetches             // a texture or surface handle that is read through
	Stores              // a surface handle that is written through
	Refines             // a surface handle that is read and written through
	Follows             // a tensor map, whose own addresses are accessed
	Jumps               // a label
	Calls               // a function, with the lists before and after it
)

// Class is the kind of work an instruction does.
type Class uint8

// The classes. A Linear result points to what its sources point to. A Fresh result is a number and never an address.
const (
	Linear  Class = iota // move, add, subtract, multiply, select, convert, pack: addresses flow through
	Derived              // other arithmetic and logic: the result may hold an address in pieces
	Fresh                // comparisons, counts, special values: no address comes out
	Memory               // loads, stores and their kin
	Control              // branches, calls, ends
	Sync                 // barriers, fences and votes
)

// The opcodes. OpUnknown is every one that the table does not have.
const (
	OpUnknown Opcode = iota
	OpAbs
	OpActivemask
	OpAdd
	OpAddc
	OpAlloca
	OpAnd
	OpApplypriority
	OpAtom
	OpBar
	OpBarrier
	OpBfe
	OpBfi
	OpBfind
	OpBmsk
	OpBra
	OpBrev
	OpBrkpt
	OpBrx
	OpCall
	OpClusterlaunchcontrol
	OpClz
	OpCnot
	OpCopysign
	OpCos
	OpCp
	OpCreatepolicy
	OpCvt
	OpCvta
	OpDiscard
	OpDiv
	OpDp2a
	OpDp4a
	OpElect
	OpEx2
	OpExit
	OpFence
	OpFma
	OpFns
	OpGetctarank
	OpGriddepcontrol
	OpIsspacep
	OpIstypep
	OpLd
	OpLdmatrix
	OpLdu
	OpLg2
	OpLop3
	OpMad
	OpMad24
	OpMadc
	OpMapa
	OpMatch
	OpMax
	OpMbarrier
	OpMembar
	OpMin
	OpMma
	OpMov
	OpMovmatrix
	OpMul
	OpMul24
	OpMultimem
	OpNanosleep
	OpNeg
	OpNot
	OpOr
	OpPmevent
	OpPopc
	OpPrefetch
	OpPrefetchu
	OpPrmt
	OpRcp
	OpRed
	OpRedux
	OpRem
	OpRet
	OpRsqrt
	OpSad
	OpSelp
	OpSet
	OpSetmaxnreg
	OpSetp
	OpShf
	OpShfl
	OpShl
	OpShr
	OpSin
	OpSlct
	OpSqrt
	OpSt
	OpStackrestore
	OpStacksave
	OpStmatrix
	OpSub
	OpSubc
	OpSuld
	OpSuq
	OpSured
	OpSust
	OpSzext
	OpTanh
	OpTcgen05
	OpTensormap
	OpTestp
	OpTex
	OpTld4
	OpTrap
	OpTxq
	OpVideo // vadd, vsub2, vabsdiff4 and the other instructions on parts of words; Form.Text says which
	OpVote
	OpWgmma
	OpWmma
	OpXor
	opCount
)

// opcodeRow is what the table says of an opcode. The letters of operands: d target, s source, r w x n an address that is
// read, written, both or only named, t u v a handle that is fetched, stored or refined through, m a tensor map, j a label,
// c a call. Operands beyond the letters are sources.
type opcodeRow struct {
	name     string
	operands string
	class    Class
}

var opcodes = [opCount]opcodeRow{
	OpUnknown:              {"", "", Control},
	OpAbs:                  {"abs", "ds", Derived},
	OpActivemask:           {"activemask", "d", Fresh},
	OpAdd:                  {"add", "dss", Linear},
	OpAddc:                 {"addc", "dss", Derived},
	OpAlloca:               {"alloca", "dss", Memory},
	OpAnd:                  {"and", "dss", Derived},
	OpApplypriority:        {"applypriority", "ns", Memory},
	OpAtom:                 {"atom", "dxss", Memory},
	OpBar:                  {"bar", "sss", Sync},
	OpBarrier:              {"barrier", "sss", Sync},
	OpBfe:                  {"bfe", "dsss", Derived},
	OpBfi:                  {"bfi", "dssss", Derived},
	OpBfind:                {"bfind", "ds", Fresh},
	OpBmsk:                 {"bmsk", "dss", Fresh},
	OpBra:                  {"bra", "j", Control},
	OpBrev:                 {"brev", "ds", Derived},
	OpBrkpt:                {"brkpt", "", Control},
	OpBrx:                  {"brx", "sj", Control},
	OpCall:                 {"call", "cccc", Control},
	OpClusterlaunchcontrol: {"clusterlaunchcontrol", "wx", Memory},
	OpClz:                  {"clz", "ds", Fresh},
	OpCnot:                 {"cnot", "ds", Fresh},
	OpCopysign:             {"copysign", "dss", Derived},
	OpCos:                  {"cos", "ds", Derived},
	OpCp:                   {"cp", "wrs", Memory},
	OpCreatepolicy:         {"createpolicy", "dnss", Fresh},
	OpCvt:                  {"cvt", "dss", Linear},
	OpCvta:                 {"cvta", "ds", Linear},
	OpDiscard:              {"discard", "ws", Memory},
	OpDiv:                  {"div", "dss", Derived},
	OpDp2a:                 {"dp2a", "dsss", Derived},
	OpDp4a:                 {"dp4a", "dsss", Derived},
	OpElect:                {"elect", "ds", Fresh},
	OpEx2:                  {"ex2", "ds", Derived},
	OpExit:                 {"exit", "", Control},
	OpFence:                {"fence", "ns", Sync},
	OpFma:                  {"fma", "dsss", Derived},
	OpFns:                  {"fns", "dsss", Fresh},
	OpGetctarank:           {"getctarank", "ds", Fresh},
	OpGriddepcontrol:       {"griddepcontrol", "", Sync},
	OpIsspacep:             {"isspacep", "ds", Fresh},
	OpIstypep:              {"istypep", "ds", Fresh},
	OpLd:                   {"ld", "dr", Memory},
	OpLdmatrix:             {"ldmatrix", "dr", Memory},
	OpLdu:                  {"ldu", "dr", Memory},
	OpLg2:                  {"lg2", "ds", Derived},
	OpLop3:                 {"lop3", "dssss", Derived},
	OpMad:                  {"mad", "dsss", Linear},
	OpMad24:                {"mad24", "dsss", Derived},
	OpMadc:                 {"madc", "dsss", Derived},
	OpMapa:                 {"mapa", "dss", Linear},
	OpMatch:                {"match", "dss", Fresh},
	OpMax:                  {"max", "dss", Linear},
	OpMbarrier:             {"mbarrier", "", Sync},
	OpMembar:               {"membar", "", Sync},
	OpMin:                  {"min", "dss", Linear},
	OpMma:                  {"mma", "dsss", Derived},
	OpMov:                  {"mov", "ds", Linear},
	OpMovmatrix:            {"movmatrix", "ds", Derived},
	OpMul:                  {"mul", "dss", Linear},
	OpMul24:                {"mul24", "dss", Derived},
	OpMultimem:             {"multimem", "x", Memory},
	OpNanosleep:            {"nanosleep", "s", Sync},
	OpNeg:                  {"neg", "ds", Linear},
	OpNot:                  {"not", "ds", Derived},
	OpOr:                   {"or", "dss", Derived},
	OpPmevent:              {"pmevent", "s", Sync},
	OpPopc:                 {"popc", "ds", Fresh},
	OpPrefetch:             {"prefetch", "n", Memory},
	OpPrefetchu:            {"prefetchu", "n", Memory},
	OpPrmt:                 {"prmt", "dsss", Derived},
	OpRcp:                  {"rcp", "ds", Derived},
	OpRed:                  {"red", "xs", Memory},
	OpRedux:                {"redux", "dss", Derived},
	OpRem:                  {"rem", "dss", Derived},
	OpRet:                  {"ret", "", Control},
	OpRsqrt:                {"rsqrt", "ds", Derived},
	OpSad:                  {"sad", "dsss", Derived},
	OpSelp:                 {"selp", "dsss", Linear},
	OpSet:                  {"set", "dsss", Fresh},
	OpSetmaxnreg:           {"setmaxnreg", "s", Sync},
	OpSetp:                 {"setp", "dsss", Fresh},
	OpShf:                  {"shf", "dsss", Derived},
	OpShfl:                 {"shfl", "dssss", Linear},
	OpShl:                  {"shl", "dss", Linear},
	OpShr:                  {"shr", "dss", Derived},
	OpSin:                  {"sin", "ds", Derived},
	OpSlct:                 {"slct", "dsss", Linear},
	OpSqrt:                 {"sqrt", "ds", Derived},
	OpSt:                   {"st", "ws", Memory},
	OpStackrestore:         {"stackrestore", "s", Memory},
	OpStacksave:            {"stacksave", "d", Memory},
	OpStmatrix:             {"stmatrix", "ws", Memory},
	OpSub:                  {"sub", "dss", Linear},
	OpSubc:                 {"subc", "dss", Derived},
	OpSuld:                 {"suld", "dt", Memory},
	OpSuq:                  {"suq", "dn", Fresh},
	OpSured:                {"sured", "vs", Memory},
	OpSust:                 {"sust", "us", Memory},
	OpSzext:                {"szext", "dss", Derived},
	OpTanh:                 {"tanh", "ds", Derived},
	OpTcgen05:              {"tcgen05", "", Memory},
	OpTensormap:            {"tensormap", "xs", Memory},
	OpTestp:                {"testp", "ds", Fresh},
	OpTex:                  {"tex", "dts", Memory},
	OpTld4:                 {"tld4", "dts", Memory},
	OpTrap:                 {"trap", "", Control},
	OpTxq:                  {"txq", "dn", Fresh},
	OpVideo:                {"", "dsss", Derived},
	OpVote:                 {"vote", "dss", Fresh},
	OpWgmma:                {"wgmma", "", Memory},
	OpWmma:                 {"wmma", "dsss", Derived},
	OpXor:                  {"xor", "dss", Derived},
}

var opcodesByName = func() map[string]Opcode {
	m := make(map[string]Opcode, opCount)
	for op, row := range opcodes {
		if row.name != "" {
			m[row.name] = Opcode(op)
		}
	}
	for _, name := range []string{"vadd", "vsub", "vabsdiff", "vmin", "vmax", "vset"} {
		for _, width := range []string{"", "2", "4"} {
			m[name+width] = OpVideo
		}
	}
	for _, name := range []string{"vshl", "vshr", "vmad", "vavrg2", "vavrg4"} {
		m[name] = OpVideo
	}
	return m
}()

var roleLetters = [256]Role{
	'd': Target, 's': Source, 'r': Reads, 'w': Writes, 'x': Updates, 'n': Names, 't': Fetches, 'u': Stores, 'v': Refines,
	'm': Follows, 'j': Jumps, 'c': Calls,
}

// String is the opcode's name; of OpVideo the family's.
func (op Opcode) String() string {
	switch {
	case op == OpVideo:
		return "video"
	case op == OpUnknown || op >= opCount:
		return "unknown"
	}
	return opcodes[op].name
}

// Class is the kind of work that the opcode does.
func (op Opcode) Class() Class {
	if op >= opCount {
		return Control
	}
	return opcodes[op].class
}
