// Package simt runs PTX kernels on the CPU, as a GPU would: warps of 32 lanes under masks, blocks with shared memory and
// barriers, device functions, atomics. It is how a user's kernel runs where there is no GPU.
//
// # How a kernel runs
//
// [Load] lays out a module's variables. [Program.Kernel] compiles one entry with the functions it calls. It refuses instructions that it
// cannot run, by name and line, so that a launch never fails in the middle for that reason. Each instruction becomes one closure that works
// on all lanes of a warp at once: a register is an array of 32 values, a predicate is a mask of 32 bits. Constants and special registers are
// such arrays too, so an operand is always the index of an array.
//
// A warp is a list of groups. A group is the lanes that are at the same place of the same call. The group with the lowest place runs first,
// so groups that took different branches join again where the branches meet. A group that runs for long yields to the others, and so do
// blocks. So a lane that spins on a lock, or a block that waits for another block, does not prevent the other one from running.
//
// # What is checked
//
// Every access must lie in the memory of an argument, of a variable, or of anything else that the launch allows, and be aligned as on a GPU.
// A violation ends the launch with a [Fault] that names the thread, the instruction and its source line. If some threads never reach a
// barrier or a warp-wide operation, the launch also ends with a fault instead of hanging.
package simt
