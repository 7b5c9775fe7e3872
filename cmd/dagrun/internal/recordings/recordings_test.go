// Tests of what commands have in common for recordings.

package recordings

import (
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cmd/dagrun/internal/cli"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/session"
	"github.com/dagrun/dagrun/internal/recording"
)

// With --confined nothing but the recording is read to name places; internal/recording tests what is read otherwise.
func TestConfinedRecordings(t *testing.T) {
	for _, confined := range []bool{false, true} {
		a := &Recordings{Session: &session.Session{Console: cli.New(nil, io.Discard, io.Discard)}}
		a.Flags.Confined = confined
		archive, err := a.OpenRecording("../../../../internal/recording/order/testdata/recordings/seed.rec")
		require.NoError(t, err)
		p, err := archive.Process(0)
		require.NoError(t, err)
		require.Equal(t, confined, p.Confined)
		require.NoError(t, archive.Close())
	}
}

func TestOnlyTheTimesThatAreKnown(t *testing.T) {
	calls := []recording.Call{
		{Begin: 1, End: 2, Time: 1000},
		{Begin: 3, End: 8, Time: 2000}, // waits while another thread calls
		{Begin: 4, End: 5, Time: 2500},
		{Begin: 6, End: 7, Time: 3000},
		{Begin: 9, End: 10, Time: 5000},
		{Begin: 11, End: 12, Time: 4500}, // its clock was read before that of the call that began before it
	}
	times := newCallTimes(&recording.Process{Calls: calls})
	require.Equal(t, 1.0, times.began(1))
	require.Equal(t, 2.5, times.waited(1), "until a call that began after its end, not one that began while it waited")
	require.Equal(t, 0.5, times.waited(2))
	require.Zero(t, times.waited(5), "nothing is known to come after it")
	require.Zero(t, times.waited(4), "what comes after it cannot have been before it")
}
