// The driver's result codes that the CPU device returns, and errors made from them.

package host

import (
	"fmt"

	"github.com/dagrun/dagrun/cudart"
)

// status is a CUresult that the CPU device can return.
type status int

const (
	invalidValue         status = 1
	outOfMemory          status = 2
	deinitialized        status = 4
	invalidDevice        status = 101
	invalidHandle        status = 400
	invalidImage         status = 200
	illegalState         status = 401
	notFound             status = 500
	notReady             status = 600
	illegalAddress       status = 700
	alreadyRegistered    status = 712
	launchTimeout        status = 702
	notRegistered        status = 713
	misalignedAddress    status = 716
	launchFailed         status = 719
	notSupported         status = 801
	cooperativeTooLarge  status = 720
	captureUnsupported   status = 900
	captureInvalidated   status = 901
	captureMerge         status = 902
	captureUnmatched     status = 903
	captureUnjoined      status = 904
	captureIsolation     status = 905
	capturedEvent        status = 907
	graphExecUpdateError status = 910
	invalidCluster       status = 912
)

// describe returns the driver's name and description for a code.
func (s status) describe() (name, text string) {
	switch s {
	case invalidValue:
		return "CUDA_ERROR_INVALID_VALUE", "invalid argument"
	case outOfMemory:
		return "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"
	case deinitialized:
		return "CUDA_ERROR_DEINITIALIZED", "driver shutting down"
	case invalidDevice:
		return "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"
	case invalidHandle:
		return "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"
	case invalidImage:
		return "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"
	case misalignedAddress:
		return "CUDA_ERROR_MISALIGNED_ADDRESS", "misaligned address"
	case illegalState:
		return "CUDA_ERROR_ILLEGAL_STATE", "the operation cannot be performed in the present state"
	case notFound:
		return "CUDA_ERROR_NOT_FOUND", "named symbol not found"
	case notReady:
		return "CUDA_ERROR_NOT_READY", "device not ready"
	case illegalAddress:
		return "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"
	case alreadyRegistered:
		return "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED", "part or all of the requested memory range is already mapped"
	case notRegistered:
		return "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED", "pointer does not correspond to a registered memory region"
	case launchTimeout:
		return "CUDA_ERROR_LAUNCH_TIMEOUT", "the launch timed out and was terminated"
	case launchFailed:
		return "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"
	case notSupported:
		return "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"
	case cooperativeTooLarge:
		return "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE", "too many blocks in cooperative launch"
	case captureUnsupported:
		return "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", "operation not permitted when stream is capturing"
	case captureInvalidated:
		return "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED", "operation failed due to a previous error during capture"
	case captureMerge:
		return "CUDA_ERROR_STREAM_CAPTURE_MERGE", "operation would result in a merge of separate capture sequences"
	case captureUnmatched:
		return "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED", "capture was not ended in the same stream as it began"
	case captureUnjoined:
		return "CUDA_ERROR_STREAM_CAPTURE_UNJOINED", "capturing stream has unjoined work"
	case captureIsolation:
		return "CUDA_ERROR_STREAM_CAPTURE_ISOLATION", "dependency created on uncaptured work in another stream"
	case capturedEvent:
		return "CUDA_ERROR_CAPTURED_EVENT", "operation not permitted on an event last recorded in a capturing stream"
	case invalidCluster:
		return "CUDA_ERROR_INVALID_CLUSTER_SIZE", "invalid cluster size"
	case graphExecUpdateError:
		return "CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE", "the graph update was not performed because it included changes which violated constraints specific to instantiated graph update"
	}
	return "CUDA_ERROR_UNKNOWN", "unknown error"
}

// fail makes the error of a call. detail, where not empty, follows the driver's words.
func fail(call string, s status, device int32, detail string, args ...any) *cudart.Error {
	name, text := s.describe()
	if detail != "" {
		text += ": " + fmt.Sprintf(detail, args...)
	}
	e := &cudart.Error{Call: call, Name: name, Code: int(s), Text: text, Device: device, Node: -1, Index: -1}
	switch s {
	case outOfMemory:
		e.Err = cudart.ErrOutOfMemory
	case invalidDevice:
		e.Err = cudart.ErrNoDevice
	case illegalAddress, misalignedAddress, launchFailed, launchTimeout:
		e.Err = cudart.ErrPoisoned
	case notSupported:
		e.Err = cudart.ErrUnsupported
	}
	return e
}
