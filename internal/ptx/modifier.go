// The modifiers of instructions: the dotted words that are neither types nor state spaces.

package ptx

// Mod is a modifier. ModOther stands for each one that this table does not know; Form.Text has its name.
type Mod uint16

// The modifiers, named as PTX names them.
const (
	ModOther Mod = iota
	ModLo
	ModHi
	ModWide
	ModSat
	ModCc
	ModCarry
	ModApprox
	ModFull
	ModFtz
	ModRn
	ModRz
	ModRm
	ModRp
	ModRna
	ModRni
	ModRzi
	ModRmi
	ModRpi
	ModRs
	ModRelu
	ModSatfinite
	ModNoftz
	ModOob
	ModGl
	ModNaN
	ModFractional
	ModRange
	ModEvictNormal
	ModEq
	ModNe
	ModLt
	ModLe
	ModGt
	ModGe
	ModLs
	ModHs
	ModEqu
	ModNeu
	ModLtu
	ModLeu
	ModGtu
	ModGeu
	ModNum
	ModNan
	ModAnd
	ModOr
	ModXor
	ModNot
	ModAdd
	ModInc
	ModDec
	ModMin
	ModMax
	ModExch
	ModCas
	ModPopc
	ModUni
	ModTo
	ModClamp
	ModWrap
	ModShiftamt
	ModMode
	ModF4e
	ModB4e
	ModRc8
	ModEcl
	ModEcr
	ModRc16
	ModL
	ModR
	ModUp
	ModDown
	ModBfly
	ModIdx
	ModXorsign
	ModAbs
	ModCa
	ModCg
	ModCs
	ModLu
	ModCv
	ModWb
	ModWt
	ModNc
	ModVolatile
	ModWeak
	ModRelaxed
	ModAcquire
	ModRelease
	ModAcqRel
	ModSc
	ModMmio
	ModSys
	ModGpu
	ModCta
	ModCluster
	ModSync
	ModAligned
	ModArrive
	ModRed
	ModWarp
	ModAll
	ModAny
	ModBallot
	ModAsync
	ModBulk
	ModTensor
	Mod1D
	Mod2D
	Mod3D
	ModA1D
	ModA2D
	ModCube
	ModAcube
	Mod2DMS
	ModA2DMS
	ModBase
	ModGrad
	ModTrap
	ModZero
	ModNear
	ModA
	ModRow
	ModCol
	ModM8n8
	ModM16n8
	ModM16n16
	ModM8n16
	ModX1
	ModX2
	ModX4
	ModX8
	ModX16
	ModX32
	ModX64
	ModX128
	ModTrans
	ModMma
	ModLoad
	ModStore
	ModSp
	ModSt
	ModLd
	ModM8n8k4
	ModM8n8k16
	ModM8n8k32
	ModM8n8k64
	ModM8n8k128
	ModM16n8k4
	ModM16n8k8
	ModM16n8k16
	ModM16n8k32
	ModM16n8k64
	ModM16n8k128
	ModM16n8k256
	ModM16n16k16
	ModM32n8k16
	ModM8n32k16
	ModM16n16k8
	ModInit
	ModInval
	ModExpectTx
	ModCompleteTx
	ModArriveDrop
	ModTestWait
	ModTryWait
	ModPendingCount
	ModNoComplete
	ModParity
	ModCommitGroup
	ModWaitGroup
	ModWaitAll
	ModCommit
	ModWait
	ModFence
	ModProxy
	ModAlias
	ModLaunchDependents
	ModTest
	ModFinite
	ModInfinite
	ModNumber
	ModNotanumber
	ModNormal
	ModSubnormal
	ModPack
	ModShr7
	ModShr15
	ModPo
	ModUnpack
	ModUnaligned
	ModLdReduce
	ModExclusive
	modCount
)

