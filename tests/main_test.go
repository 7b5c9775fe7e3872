// Setup for all tests of this package: the commands that they run neither read nor change the user's cache.

package tests

import (
	"os"
	"testing"

	"github.com/dagrun/dagrun/runtime/cache"
)

func TestMain(m *testing.M) {
	os.Setenv(cache.Variable, cache.Off)
	m.Run()
}
