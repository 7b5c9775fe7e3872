// The walker for System V x86-64: calls a table of C functions one after the other inside one call into C, stops at the first
// non-zero result. Runs on the thread's system stack; never touches Go memory that can move, never calls back into Go itself.

//go:build linux

#include "textflag.h"
#include "walk.h"

GLOBL ·walkAddress(SB), NOPTR|RODATA, $8
DATA ·walkAddress(SB)/8, $dagrun_walk(SB)

// Loads a row's arguments: six in registers, five on the stack, as the System V ABI wants them.
#define ARGUMENTS(row) \
	MOVQ 56(row), AX \
	MOVQ 64(row), DX \
	MOVQ AX, 0(SP)   \
	MOVQ DX, 8(SP)   \
	MOVQ 72(row), AX \
	MOVQ 80(row), DX \
	MOVQ AX, 16(SP)  \
	MOVQ DX, 24(SP)  \
	MOVQ 88(row), AX \
	MOVQ AX, 32(SP)  \
	MOVQ 8(row), DI  \
	MOVQ 16(row), SI \
	MOVQ 24(row), DX \
	MOVQ 32(row), CX \
	MOVQ 40(row), R8 \
	MOVQ 48(row), R9 \
	XORL AX, AX

// void dagrun_walk(walk *w), C calling convention.
// R12 the walk, BX the row, R13 the end, R14 the stop word's address. The frame of 96 bytes, the saved BP and the return
// address are 112 bytes, so that SP is aligned to 16 at every call.
TEXT dagrun_walk(SB), NOSPLIT, $96
	MOVQ BX, 40(SP)
	MOVQ R12, 48(SP)
	MOVQ R13, 56(SP)
	MOVQ R14, 64(SP)
	MOVQ R15, 72(SP)
	MOVQ DI, R12
	CMPQ WALK_START(R12), $0
	JEQ  body

	// A submitting thread: look for a new generation for a while, without returning to Go.
await:
	MOVQ WALK_START(R12), DX
	MOVQ WALK_PATIENCE(R12), CX
	MOVQ WALK_GENERATION(R12), SI
watch:
	MOVQ (DX), AX
	CMPQ AX, SI
	JNE  arrived
	PAUSE
	DECQ CX
	JNE  watch
	JMP  return
arrived:
	CMPQ AX, $-1
	JEQ  return
	MOVQ AX, WALK_GENERATION(R12)

body:
	MOVQ $0, WALK_FAILED(R12)
	MOVQ $0, WALK_CODE(R12)
	MOVQ $0, WALK_EPILOGUE_FAILED(R12)
	MOVQ $0, WALK_EPILOGUE_CODE(R12)
	MOVQ WALK_ROWS(R12), BX
	MOVQ WALK_END(R12), R13
	MOVQ WALK_STOP(R12), R14
next:
	CMPQ BX, R13
	JAE  epilogue
	CMPQ (R14), $0
	JNE  epilogue
	MOVQ (BX), R15
	// The driver's work between two rows pushes them out of the nearest cache: fetch the next but one, and what the
	// next one's arguments point to, while it runs. A row without arguments has 0 there, and a fetch of address 0 walks the
	// page table each time, since nothing is found: this row, which is there, is fetched instead.
	PREFETCHT0 (2*ROW_BYTES)(BX)
	PREFETCHT0 (2*ROW_BYTES+64)(BX)
	MOVQ (ROW_BYTES+ROW_PARAMS)(BX), AX
	TESTQ AX, AX
	CMOVQEQ BX, AX
	PREFETCHT0 (AX)
	CMPQ R15, $ROW_BUILTINS
	JB   builtin
	ARGUMENTS(BX)
	CALL R15
	TESTL AX, AX
	JNE  failed
advance:
	ADDQ $ROW_BYTES, BX
	JMP  next

failed:
	MOVL AX, AX
	MOVQ AX, WALK_CODE(R12)
	MOVQ BX, WALK_FAILED(R12)
	MOVQ $1, (R14)
	JMP  epilogue

builtin:
	CMPQ R15, $ROW_WAIT
	JEQ  wait
	CMPQ R15, $ROW_PUBLISH
	JEQ  publish
	CMPQ R15, $ROW_IGNORE
	JEQ  ignore
	JMP  advance // ROW_NOTHING

publish:
	MOVQ 8(BX), DX
	MOVQ WALK_GENERATION(R12), AX
	MOVQ AX, (DX) // a store releases on x86
	JMP  advance

ignore:
	MOVQ 16(BX), DI
	MOVQ 24(BX), SI
	MOVQ 32(BX), DX
	MOVQ 40(BX), CX
	XORL AX, AX
	MOVQ 8(BX), R15
	CALL R15
	JMP  advance

wait:
	MOVQ $SPINS, R15
spin:
	MOVQ 8(BX), DX
	MOVQ (DX), AX
	CMPQ AX, WALK_GENERATION(R12)
	JAE  advance
	CMPQ (R14), $0
	JNE  epilogue
	PAUSE
	DECQ R15
	JNE  spin
	MOVQ WALK_YIELD(R12), AX
	TESTQ AX, AX
	JEQ  wait
	CALL AX
	JMP  wait

	// BX stays where the rows stopped; an epilogue row runs if the row that it guards was passed.
epilogue:
	MOVQ WALK_EPILOGUE(R12), R13
finish:
	CMPQ R13, WALK_EPILOGUE_END(R12)
	JAE  done
	CMPQ BX, 88(R13)
	JBE  skip
	MOVQ (R13), R15
	CMPQ R15, $ROW_JOIN
	JEQ  join
	ARGUMENTS(R13)
	CALL R15
	TESTL AX, AX
	JEQ  skip
	CMPQ WALK_EPILOGUE_FAILED(R12), $0
	JNE  skip
	MOVL AX, AX
	MOVQ AX, WALK_EPILOGUE_CODE(R12)
	MOVQ R13, WALK_EPILOGUE_FAILED(R12)
skip:
	ADDQ $ROW_BYTES, R13
	JMP  finish

join:
	MOVQ $SPINS, R15
joining:
	MOVQ 8(R13), DX
	MOVQ (DX), AX
	CMPQ AX, WALK_GENERATION(R12)
	JAE  skip
	PAUSE
	DECQ R15
	JNE  joining
	MOVQ WALK_YIELD(R12), AX
	TESTQ AX, AX
	JEQ  join
	CALL AX
	JMP  join

done:
	CMPQ WALK_START(R12), $0
	JEQ  return
	MOVQ WALK_DONE(R12), DX
	MOVQ WALK_GENERATION(R12), AX
	MOVQ AX, (DX)
	JMP  await

return:
	MOVQ 40(SP), BX
	MOVQ 48(SP), R12
	MOVQ 56(SP), R13
	MOVQ 64(SP), R14
	MOVQ 72(SP), R15
	XORL AX, AX
	RET
