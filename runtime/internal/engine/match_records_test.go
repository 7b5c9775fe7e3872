// A test of records of kernels whose symbols only compilers know.

package engine

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/dag"
)

func TestRecordsOfKernelsThatCompilersName(t *testing.T) {
	want := []expected{
		{node: 0, kind: cudart.KernelActivity, name: "filters::mean<8>", mapped: true},
		{node: 1, kind: cudart.KernelActivity, name: "twice", mapped: true},
		{node: 2, kind: cudart.KernelActivity, name: "filters::mean<8>", mapped: true},
	}
	name := func(node dag.NodeID) string { return fmt.Sprint("node ", node) }
	records := func(names ...string) (all []cudart.Activity) {
		for i, n := range names {
			all = append(all, cudart.Activity{Kind: cudart.KernelActivity, Name: n, Start: uint64(i), End: uint64(i)})
		}
		return all
	}
	require.NoError(t, matchRecords(want, records("_ZN7filters4meanILi8EEEv", "_Z5twicev", "_ZN7filters4meanILi8EEEv"), false, name))
	require.EqualError(t, matchRecords(want, records("_ZN7filters4meanILi8EEEv", "_Z5twicev", "_Z5twicev"), false, name),
		`record 2 (kind 1, "_Z5twicev", 0 bytes) does not belong to node "node 2"`)
}
