// The functions' addresses. Their code is in probe_amd64.s and probe_arm64.s.

//go:build linux && (amd64 || arm64)

package probe

var recordAddress, codeAddress, addAddress uintptr

// Record is uint32 record(uint64 *dst, a1 .. a10): writes its eleven arguments to dst, then the stack pointer modulo 16 as it
// was at the call, spoils every register that a callee may, and returns 0.
func Record() uintptr { return recordAddress }

// Code is uint32 code(x): returns x, with the upper half of the result register set.
func Code() uintptr { return codeAddress }

// Add is uint32 add(uint64 *word, n): adds n to the word, atomically, and returns 0.
func Add() uintptr { return addAddress }
