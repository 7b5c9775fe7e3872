// Runs the conformance suite, which the driver passes too, on the CPU device.

package host_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/cudart/conformance"
	"github.com/dagrun/dagrun/cudart/host"
)

func TestConformance(t *testing.T) {
	for _, o := range []host.Options{{}, {Devices: 2}, {Perturb: 1, Workers: 2}, {Perturb: 2, Workers: 4}} {
		t.Run(fmt.Sprintf("devices=%d,perturb=%d", o.Devices, o.Perturb), func(t *testing.T) {
			p, err := host.Open(o)
			require.NoError(t, err)
			conformance.Run(t, p)
			require.NoError(t, p.Close())
		})
	}
}

func TestConformancePrograms(t *testing.T) {
	conformance.Programs(t, func(t *rapid.T) (cudart.Platform, func()) {
		p, err := host.Open(host.Options{Perturb: rapid.Uint64().Draw(t, "perturb"), CheckOrder: rapid.Bool().Draw(t, "check order")})
		require.NoError(t, err)
		return p, func() { require.NoError(t, p.Close()) }
	})
}

func TestConformanceFault(t *testing.T) {
	p, err := host.Open(host.Options{})
	require.NoError(t, err)
	conformance.Fault(t, p)
}
