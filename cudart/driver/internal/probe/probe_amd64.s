// Probes for System V x86-64. They use no stack of their own.

//go:build linux

#include "textflag.h"

GLOBL ·recordAddress(SB), NOPTR|RODATA, $8
DATA ·recordAddress(SB)/8, $dagrun_probe_record(SB)
GLOBL ·codeAddress(SB), NOPTR|RODATA, $8
DATA ·codeAddress(SB)/8, $dagrun_probe_code(SB)
GLOBL ·addAddress(SB), NOPTR|RODATA, $8
DATA ·addAddress(SB)/8, $dagrun_probe_add(SB)

TEXT dagrun_probe_record(SB), NOSPLIT|NOFRAME, $0
	MOVQ DI, 0(DI)
	MOVQ SI, 8(DI)
	MOVQ DX, 16(DI)
	MOVQ CX, 24(DI)
	MOVQ R8, 32(DI)
	MOVQ R9, 40(DI)
	MOVQ 8(SP), AX
	MOVQ AX, 48(DI)
	MOVQ 16(SP), AX
	MOVQ AX, 56(DI)
	MOVQ 24(SP), AX
	MOVQ AX, 64(DI)
	MOVQ 32(SP), AX
	MOVQ AX, 72(DI)
	MOVQ 40(SP), AX
	MOVQ AX, 80(DI)
	LEAQ 8(SP), AX
	ANDQ $15, AX
	MOVQ AX, 88(DI)
	MOVQ $-1, DI
	MOVQ DI, SI
	MOVQ DI, DX
	MOVQ DI, CX
	MOVQ DI, R8
	MOVQ DI, R9
	MOVQ DI, R10
	MOVQ DI, R11
	MOVQ DI, 8(SP)
	MOVQ DI, 40(SP)
	XORL AX, AX
	RET

TEXT dagrun_probe_code(SB), NOSPLIT|NOFRAME, $0
	MOVL DI, AX
	MOVQ $0x7700000000, DX
	ORQ  DX, AX
	RET

TEXT dagrun_probe_add(SB), NOSPLIT|NOFRAME, $0
	LOCK
	XADDQ SI, (DI)
	XORL AX, AX
	RET
