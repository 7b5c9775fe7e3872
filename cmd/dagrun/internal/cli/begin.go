// How a command begins.

package cli

import (
	"io"
	"log/slog"
	"os"

	"github.com/dagrun/dagrun/cmd/dagrun/internal/flags"
)

// New is the console of a command that begins.
func New(stdin io.Reader, stdout, stderr io.Writer) *Console {
	t := &Console{Sets: flags.New(), Stdin: stdin, Stdout: newSink(stdout), Stderr: newSink(stderr), Self: os.Executable}
	t.Patience.Store(int64(Grace))
	t.Progress = newProgress(t.Stderr)
	t.Log = slog.New(&logHandler{console: t})
	return t
}
