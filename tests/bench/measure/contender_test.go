// Tests of the protocol with the C++ program, using shell scripts that follow or violate it.

package main

import (
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

func script(t *testing.T, text string) (*contender, error) {
	t.Helper()
	shell, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("SKIPPED: there is no sh on this machine")
	}
	return startContender(shell, "-c", text)
}

func TestContenderAnswers(t *testing.T) {
	c, err := script(t, `echo ready; while read line; do case $line in go) echo 12.5;; dump) echo dumped;; esac; done`)
	require.NoError(t, err)
	for range 3 {
		us, err := c.replay()
		require.NoError(t, err)
		require.Equal(t, 12.5, us)
	}
	_, err = c.ask("dump", "dumped")
	require.NoError(t, err)
	require.NoError(t, c.close())
}

func TestContenderThatFails(t *testing.T) {
	_, err := script(t, `echo "no such device" >&2; exit 3`)
	require.ErrorContains(t, err, "exit status 3: no such device")
	c, err := script(t, `echo ready; read line; echo nonsense`)
	require.NoError(t, err)
	_, err = c.ask("dump", "dumped")
	require.ErrorContains(t, err, `answered "nonsense", want "dumped"`)
	_, err = c.replay()
	require.Error(t, err)
	require.NoError(t, c.close())
}

func TestMediansAreOfRounds(t *testing.T) {
	require.Equal(t, 2.0, median([]float64{3, 1, 2}))
	require.Equal(t, 2.5, median([]float64{4, 1, 2, 3}))
	require.Zero(t, median(nil))
	require.Equal(t, 2.0, medianRatio([]float64{2, 40, 6}, []float64{1, 20, 2}), "each round against its own")
	require.Zero(t, medianRatio([]float64{1}, nil))
	table := table{title: "T", head: []string{"a", "b"}, notes: []string{"N"}}
	table.row("x", figure(123.4))
	table.row("yy", figure(0))
	require.Equal(t, "\n### T\n\n| a  |   b |\n| -- | --- |\n| x  | 123 |\n| yy |   - |\n\nN\n", table.markdown())
}
