// Forms: the different words that instructions of a module start with, each parsed once.

package ptx

import "strings"

// Form is the first word of an instruction, such as ld.global.v4.f32, with its parts.
type Form struct {
	ID      int32 // Module.Forms
	Op      Opcode
	Text    string  // as written, without white space
	Mods    []Mod   // everything but types, spaces and the vector width, in order
	Types   []Type  // in order: for cvt that of the result, then that of the source
	Spaces  []Space // in order: for a copy that of the destination, then that of the source
	Vector  int     // 2, 4 or 8 for .v2, .v4 and .v8, else 1
	Known   bool    // the table knows the opcode and every modifier
	letters []Role
}

// Has reports whether the word has a modifier.
func (f *Form) Has(mod Mod) bool {
	for _, m := range f.Mods {
		if m == mod {
			return true
		}
	}
	return false
}

// First returns the first of a word's modifiers that is one of those given, or ModOther.
func (f *Form) First(mods ...Mod) Mod {
	for _, m := range f.Mods {
		for _, want := range mods {
			if m == want {
				return m
			}
		}
	}
	return ModOther
}

// Type returns the first type, or NoType.
func (f *Form) Type() Type {
	if len(f.Types) == 0 {
		return NoType
	}
	return f.Types[0]
}

// LastType returns the last type, or NoType.
func (f *Form) LastType() Type {
	if len(f.Types) == 0 {
		return NoType
	}
	return f.Types[len(f.Types)-1]
}

// Space returns the first state space, or Generic.
func (f *Form) Space() Space {
	if len(f.Spaces) == 0 {
		return Generic
	}
	return f.Spaces[0]
}

// hasText reports whether the word has a part, which may be one that the table of modifiers does not name.
func (f *Form) hasText(part string) bool {
	for rest := f.Text; ; {
		i := strings.IndexByte(rest, '.')
		if i < 0 {
			return false
		}
		rest = rest[i+1:]
		word := rest
		if j := strings.IndexByte(rest, '.'); j >= 0 {
			word = rest[:j]
		}
		if word == part || strings.HasPrefix(word, part+"::") {
			return true
		}
	}
}

func newForm(id int32, text string) *Form {
	f := &Form{ID: id, Text: text, Vector: 1}
	name, rest, more := strings.Cut(text, ".")
	f.Op = opcodesByName[name]
	f.Known = f.Op != OpUnknown
	for more {
		var word string
		word, rest, more = strings.Cut(rest, ".")
		if t, ok := typesByName[word]; ok {
			f.Types = append(f.Types, t)
			continue
		}
		if s, ok := spacesByName[word]; ok {
			f.Spaces = append(f.Spaces, s)
			continue
		}
		switch word {
		case "v2":
			f.Vector = 2
			continue
		case "v4":
			f.Vector = 4
			continue
		case "v8":
			f.Vector = 8
			continue
		}
		mod := modsByName[word]
		f.Mods = append(f.Mods, mod)
		if mod == ModOther && !quiet(word) {
			f.Known = false
		}
	}
	letters := f.roles()
	f.letters = make([]Role, len(letters))
	for i := range len(letters) {
		f.letters[i] = roleLetters[letters[i]]
	}
	return f
}

// quiet reports whether a modifier changes neither what an instruction computes nor what it accesses, as cache hints do.
func quiet(word string) bool {
	return strings.HasPrefix(word, "L1::") || strings.HasPrefix(word, "L2::") || word == "L1" || word == "L2"
}

// roles are an instruction form's letters: those of its opcode, but for words whose operands depend on modifiers.
func (f *Form) roles() string {
	switch f.Op {
	case OpCp:
		switch {
		case f.hasText("prefetch") && f.Has(ModTensor):
			return "m"
		case f.hasText("prefetch"):
			return "ns"
		case f.Has(ModCommitGroup), f.Has(ModWaitGroup), f.Has(ModWaitAll):
			return "s"
		case f.hasText("mbarrier") && !f.Has(ModBulk): // cp.async.mbarrier.arrive
			return "x"
		case f.Has(ModTensor) && len(f.Spaces) > 0 && (f.Spaces[0] == Shared || f.Spaces[0] == SharedCluster):
			return "wmx"
		case f.Has(ModTensor):
			return "mr"
		case f.hasText("reduce"):
			return "xrs"
		case f.Has(ModBulk) && len(f.Spaces) > 0 && f.Spaces[0] == Global:
			return "wrs"
		case f.Has(ModBulk):
			return "wrsx"
		}
	case OpMultimem:
		if f.Has(ModLdReduce) {
			return "dr"
		}
		if f.Has(ModSt) {
			return "ws"
		}
		if f.hasText("cp") {
			return "wrs"
		}
	case OpMbarrier:
		switch {
		case f.Has(ModInit), f.Has(ModInval), f.Has(ModExpectTx), f.Has(ModCompleteTx):
			return "xs"
		case f.Has(ModPendingCount):
			return "ds"
		}
		return "dxs" // arrive, arrive_drop, test_wait, try_wait; without a target the parser's operands start at the address
	case OpSt:
		if f.Has(ModAsync) {
			return "wsx"
		}
		if f.Has(ModBulk) {
			return "wss"
		}
	case OpRed:
		if f.Has(ModAsync) {
			return "xsx"
		}
	case OpWmma:
		switch {
		case f.Has(ModLoad):
			return "drs"
		case f.Has(ModStore):
			return "wss"
		}
	case OpTensormap:
		if f.hasText("cp_fenceproxy") {
			return "wrs"
		}
	case OpTcgen05:
		switch {
		case f.Has(ModLd):
			return "ds"
		case f.hasText("alloc"):
			return "ws"
		case f.Has(ModCommit):
			return "x"
		}
	case OpClusterlaunchcontrol:
		if f.hasText("query_cancel") {
			return "ds"
		}
	}
	return opcodes[f.Op].operands
}