var modNames = [modCount]string{
	ModLo: "lo", ModHi: "hi", ModWide: "wide", ModSat: "sat", ModCc: "cc", ModCarry: "carry", ModApprox: "approx",
	ModFull: "full", ModFtz: "ftz", ModRn: "rn", ModRz: "rz", ModRm: "rm", ModRp: "rp", ModRna: "rna", ModRni: "rni",
	ModRzi: "rzi", ModRmi: "rmi", ModRpi: "rpi", ModRs: "rs", ModRelu: "relu", ModSatfinite: "satfinite",
	ModNoftz: "noftz", ModOob: "oob", ModGl: "gl", ModNaN: "NaN", ModFractional: "fractional", ModRange: "range",
	ModEvictNormal: "evict_normal", ModEq: "eq", ModNe: "ne", ModLt: "lt", ModLe: "le", ModGt: "gt", ModGe: "ge",
	ModLs: "ls", ModHs: "hs", ModEqu: "equ", ModNeu: "neu", ModLtu: "ltu", ModLeu: "leu", ModGtu: "gtu",
	ModGeu: "geu", ModNum: "num", ModNan: "nan", ModAnd: "and", ModOr: "or", ModXor: "xor", ModNot: "not",
	ModAdd: "add", ModInc: "inc", ModDec: "dec", ModMin: "min", ModMax: "max", ModExch: "exch", ModCas: "cas",
	ModPopc: "popc", ModUni: "uni", ModTo: "to", ModClamp: "clamp", ModWrap: "wrap", ModShiftamt: "shiftamt",
	ModMode: "mode", ModF4e: "f4e", ModB4e: "b4e", ModRc8: "rc8", ModEcl: "ecl", ModEcr: "ecr", ModRc16: "rc16",
	ModL: "l", ModR: "r", ModUp: "up", ModDown: "down", ModBfly: "bfly", ModIdx: "idx", ModXorsign: "xorsign",
	ModAbs: "abs", ModCa: "ca", ModCg: "cg", ModCs: "cs", ModLu: "lu", ModCv: "cv", ModWb: "wb", ModWt: "wt",
	ModNc: "nc", ModVolatile: "volatile", ModWeak: "weak", ModRelaxed: "relaxed", ModAcquire: "acquire",
	ModRelease: "release", ModAcqRel: "acq_rel", ModSc: "sc", ModMmio: "mmio", ModSys: "sys", ModGpu: "gpu",
	ModCta: "cta", ModCluster: "cluster", ModSync: "sync", ModAligned: "aligned", ModArrive: "arrive", ModRed: "red",
	ModWarp: "warp", ModAll: "all", ModAny: "any", ModBallot: "ballot", ModAsync: "async", ModBulk: "bulk",
	ModTensor: "tensor", Mod1D: "1d", Mod2D: "2d", Mod3D: "3d", ModA1D: "a1d", ModA2D: "a2d", ModCube: "cube",
	ModAcube: "acube", Mod2DMS: "2dms", ModA2DMS: "a2dms", ModBase: "base", ModGrad: "grad", ModTrap: "trap",
	ModZero: "zero", ModNear: "near", ModA: "a", ModRow: "row", ModCol: "col", ModM8n8: "m8n8", ModM16n8: "m16n8",
	ModM16n16: "m16n16", ModM8n16: "m8n16", ModX1: "x1", ModX2: "x2", ModX4: "x4", ModX8: "x8", ModX16: "x16",
	ModX32: "x32", ModX64: "x64", ModX128: "x128", ModTrans: "trans", ModMma: "mma", ModLoad: "load",
	ModStore: "store", ModSp: "sp", ModSt: "st", ModLd: "ld", ModM8n8k4: "m8n8k4", ModM8n8k16: "m8n8k16",
	ModM8n8k32: "m8n8k32", ModM8n8k64: "m8n8k64", ModM8n8k128: "m8n8k128", ModM16n8k4: "m16n8k4",
	ModM16n8k8: "m16n8k8", ModM16n8k16: "m16n8k16", ModM16n8k32: "m16n8k32", ModM16n8k64: "m16n8k64",
	ModM16n8k128: "m16n8k128", ModM16n8k256: "m16n8k256", ModM16n16k16: "m16n16k16", ModM32n8k16: "m32n8k16",
	ModM8n32k16: "m8n32k16", ModM16n16k8: "m16n16k8", ModInit: "init", ModInval: "inval", ModExpectTx: "expect_tx",
	ModCompleteTx: "complete_tx", ModArriveDrop: "arrive_drop", ModTestWait: "test_wait", ModTryWait: "try_wait",
	ModPendingCount: "pending_count", ModNoComplete: "noComplete", ModParity: "parity",
	ModCommitGroup: "commit_group", ModWaitGroup: "wait_group", ModWaitAll: "wait_all", ModCommit: "commit",
	ModWait: "wait", ModFence: "fence", ModProxy: "proxy", ModAlias: "alias",
	ModLaunchDependents: "launch_dependents", ModTest: "test", ModFinite: "finite", ModInfinite: "infinite",
	ModNumber: "number", ModNotanumber: "notanumber", ModNormal: "normal", ModSubnormal: "subnormal", ModPack: "pack", ModShr7: "shr7",
	ModShr15: "shr15", ModPo: "po",
	ModUnpack: "unpack", ModUnaligned: "unaligned", ModLdReduce: "ld_reduce", ModExclusive: "exclusive",
}

var modsByName = func() map[string]Mod {
	m := make(map[string]Mod, modCount)
	for mod, name := range modNames {
		if name != "" {
			m[name] = Mod(mod)
		}
	}
	return m
}()

// String is the modifier without its dot.
func (m Mod) String() string {
	if m == ModOther || m >= modCount {
		return "other"
	}
	return modNames[m]
}
