// Messages on a terminal: colours, warnings and errors, each on lines of its own.

package cli

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/term"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/cudart/world"
	"github.com/dagrun/dagrun/internal/words"
)

// Colours, as SGR parameters.
const (
	Red    = "31"
	Green  = "32"
	yellow = "33"
	Bold   = "1"
	Dim    = "2"
)

// LineWidth returns the length limit of lines on stdout: COLUMNS, otherwise the terminal's width, otherwise 0 for no limit.
func (t *Console) LineWidth() int {
	if n, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && n > 0 {
		return n
	}
	if file := t.Stdout.file(); file != nil {
		if n, _, err := term.GetSize(int(file.Fd())); err == nil && n > 0 {
			return n
		}
	}
	return 0
}

// ChartWidth returns the width of a chart in text.
func (t *Console) ChartWidth() int {
	if n := t.LineWidth(); n > 0 {
		return n
	}
	return 80
}

// colored reports whether s takes colours: a terminal, unless the flag or NO_COLOR says otherwise. Under Open MPI's mpirun stdout always is
// one, although what is written to it may go to a file.
func (t *Console) colored(s *Sink) bool {
	switch t.Flags.Color {
	case "always":
		return true
	case "never":
		return false
	}
	return terminal(s) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && os.Getenv("OMPI_COMM_WORLD_SIZE") == ""
}

// Paint wraps text in an SGR colour if s is colored.
func (t *Console) Paint(s *Sink, sgr, text string) painted {
	text = words.Safe(text)
	if text == "" || !t.colored(s) {
		return painted(text)
	}
	return painted("\x1b[" + sgr + "m" + text + "\x1b[0m")
}

// PrintError prints the error that ended a command.
func (t *Console) PrintError(err error) {
	// An error that cannot be printed cannot be reported elsewhere either.
	_ = t.Stderr.Printf("%s %s%s\n", t.Paint(t.Stderr, Red, "dagrun:"), t.rankPrefix(err), t.brief(err))
}

// brief is an error without the stack of a kernel of the CPU device that panicked, unless -v asks for all.
func (t *Console) brief(err error) string {
	text := err.Error()
	var device *cudart.Error
	if !t.Flags.Verbose && errors.As(err, &device) && strings.HasPrefix(device.Detail, "goroutine ") {
		text = strings.Replace(text, "\n"+device.Detail, "", 1)
	}
	return strings.TrimRight(text, "\n")
}

// Note prints something on stderr that a person may want to know and a program does not need.
func (t *Console) Note(format string, args ...any) {
	if t.Flags.Quiet || t.Flags.Output == "json" {
		return
	}
	t.Progress.Clear()
	_ = t.Stderr.Printf("%s %s\n", t.Paint(t.Stderr, Dim, "note:"), fmt.Sprintf(format, args...)) // as above
}

// Warn prints a warning on stderr; the command continues.
func (t *Console) Warn(format string, args ...any) {
	if t.Flags.Quiet {
		return
	}
	t.Progress.Clear()
	_ = t.Stderr.Printf("%s %s\n", t.Paint(t.Stderr, yellow, "warning:"), fmt.Sprintf(format, args...)) // as above
}

// rankPrefix says which rank an error is of, unless the error names ranks itself.
func (t *Console) rankPrefix(err error) string {
	if t.Place.Launcher == "" || errors.Is(err, world.ErrRank) {
		return ""
	}
	return fmt.Sprintf("rank %d of %d: ", t.Place.Rank, t.Place.Ranks)
}
