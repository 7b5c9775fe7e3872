// Checks that no test of this package leaves a goroutine behind.

package engine

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
