package order

import (
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// The recorder and the driver give these numbers.
func TestNumbersInCalls(t *testing.T) {
	header, err := os.ReadFile("../../../cudart/recorder/library/format.h")
	require.NoError(t, err)
	require.Contains(t, string(header), fmt.Sprintf("LAUNCH_PROGRAMMATIC = %d, LAUNCH_EVENT = %d }", flagProgrammatic, flagEvent))
	require.Contains(t, string(header), fmt.Sprintf("%d destroyed, %d primary reset, %d primary retained, %d primary released", contextDestroyed, contextReset, contextRetained, contextReleased))
	require.Contains(t, string(header), fmt.Sprintf("ALLOC_PINNED = %d, ALLOC_MANAGED = %d, ALLOC_ASYNC = %d, ALLOC_REGISTERED = %d, ALLOC_MAPPED = %d, ALLOC_ARRAY = %d, ALLOC_IMPORTED = %d }",
		allocPinned, allocManaged, allocAsync, allocRegistered, allocMapped, allocArray, allocImported))
	require.Equal(t, []int{1, 2, 3, 1}, []int{waitEqual, waitAnd, waitNor, writeUnfenced}, "CUstreamWaitValue_flags, CUstreamWriteValue_flags")
	// CUgraphNodeType
	require.Equal(t, []int{0, 1, 2, 3, 4, 5, 6, 7, 10, 11}, []int{nodeKernel, nodeCopy, nodeSet, nodeHost, nodeChild, nodeEmpty, nodeWait, nodeRecord, nodeAlloc, nodeFree})
}
