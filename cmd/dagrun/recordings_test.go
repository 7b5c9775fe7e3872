// Tests of what commands have in common for recordings.

package main

import (
	"io"
	"testing"

	"github.com/stretchr/testify/require"
)

const seedRecording = "../../internal/recording/order/testdata/recordings/seed.rec"

// With --confined nothing but the recording is read to name places; internal/recording tests what is read otherwise.
func TestConfinedRecordings(t *testing.T) {
	for _, confined := range []bool{false, true} {
		a := newApp(nil, io.Discard, io.Discard)
		a.flags.confined = confined
		archive, err := a.openRecording(seedRecording)
		require.NoError(t, err)
		p, err := archive.Process(0)
		require.NoError(t, err)
		require.Equal(t, confined, p.Confined)
		require.NoError(t, archive.Close())
	}
}
