// Probes for AAPCS64. They use no stack of their own.

//go:build linux

#include "textflag.h"

GLOBL ·recordAddress(SB), NOPTR|RODATA, $8
DATA ·recordAddress(SB)/8, $dagrun_probe_record(SB)
GLOBL ·codeAddress(SB), NOPTR|RODATA, $8
DATA ·codeAddress(SB)/8, $dagrun_probe_code(SB)
GLOBL ·addAddress(SB), NOPTR|RODATA, $8
DATA ·addAddress(SB)/8, $dagrun_probe_add(SB)

TEXT dagrun_probe_record(SB), NOSPLIT|NOFRAME, $0
	STP  (R0, R1), 0(R0)
	STP  (R2, R3), 16(R0)
	STP  (R4, R5), 32(R0)
	STP  (R6, R7), 48(R0)
	MOVD 0(RSP), R9
	MOVD R9, 64(R0)
	MOVD 8(RSP), R9
	MOVD R9, 72(R0)
	MOVD 16(RSP), R9
	MOVD R9, 80(R0)
	MOVD RSP, R9
	AND  $15, R9
	MOVD R9, 88(R0)
	MOVD $-1, R1
	MOVD R1, R2
	MOVD R1, R3
	MOVD R1, R4
	MOVD R1, R5
	MOVD R1, R6
	MOVD R1, R7
	MOVD R1, R8
	MOVD R1, R9
	MOVD R1, R10
	MOVD R1, R11
	MOVD R1, R12
	MOVD R1, R13
	MOVD R1, R14
	MOVD R1, R15
	MOVD R1, R16
	MOVD R1, R17
	MOVD R1, 0(RSP)
	MOVD R1, 16(RSP)
	MOVD ZR, R0
	RET

TEXT dagrun_probe_code(SB), NOSPLIT|NOFRAME, $0
	MOVWU R0, R0
	MOVD  $0x7700000000, R1
	ORR   R1, R0
	RET

TEXT dagrun_probe_add(SB), NOSPLIT|NOFRAME, $0
again:
	LDAXR (R0), R2
	ADD   R1, R2, R2
	STLXR R2, (R0), R3
	CBNZ  R3, again
	MOVD  ZR, R0
	RET
