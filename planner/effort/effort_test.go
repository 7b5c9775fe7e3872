// Tests that efforts and their names convert both ways.

package effort

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNames(t *testing.T) {
	for i, name := range Names() {
		e, err := Parse(name)
		require.NoError(t, err)
		require.Equal(t, Effort(i), e)
		require.True(t, e.Valid())
		require.Equal(t, name, e.String())
	}
	e, err := Parse("")
	require.NoError(t, err)
	require.Equal(t, Quick, e)
	_, err = Parse("hard")
	require.ErrorIs(t, err, ErrEffort)
	require.EqualError(t, err, `unknown effort "hard": the efforts are quick, normal, thorough`)
	require.False(t, Effort(3).Valid())
	require.Equal(t, "effort 3", Effort(3).String())
}
