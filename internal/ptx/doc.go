// Package ptx reads PTX, the assembly language that NVIDIA's driver compiles: PTX ISA 3.0 to 9.x, sm_50 to sm_120.
// It has two kinds of users: analyses, which ask what an instruction may access (package access below this one), and interpreters, which run
// it. It knows the language, not the machine: it imports no device and runs nothing.
//
// # From text to tables
//
// [Parse] reads a whole module in one pass. Every name is resolved while it is read, so users of the result never look up names:
//
//   - Registers are numbered per function, in the order of their first use. If three registers of `%r<1000000>` are used, only three are
//     stored. [Function.Registers] has the type and name of each.
//   - Variables of a module (parameters of kernels and functions, .shared, .local, .global and .const variables, the .param
//     cells of calls) share one table, [Module.Variables]; a [VariableID] is an index into it.
//   - Functions, declared or defined, share [Module.Functions]. A declaration and its definition are one [Function].
//   - Labels are numbered per function, [Function.Labels], and have the instruction that follows them.
//
// Blocks in braces are only scopes for names, as in PTX itself. The parser removes them, and a function's body is one flat
// list of instructions.
//
// # Instructions
//
// The first word of an instruction, such as `ld.global.nc.v2.f32`, is interned: each different word of a module is one [Form], which holds
// the [Opcode], the modifiers in order, the types, the state spaces and the vector width. A module of a million instructions has a few hundred
// forms, so everything that must be decided about a word (can it be run, what does it access) is decided once per form and kept in a table
// indexed by [Form.ID].
//
// Instructions that are not in the opcode table are parsed too, as [OpUnknown] or [ModOther], because PTX grows with every toolkit and one new
// instruction in one kernel must not make the others unreadable. An interpreter refuses such a form, and an analysis assumes that it may
// access everything.
//
// [Opcode.Roles] tells what each operand is: a destination, a source, or an address that is read, written, both or only named.
// Both uses share that table.
//
// An [Operand] is 24 bytes without pointers. Vectors `{a, b}`, pairs `d|p`, lists of a call `(a, b)` and texture addresses
// `[t, {x, y}]` have elements, which [Function.Elements] hands out. A call always has four operands: results, callee,
// arguments, prototype or targets; those that are missing have kind [None].
//
// # Places
//
// Instructions, variables, functions and labels have their line and column. `.loc` is kept as [Function.Locations], and an
// instruction refers to the one that applies to it, so a report can name the line of the source ([Module.Source]). Debug sections
// are skipped.
//
// # Hostile input
//
// The parser ends within a second on any input: sources, nesting, registers, sizes and elements are limited, and an error
// tells which limit was exceeded. It never panics; a fuzz test checks this.
package ptx
