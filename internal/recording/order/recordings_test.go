// Recordings that were made on an H100 (tests/gpu/record), checked without one: programs with a fault that has cost people weeks, each also mended.

package order_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/internal/recording"
	"github.com/dagrun/dagrun/internal/recording/order"
)

func TestRecordingsOfAGPU(t *testing.T) {
	wrong := map[string][][2]string{ // the lines of the two accesses
		"seed":                {{"seed.py:3", "seed.py:5"}},
		"freed-recorded-racy": {{"freed-recorded.py:12", "freed-recorded.py:15"}},
		"freed-waited-racy":   {{"freed-waited.py:12", "freed-waited.py:15"}},
		"megatron-5788-racy":  {{"megatron-5788.py:22", "megatron-5788.py:25"}},
		"sglang-20611-racy":   {{"sglang-20611.py:19", "sglang-20611.py:23"}, {"sglang-20611.py:23", "sglang-20611.py:19"}},
		"vllm-52010-racy":     {{"vllm-52010.py:23", "vllm-52010.py:16"}},
	}
	proved := []string{"mended", "freed-recorded", "freed-waited", "megatron-5788", "sglang-20611", "vllm-52010", "vmaf-1583", "graph-transformer"}
	for name, lines := range wrong {
		report := checked(t, name)
		var found [][2]string
		for _, race := range report.Races {
			found = append(found, [2]string{race.First.Where, race.Second.Where})
		}
		require.Equal(t, lines, found, name)
		require.NotZero(t, report.Measured, name)
	}
	for _, name := range proved {
		report := checked(t, name)
		require.Empty(t, report.Races, name)
		require.True(t, report.Proved(), name)
	}
	// A C++ program has lines only where its file is, so its places are not compared here.
	require.Len(t, checked(t, "vmaf-1583-racy").Races, 1)
	// Its graph is launched three times in a row, so its node's measurement is of all three.
	require.Equal(t, 3, checked(t, "vllm-52010").Together)
}

// Without measuring, the same race is possible and no more.
func TestRecordingOfCallsAlone(t *testing.T) {
	report := checked(t, "light")
	require.Empty(t, report.Races)
	require.Len(t, report.Possible, 1)
	require.Equal(t, "seed.py:5", report.Possible[0].Second.Where)
	require.Equal(t, 2, report.Arguments)
}

func checked(t *testing.T, name string) *order.Report {
	t.Helper()
	r, err := recording.ReadFile(filepath.Join("testdata", "recordings", name+".rec"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.Close()) })
	require.Len(t, r.Processes, 1)
	report, err := order.Check(r.Processes[0], order.Options{})
	require.NoError(t, err)
	return report
}
