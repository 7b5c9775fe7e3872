// Tests that the result codes have the numbers and names of the driver's header, and of the errors that callers branch on.

package host

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart"
)

func TestResultCodesAreTheDrivers(t *testing.T) {
	for name, c := range map[string]struct {
		code status
		want int // of cuda.h
		err  error
	}{
		"CUDA_ERROR_INVALID_VALUE":                  {invalidValue, 1, nil},
		"CUDA_ERROR_OUT_OF_MEMORY":                  {outOfMemory, 2, cudart.ErrOutOfMemory},
		"CUDA_ERROR_DEINITIALIZED":                  {deinitialized, 4, nil},
		"CUDA_ERROR_INVALID_DEVICE":                 {invalidDevice, 101, cudart.ErrNoDevice},
		"CUDA_ERROR_INVALID_IMAGE":                  {invalidImage, 200, nil},
		"CUDA_ERROR_INVALID_HANDLE":                 {invalidHandle, 400, nil},
		"CUDA_ERROR_ILLEGAL_STATE":                  {illegalState, 401, nil},
		"CUDA_ERROR_NOT_FOUND":                      {notFound, 500, nil},
		"CUDA_ERROR_NOT_READY":                      {notReady, 600, nil},
		"CUDA_ERROR_ILLEGAL_ADDRESS":                {illegalAddress, 700, cudart.ErrPoisoned},
		"CUDA_ERROR_LAUNCH_TIMEOUT":                 {launchTimeout, 702, cudart.ErrPoisoned},
		"CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED": {alreadyRegistered, 712, nil},
		"CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED":     {notRegistered, 713, nil},
		"CUDA_ERROR_MISALIGNED_ADDRESS":             {misalignedAddress, 716, cudart.ErrPoisoned},
		"CUDA_ERROR_LAUNCH_FAILED":                  {launchFailed, 719, cudart.ErrPoisoned},
		"CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE":   {cooperativeTooLarge, 720, nil},
		"CUDA_ERROR_NOT_SUPPORTED":                  {notSupported, 801, cudart.ErrUnsupported},
		"CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED":     {captureUnsupported, 900, nil},
		"CUDA_ERROR_STREAM_CAPTURE_INVALIDATED":     {captureInvalidated, 901, nil},
		"CUDA_ERROR_STREAM_CAPTURE_MERGE":           {captureMerge, 902, nil},
		"CUDA_ERROR_STREAM_CAPTURE_UNMATCHED":       {captureUnmatched, 903, nil},
		"CUDA_ERROR_STREAM_CAPTURE_UNJOINED":        {captureUnjoined, 904, nil},
		"CUDA_ERROR_STREAM_CAPTURE_ISOLATION":       {captureIsolation, 905, nil},
		"CUDA_ERROR_CAPTURED_EVENT":                 {capturedEvent, 907, nil},
		"CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE":      {graphExecUpdateError, 910, nil},
		"CUDA_ERROR_INVALID_CLUSTER_SIZE":           {invalidCluster, 912, nil},
		"CUDA_ERROR_UNKNOWN":                        {12345, 12345, nil},
	} {
		e := fail("cuCall", c.code, 3, "")
		require.Equal(t, name, e.Name)
		require.Equal(t, c.want, e.Code, name)
		require.Equal(t, c.err, e.Err, name)
		require.NotEmpty(t, e.Text, name)
		require.Equal(t, [3]int{3, -1, -1}, [3]int{int(e.Device), int(e.Node), e.Index}, name)
		require.Equal(t, e.Text+": 7 bytes", fail("cuCall", c.code, 3, "%d bytes", 7).Text, name)
	}
}
