// The driver's structures and constants, as the 11.4 interface defines them.

package driver

import "github.com/dagrun/dagrun/cudart"

// kernelNodeParams is CUDA_KERNEL_NODE_PARAMS_v1. (v2, of 12.0, also has a CUkernel and a context, and needs other symbols.)
type kernelNodeParams struct {
	function uintptr
	grid     [3]uint32
	block    [3]uint32
	shared   uint32
	_        uint32
	params   uintptr
	extra    uintptr
}

// hostNodeParams is CUDA_HOST_NODE_PARAMS_v1.
type hostNodeParams struct{ function, user uintptr }

// memcpy3D is CUDA_MEMCPY3D_v2.
type memcpy3D struct {
	srcX, srcY, srcZ, srcLOD uint64
	srcType                  uint32
	_                        uint32
	srcHost                  cudart.Ptr
	srcDevice                cudart.Ptr
	srcArray, _              uintptr
	srcPitch, srcHeight      uint64
	dstX, dstY, dstZ, dstLOD uint64
	dstType                  uint32
	_                        uint32
	dstHost                  cudart.Ptr
	dstDevice                cudart.Ptr
	dstArray, _              uintptr
	dstPitch, dstHeight      uint64
	width, height, depth     uint64
}

// memsetNodeParams is CUDA_MEMSET_NODE_PARAMS_v1.
type memsetNodeParams struct {
	dst         cudart.Ptr
	pitch       uint64
	value       uint32
	elementSize uint32
	width       uint64 // in elements
	height      uint64
}

// kernelNodeAttribute is CUkernelNodeAttrValue, a union; a priority is its first int.
type kernelNodeAttribute struct {
	priority int32
	_        [60]byte
}

// conditionalNodeParams is CUgraphNodeParams with its conditional.
type conditionalNodeParams struct {
	kind    uint32
	_       [3]uint32
	handle  uint64
	loop    uint32 // CUgraphConditionalNodeType: 0 for a branch, 1 for a loop
	count   uint32 // of graphs
	graphs  uintptr
	context uintptr
	_       [26]uint64
}

const (
	streamNonBlocking     = 1
	streamLegacy          = 1 // CU_STREAM_LEGACY
	streamPerThread       = 2 // CU_STREAM_PER_THREAD
	eventDisableTiming    = 2
	eventRecordExternal   = 1
	memHostPortable       = 1
	captureThreadLocal    = 1
	captureRelaxed        = 2
	instantiatePriorities = 8
	attributeCooperative  = 2
	attributePriority     = 8
	memoryHost            = 1
	memoryDevice          = 2
	memoryUnified         = 4
	nodeConditional       = 13

	updateParametersChanged = 5 // of CUgraphExecUpdateResult
	updateNotSupported      = 6

	jitInfoLog       = 3
	jitInfoLogBytes  = 4
	jitErrorLog      = 5
	jitErrorLogBytes = 6

	functionMaxThreads    = 0
	functionSharedStatic  = 1
	functionLocal         = 3
	functionRegisters     = 4
	functionPTXVersion    = 5
	functionBinaryVersion = 6
	functionMaxDynamic    = 8
)

// Device attributes.
const (
	attrMaxThreadsPerBlock    = 1
	attrMaxBlockX             = 2
	attrMaxGridX              = 5
	attrSharedPerBlock        = 8
	attrClockRate             = 13
	attrTextureAlignment      = 14
	attrMultiprocessors       = 16
	attrMemoryClockRate       = 36
	attrMemoryBusWidth        = 37
	attrL2CacheSize           = 38
	attrThreadsPerSM          = 39
	attrAsyncEngines          = 40
	attrTexturePitchAlignment = 51
	attrCapabilityMajor       = 75
	attrCapabilityMinor       = 76
	attrSharedPerSM           = 81
	attrSharedOptIn           = 97
	attrBlocksPerSM           = 106
)

// Results that the code branches on.
const (
	codeInvalidValue        = 1
	codeOutOfMemory         = 2
	codeNoDevice            = 100
	codeInvalidImage        = 200
	codeNoBinary            = 209
	codeInvalidPTX          = 218
	codeUnsupportedPTX      = 222
	codeNotFound            = 500
	codeNotReady            = 600
	codeLaunchResources     = 701
	codePeerAlreadyEnabled  = 704
	codeHostAlreadyLocked   = 712
	codeNotSupported        = 801
	codeCaptureUnjoined     = 904
	codeGraphUpdateFailure  = 910
	codeStubLibrary         = 34
	codeSystemDriverMissing = 803
)

// sticky reports whether a result means that the context is lost: every later call on it fails until the process ends.
func sticky(code uint64) bool {
	switch code {
	case 46, // DEVICE_UNAVAILABLE
		214,      // ECC_UNCORRECTABLE
		220,      // NVLINK_UNCORRECTABLE
		700,      // ILLEGAL_ADDRESS
		702,      // LAUNCH_TIMEOUT
		709,      // CONTEXT_IS_DESTROYED
		710,      // ASSERT
		714, 715, // HARDWARE_STACK_ERROR, ILLEGAL_INSTRUCTION
		716, 717, // MISALIGNED_ADDRESS, INVALID_ADDRESS_SPACE
		718, 719: // INVALID_PC, LAUNCH_FAILED
		return true
	}
	return false
}
