// Tests of finding the buses of a machine from the times of uploads that begin together.

package measure

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/planner/model"
)

// uploaded simulates uploads on a machine, with some noise.
func uploaded(t *testing.T, m *planner.Machine, bytes int64, random *rand.Rand) func(list []int32) (float64, error) {
	return func(list []int32) (float64, error) {
		b := dag.New("uploads")
		uploads(b, list, bytes/4)
		g, err := b.Graph()
		require.NoError(t, err)
		p, err := planner.New(t.Context(), g, planner.Options{Machine: m, Strategy: "list"})
		require.NoError(t, err)
		return p.Stats.MakespanUS * (1 + 0.05*random.Float64()), nil
	}
}

func TestBusesAreFoundFromTimes(t *testing.T) {
	const bytes = 256 << 20
	random := rand.New(rand.NewPCG(1, 2))
	for _, buses := range [][]model.Bus{
		nil,
		{{Name: "host[0,1]", Devices: []int32{0, 1}, Carries: model.CarriesHost, Rate: 55_000}},
		{{Name: "host[0,2]", Devices: []int32{0, 2}, Carries: model.CarriesHost, Rate: 70_000}, {Name: "host[1,3,5]", Devices: []int32{1, 3, 5}, Carries: model.CarriesHost, Rate: 55_000}},
	} {
		m := planner.H200()
		m.Buses = buses
		found, err := findBuses(6, bytes, uploaded(t, m, bytes, random))
		require.NoError(t, err)
		require.Len(t, found, len(buses))
		for k := range found {
			require.InEpsilon(t, buses[k].Rate, found[k].Rate, 0.1)
			found[k].Rate = buses[k].Rate
			require.Equal(t, buses[k], found[k])
		}
	}
	broken := errors.New("broken")
	_, err := findBuses(2, bytes, func([]int32) (float64, error) { return 0, broken })
	require.ErrorIs(t, err, broken)
}
