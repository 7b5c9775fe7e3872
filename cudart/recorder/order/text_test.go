// Tests of how a place is named.

package order

import (
	"testing"

	"github.com/dagrun/dagrun/internal/recording"
	"github.com/stretchr/testify/require"
)

func TestPlaceText(t *testing.T) {
	library := recording.Frame{File: "/usr/lib/torch/functional.py", Line: 9, Package: true}
	user := recording.Frame{File: "/home/me/seed.py", Line: 4}
	caller := recording.Frame{File: "/home/me/main.py", Line: 1}
	machine := recording.Frame{File: "/opt/app/bin/solve", Offset: 0x1234}
	require.Equal(t, "an unknown place", placeText(nil))
	require.Equal(t, "seed.py:4", placeText([]recording.Frame{library, user, caller}))
	require.Equal(t, "functional.py:9", placeText([]recording.Frame{library}))
	require.Equal(t, "solve+0x1234", placeText([]recording.Frame{machine, user}))
}
