// Package simt runs PTX kernels on the CPU, as a GPU would: warps of 32 lanes under masks, blocks with shared memory and
// barriers, device functions, atomics. It is how a user's kernel runs where there is no GPU.
//
// # How a kernel runs
//
// [Load] lays out a module's variables; [Program.Kernel] compiles one entry with the functions it calls, and refuses by name and
// line what it cannot run, so that nothing fails half way for that reason. Each instruction becomes one closure that works on
// all lanes of a warp at once: a register is an array of 32 values, a predicate a mask of 32 bits. Constants and special registers
// are such arrays too, so an operand is always just a number of an array.
//
// A warp is a list of groups: lanes that stand at the same place of the same call. The group with the lowest place runs first, so
// groups that took different branches meet again where the branches meet. A group that runs for long while others could run gives
// way to them, and so do blocks: a lane that spins on a lock, or a block that waits for another block, does not keep the one it
// waits for from running.
//
// # What is checked
//
// Every access must lie in the memory of an argument, of a variable, or of whatever else the launch says is the program's, and be
// aligned as a GPU demands. A violation ends the launch with a [Fault] that names the thread, the instruction and its source line.
// Barriers and warp-wide operations that some threads never reach end it too, instead of hanging.
package simt
