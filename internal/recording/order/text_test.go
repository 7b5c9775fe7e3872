// Tests of how a place is named.

package order

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/internal/recording"
)

func TestPlaceText(t *testing.T) {
	library := recording.Frame{File: "/usr/lib/torch/functional.py", Line: 9, Package: true, Python: true}
	user := recording.Frame{File: "/home/me/seed.py", Line: 4, Python: true}
	caller := recording.Frame{File: "/home/me/main.py", Line: 1, Python: true}
	machine := recording.Frame{File: "/opt/app/bin/solve", Offset: 0x1234}
	text := func(frames ...recording.Frame) string {
		return placeText(&recording.Process{Places: map[uint64][]recording.Frame{1: frames}}, 1)
	}
	require.Equal(t, "an unknown place", placeText(&recording.Process{}, 1))
	require.Equal(t, "seed.py:4", text(library, user, caller))
	require.Equal(t, "functional.py:9", text(library))
	require.Equal(t, "solve+0x1234", text(machine))
	require.Equal(t, "main.py:1", text(machine, caller), "a line says more than an address")
}
