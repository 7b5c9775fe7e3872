// Package access finds out what a kernel can access: which of its arguments, and which of its module's variables, an entry of a PTX module may
// read or write, including all functions that it calls. It reads only the text and runs nothing.
//
// # How addresses are followed
//
// Every pointer starts somewhere: at 8 bytes of the entry's parameters (a [Field]), at a variable of the module, at a variable in local or
// shared memory, or at a function. These are the bases. The value of a register is described as a sum of bases plus a number: for each base
// the set of factors that it may have (0, 1, -1, or something else), and whether the sum may be a number alone. Moves, additions,
// subtractions, selections and conversions compute with these sums, so p + (q - p) is q. Other arithmetic makes the factors "something
// else". Registers are joined over all their definitions, cells of local memory and of call parameters are tracked by their offset, and
// functions are analysed again for each call, with their own locals. This is repeated until nothing changes.
//
// An access counts for each base that the address may have with factor 1: a mixed address counts for all its bases. A base with another
// factor becomes undecided. An address that may have no base (a number, a value loaded from global or shared memory, the result of an unknown
// function, a tensor map, a child launch) makes every argument and variable undecided.
//
// There is one assumption, the same as in C: a number added to an address does not lead from one object into another. A number that is
// loaded from memory is a number in this sense: x[i[k]] is an access to x. So are up to 16 bits of an address, with which kernels find out
// how the address is aligned.
//
// # Launches
//
// If a launch is known, single threads can be followed as long as nothing decides their way that is not known: [Escape] finds one that certainly
// leaves an argument, and [Covers] tells whether all of them together certainly write all of one.
//
// # What it does not tell
//
// "May read" does not mean that the kernel does read. It is certain that nothing else is written, but whether something is written may depend
// on data. Values are followed along all paths at once, so a result can name more than the kernel does, but never less.
package access
