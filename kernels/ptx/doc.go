// Package ptx reads PTX, the assembly language that NVIDIA's driver compiles: PTX ISA 3.0 to 9.x, sm_50 to sm_120.
// It is made for two kinds of users: analyses, which ask what an instruction may touch (package access below this one),
// and interpreters, which run it. It knows the language, not the machine: it imports no device and runs nothing.
//
// # From text to tables
//
// [Parse] reads a whole module in one pass. Every name is resolved while it is read, so nothing behind the parser looks
// names up again:
//
//   - Registers are numbered per function, in the order in which they are first used. `%r<1000000>` of which three are used
//     costs three. [Function.Registers] tells each one's type and name.
//   - Variables of a module (parameters of kernels and functions, .shared, .local, .global and .const variables, the .param
//     cells of calls) share one table, [Module.Variables]; a [VariableID] is an index into it.
//   - Functions, declared or defined, share [Module.Functions]. A declaration and its definition are one [Function].
//   - Labels are numbered per function, [Function.Labels], and know the instruction they stand before.
//
// Blocks in braces are scopes for names only, as in PTX itself: the parser undoes them, and a function's body is one flat
// list of instructions.
//
// # Instructions
//
// The word that opens an instruction, such as `ld.global.nc.v2.f32`, is interned: each different word of a module is one
// [Form], which holds the [Opcode], the modifiers in order, the types, the state spaces and the vector width. A module of a
// million instructions has a few hundred forms, so whatever has to be decided about a word (can it be run, what does it
// touch) is decided once per form and kept in a table indexed by [Form.ID].
//
// What the opcode table does not know parses all the same, as [OpUnknown] or [ModOther]: PTX grows with every toolkit, and
// one new instruction in one kernel must not hide the others. An interpreter refuses such a form, and an analysis takes it
// for something that may touch everything.
//
// [Opcode.Roles] says what each operand is for: destination, source, address that is read, written, both or only named.
// Both uses share that table.
//
// An [Operand] is 24 bytes without pointers. Vectors `{a, b}`, pairs `d|p`, lists of a call `(a, b)` and texture addresses
// `[t, {x, y}]` have elements, which [Function.Elements] hands out. A call always has four operands: results, callee,
// arguments, prototype or targets; those which are not there have kind [None].
//
// # Places
//
// Instructions, variables, functions and labels know their line and column. `.loc` is kept as [Function.Locations], and an
// instruction knows which one was in force, so a report can name the line of the source ([Module.Source]). Debug sections
// are skipped.
//
// # Hostile input
//
// The parser ends within a second on any input: sources, nesting, registers, sizes and elements are limited, and an error
// says which limit was passed. It never panics; the fuzz test holds it to that.
package ptx
