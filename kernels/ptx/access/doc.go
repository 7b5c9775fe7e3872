// Package access finds out what a kernel can touch: which of its arguments, and which of its module's variables, an entry of
// a PTX module may read or write, with all the functions that it calls. It decides from the text alone and runs nothing.
//
// # How addresses are followed
//
// Every pointer starts somewhere: at a cell of 8 bytes of the entry's parameters (a [Field]), at a variable of the module, at
// a variable in local or shared memory, at a function. These are the bases. The value of a register is written as a sum of
// bases plus a number: for each base the set of factors that it may have (0, 1, -1, or something else), and whether the sum may
// be a number alone. Moves, additions, subtractions, selections and conversions compute with these sums, so p + (q - p) is q.
// Other arithmetic makes the factors "something else". Registers are joined over all their definitions, cells of local memory
// and of call parameters are tracked by their offset, and functions are analysed anew for each call, with their own locals.
// This is repeated until nothing changes.
//
// An access counts for each base that the address may have with factor 1: a mixed address carries all its bases. A base with
// another factor makes that base undecided. An address that may have none (a number, a value loaded from global or shared
// memory, the result of an unknown function, a tensor map, a child launch) makes every argument and variable undecided.
//
// One assumption is made, which is that of C: a number added to an address does not lead from one object into another.
// A number that is loaded from memory is a number in that sense: x[i[k]] is an access to x. So are at most 16 bits of an
// address, by which kernels find out how it is aligned.
//
// # Ranges
//
// [Ranges] goes further where a launch is known: it computes with intervals what registers hold over all threads, narrows them
// by the conditions that lead to an access, bounds the turns of loops that count, and so finds which bytes of an argument are
// touched at most. A range holds all that is touched and may hold more; where anything is not understood, there is none.
//
// # What it does not say
//
// "May read" does not mean that it does. That nothing else writes is a fact; that something is written may depend on data.
// Values flow over all paths at once, so a verdict can name more than the kernel does, and never less.
package access
