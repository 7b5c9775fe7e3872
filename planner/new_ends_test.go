// Tests of planning whose context ends, at any time.

package planner

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
)

// endsAfter is a context that ends once it has been asked so many times whether it has ended.
type endsAfter struct {
	context.Context
	asked int
}

func (c *endsAfter) Err() error {
	if c.asked--; c.asked < 0 {
		return context.Canceled
	}
	return nil
}

func TestAPlanAndAnErrorAreNeverReturnedTogether(t *testing.T) {
	b := dag.New("ends")
	host, device := b.Host("host", dag.F32, 64), b.Device("device", dag.F32, 64)
	b.Copy("up", b.Whole(device), b.Whole(host))
	b.Copy("down", b.Whole(host), b.Whole(device))
	g, err := b.Graph()
	require.NoError(t, err)
	for asked := 0; ; asked++ {
		plan, err := New(&endsAfter{context.Background(), asked}, g, Options{})
		if err == nil {
			require.NotNil(t, plan)
			require.Positive(t, asked)
			return
		}
		require.ErrorIs(t, err, context.Canceled)
		require.Nil(t, plan, "after it was asked %d times", asked)
	}
}
