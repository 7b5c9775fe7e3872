// The walker for AAPCS64: calls a table of C functions one after the other inside one call into C, stops at the first non-zero
// result. Runs on the thread's system stack; never touches Go memory that can move, never calls back into Go itself.

//go:build linux

#include "textflag.h"
#include "walk.h"

GLOBL ·walkAddress(SB), NOPTR|RODATA, $8
DATA ·walkAddress(SB)/8, $dagrun_walk(SB)

// Loads a row's arguments: eight in registers, three on the stack.
#define ARGUMENTS(row) \
	LDP  72(row), (R9, R10)  \
	MOVD 88(row), R11        \
	STP  (R9, R10), 0(RSP)   \
	MOVD R11, 16(RSP)        \
	LDP  8(row), (R0, R1)    \
	LDP  24(row), (R2, R3)   \
	LDP  40(row), (R4, R5)   \
	LDP  56(row), (R6, R7)

// void dagrun_walk(walk *w), C calling convention.
// R19 the walk, R20 the row, R21 the end, R22 the stop word's address, R23 the epilogue's row, R24 a spin count.
TEXT dagrun_walk(SB), NOSPLIT, $0
	SUB  $96, RSP
	STP  (R19, R20), 32(RSP)
	STP  (R21, R22), 48(RSP)
	STP  (R23, R24), 64(RSP)
	MOVD R0, R19
	MOVD WALK_START(R19), R1
	CBZ  R1, body

	// A submitting thread: look for a new generation for a while, without returning to Go.
await:
	MOVD WALK_START(R19), R1
	MOVD WALK_PATIENCE(R19), R2
	MOVD WALK_GENERATION(R19), R3
watch:
	LDAR (R1), R4
	CMP  R3, R4
	BNE  arrived
	YIELD
	SUB  $1, R2
	CBNZ R2, watch
	B    return
arrived:
	CMN  $1, R4
	BEQ  return
	MOVD R4, WALK_GENERATION(R19)

body:
	MOVD ZR, WALK_FAILED(R19)
	MOVD ZR, WALK_CODE(R19)
	MOVD ZR, WALK_EPILOGUE_FAILED(R19)
	MOVD ZR, WALK_EPILOGUE_CODE(R19)
	MOVD WALK_ROWS(R19), R20
	MOVD WALK_END(R19), R21
	MOVD WALK_STOP(R19), R22
next:
	CMP  R21, R20
	BHS  epilogue
	MOVD (R22), R9
	CBNZ R9, epilogue
	MOVD (R20), R12
	// The driver's work between two rows pushes them out of the nearest cache: fetch the next but one, and what the next one's
	// arguments point to, while it runs. A row without arguments has 0 there, and a fetch of address 0 walks the page table each
	// time, since nothing is found: this row, which is there, is fetched instead.
	ADD  $(2*ROW_BYTES), R20, R9
	PRFM (R9), PLDL1KEEP
	PRFM 64(R9), PLDL1KEEP
	MOVD (ROW_BYTES+ROW_PARAMS)(R20), R9
	CMP  $0, R9
	CSEL EQ, R20, R9, R9
	PRFM (R9), PLDL1KEEP
	CMP  $ROW_BUILTINS, R12
	BLO  builtin
	ARGUMENTS(R20)
	BL   (R12)
	CBNZW R0, failed
advance:
	ADD  $ROW_BYTES, R20
	B    next

failed:
	MOVWU R0, R0
	MOVD R0, WALK_CODE(R19)
	MOVD R20, WALK_FAILED(R19)
	MOVD $1, R9
	STLR R9, (R22)
	B    epilogue

builtin:
	CMP  $ROW_WAIT, R12
	BEQ  wait
	CMP  $ROW_PUBLISH, R12
	BEQ  publish
	CMP  $ROW_IGNORE, R12
	BEQ  ignore
	B    advance // ROW_NOTHING

publish:
	MOVD 8(R20), R1
	MOVD WALK_GENERATION(R19), R2
	STLR R2, (R1)
	B    advance

ignore:
	MOVD 8(R20), R12
	LDP  16(R20), (R0, R1)
	LDP  32(R20), (R2, R3)
	BL   (R12)
	B    advance

wait:
	MOVD $SPINS, R24
spin:
	MOVD 8(R20), R1
	LDAR (R1), R2
	MOVD WALK_GENERATION(R19), R3
	CMP  R3, R2
	BHS  advance
	MOVD (R22), R9
	CBNZ R9, epilogue
	YIELD
	SUB  $1, R24
	CBNZ R24, spin
	MOVD WALK_YIELD(R19), R12
	CBZ  R12, wait
	BL   (R12)
	B    wait

	// R20 stays where the rows stopped; an epilogue row runs if the row that it guards was passed.
epilogue:
	MOVD WALK_EPILOGUE(R19), R23
finish:
	MOVD WALK_EPILOGUE_END(R19), R9
	CMP  R9, R23
	BHS  done
	MOVD 88(R23), R9
	CMP  R9, R20
	BLS  skip
	MOVD (R23), R12
	CMP  $ROW_JOIN, R12
	BEQ  join
	ARGUMENTS(R23)
	BL   (R12)
	CBZW R0, skip
	MOVD WALK_EPILOGUE_FAILED(R19), R9
	CBNZ R9, skip
	MOVWU R0, R0
	MOVD R0, WALK_EPILOGUE_CODE(R19)
	MOVD R23, WALK_EPILOGUE_FAILED(R19)
skip:
	ADD  $ROW_BYTES, R23
	B    finish

join:
	MOVD $SPINS, R24
joining:
	MOVD 8(R23), R1
	LDAR (R1), R2
	MOVD WALK_GENERATION(R19), R3
	CMP  R3, R2
	BHS  skip
	YIELD
	SUB  $1, R24
	CBNZ R24, joining
	MOVD WALK_YIELD(R19), R12
	CBZ  R12, join
	BL   (R12)
	B    join

done:
	MOVD WALK_START(R19), R1
	CBZ  R1, return
	MOVD WALK_DONE(R19), R1
	MOVD WALK_GENERATION(R19), R2
	STLR R2, (R1)
	B    await

return:
	LDP  32(RSP), (R19, R20)
	LDP  48(RSP), (R21, R22)
	LDP  64(RSP), (R23, R24)
	ADD  $96, RSP
	MOVD ZR, R0
	RET
