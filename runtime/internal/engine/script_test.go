// Tests of lists of commands with loops and branches in them.

package engine

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart"
)

// told is a list of commands that notes what it is told.
type told struct {
	cudart.List
	name string
	to   *[]string
	err  error
}

func (l told) note(text string) error {
	*l.to = append(*l.to, l.name+" "+text)
	return l.err
}

func (l told) Submit() error { return l.note("submit") }
func (l told) Close() error  { return l.note("close") }
func (l told) SetArgs(index int, grid [3]uint32, args []cudart.Value) error {
	return l.note(fmt.Sprintf("args of %d: %v %v", index, grid, len(args)))
}

func (l told) SetCopy(index int, dst, src cudart.Ptr) error {
	return l.note(fmt.Sprintf("copy of %d: %d %d", index, dst, src))
}

// A command is changed in the list that has it, by its number there. Lists are submitted in order, until one fails, and all of them closed.
func TestScriptsPassOnWhatTheyAreTold(t *testing.T) {
	var notes []string
	first, last := told{name: "first", to: &notes}, told{name: "last", to: &notes}
	s := &script{len: 9, parts: []scriptPart{{first: 0, list: first}, {first: 4, list: last}}}
	require.NoError(t, s.SetCopy(0, 1, 2))
	require.NoError(t, s.SetCopy(3, 3, 4))
	require.NoError(t, s.SetCopy(4, 5, 6))
	require.NoError(t, s.SetArgs(8, [3]uint32{7, 1, 1}, make([]cudart.Value, 2)))
	require.NoError(t, s.Submit())
	require.NoError(t, s.Close())
	require.Equal(t, []string{"first copy of 0: 1 2", "first copy of 3: 3 4", "last copy of 0: 5 6", "last args of 4: [7 1 1] 2", "first submit", "last submit",
		"first close", "last close"}, notes)
	require.EqualError(t, s.SetCopy(-1, 1, 2), "there is no command -1 that can be changed")
	require.EqualError(t, s.SetArgs(-1, [3]uint32{}, nil), "there is no command -1 that can be changed")
	require.Equal(t, 9, s.Len())
	_, err := s.Capture(cudart.GraphOptions{})
	require.ErrorIs(t, err, errNoCapture)

	notes, first.err = nil, errors.New("it fails")
	s.parts[0].list = first
	require.ErrorIs(t, s.SetCopy(0, 1, 2), first.err)
	require.ErrorIs(t, s.Submit(), first.err)
	require.ErrorIs(t, s.Close(), first.err)
	require.Equal(t, []string{"first copy of 0: 1 2", "first submit", "first close", "last close"}, notes)
}
