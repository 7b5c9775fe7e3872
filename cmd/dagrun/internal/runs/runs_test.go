// What the tests of this package share.

package runs

import (
	"io"
	"os"
	"strings"
	"testing"

	"github.com/dagrun/dagrun/cmd/dagrun/internal/cli"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/session"
	"github.com/dagrun/dagrun/kernels"
	"github.com/dagrun/dagrun/runtime/cache"
)

func TestMain(m *testing.M) {
	if os.Getenv(cache.Variable) == "" {
		os.Setenv(cache.Variable, cache.Off) // no test learns from the user's own cache, or adds to it
	}
	m.Run()
}

// silent is a command whose output nobody reads.
func silent() *Runs {
	return &Runs{Ranks: &session.Ranks{Session: &session.Session{Console: cli.New(strings.NewReader(""), io.Discard, io.Discard), Compilers: &kernels.Compilers{}}}}
}
