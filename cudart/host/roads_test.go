// Tests of the times at which copies on simulated links and buses end. No clock is read: a long time is reserved ahead, so that now is past.

package host

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestCopiesWaitForTheirLinksAndBuses(t *testing.T) {
	l := &Links{HostToDevice: 1, DeviceToHost: 1, DeviceToDevice: 2, Rates: []float64{1, 4}}
	var r roads
	const bytes = 3600 * 1_000_000 // an hour at a rate of 1
	start := r.reserve(l, [2]int32{0, wayFromHost}, l.HostToDevice, []int32{0}, bytes)
	after := func(hours float64, end time.Time) {
		t.Helper()
		require.Equal(t, time.Duration(hours*float64(time.Hour)), end.Sub(start))
	}
	after(1, r.reserve(l, [2]int32{1, wayFromHost}, l.HostToDevice, []int32{0}, bytes))
	after(2, r.reserve(l, [2]int32{0, wayFromHost}, l.HostToDevice, []int32{0}, bytes))
	// The bus of rate 4 is busy for a quarter of an hour with each copy.
	r.links[[2]int32{2, wayToDevice}], r.buses[1] = start, start
	after(0.5, r.reserve(l, [2]int32{2, wayToDevice}, l.DeviceToDevice, []int32{1}, bytes))
	r.links[[2]int32{3, wayToDevice}] = start
	after(0.75, r.reserve(l, [2]int32{3, wayToDevice}, l.DeviceToDevice, []int32{1}, bytes))
	after(1, r.reserve(l, [2]int32{2, wayToDevice}, l.DeviceToDevice, nil, bytes))
}
