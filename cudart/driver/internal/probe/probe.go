// C functions written in assembly, so that the tests of the walkers need no C compiler.

// Package probe has functions with the C calling convention that record how they were called.
package probe
