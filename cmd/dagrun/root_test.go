// Tests of output that is cut short, and of mistakes in dagrun itself.

package main

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cmd/dagrun/internal/cli"
)

// Output that could not be written makes the command fail.
func TestOutputCutShort(t *testing.T) {
	var messages bytes.Buffer
	a := newApp(strings.NewReader(""), failing{}, &messages)
	require.Equal(t, cli.StatusInternal, a.execute(t.Context(), []string{"kernels"}))
	require.Equal(t, "dagrun: cannot write the output: disk full\n", messages.String())
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errors.New("disk full") }

// A bug in dagrun itself gives the exit status of an internal error.
func TestPanicIsAnInternalError(t *testing.T) {
	_, err := guarded(t.Context(), &cobra.Command{Use: "broken", RunE: func(*cobra.Command, []string) error { panic("index out of range") }, SilenceErrors: true, SilenceUsage: true})
	require.Equal(t, cli.StatusInternal, cli.StatusOf(err))
	require.ErrorContains(t, err, "internal error, please report it: index out of range")
}
