// C functions written in assembly, for tests of the walkers that need no C compiler. Never part of a program.

// Package probe has functions with the C calling convention that record how they were called.
package probe
