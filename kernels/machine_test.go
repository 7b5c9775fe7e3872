// A test of the library's machine code: its kernels take the parameters of the PTX.

package kernels_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/internal/ptx"
	"github.com/dagrun/dagrun/kernels/launch"
	"github.com/dagrun/dagrun/kernels/library"
)

func TestMachineCodeTakesTheParametersOfPTX(t *testing.T) {
	lib := library.Module()
	parsed, err := ptx.Parse(string(lib.Code))
	require.NoError(t, err)
	params := map[string]int{}
	for _, id := range parsed.Entries() {
		params[parsed.Functions[id].Name] = len(parsed.Functions[id].Params)
	}
	for _, waiting := range []bool{false, true} {
		machine, err := lib.Machine([2]int{9, 0}, waiting)
		require.NoError(t, err)
		assert.Equal(t, "sm_90", machine.Architecture)
		assert.Len(t, machine.Kernels, len(params))
		for _, k := range machine.Kernels {
			assert.Equal(t, map[string]int{k.Entry: params[k.Entry]}, launch.CubinParameters(k.Cubin), k.Entry)
			assert.True(t, k.Waits || !waiting, k.Entry)
		}
	}
	_, err = lib.Machine([2]int{5, 0}, false)
	require.EqualError(t, err, "there is no machine code for compute capability 5.0")
	some, err := library.Module("dagrun_noop", "no_such_kernel", "dagrun_noop").Machine([2]int{9, 0}, false)
	require.NoError(t, err)
	require.Len(t, some.Kernels, 1)
	require.False(t, some.Kernels[0].Waits, "an empty kernel waits only if it must")
}
