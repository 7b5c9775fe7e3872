// Messages on a terminal: colours, warnings and errors, each on lines of its own.

package main

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
	red    = "31"
	green  = "32"
	yellow = "33"
	bold   = "1"
	dim    = "2"
)

// lineWidth returns the length limit of lines on stdout: COLUMNS, otherwise the terminal's width, otherwise 0 for no limit.
func (a *app) lineWidth() int {
	if n, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && n > 0 {
		return n
	}
	if file := a.stdout.file(); file != nil {
		if n, _, err := term.GetSize(int(file.Fd())); err == nil && n > 0 {
			return n
		}
	}
	return 0
}

// chartWidth returns the width of a chart in text.
func (a *app) chartWidth() int {
	if n := a.lineWidth(); n > 0 {
		return n
	}
	return 80
}

// colored reports whether s takes colours: a terminal, unless the flag or NO_COLOR says otherwise. Under Open MPI's mpirun stdout always is
// one, although what is written to it may go to a file.
func (a *app) colored(s *sink) bool {
	switch a.Flags.Color {
	case "always":
		return true
	case "never":
		return false
	}
	return terminal(s) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && os.Getenv("OMPI_COMM_WORLD_SIZE") == ""
}

// paint wraps text in an SGR colour if s is colored.
func (a *app) paint(s *sink, sgr, text string) painted {
	text = words.Safe(text)
	if text == "" || !a.colored(s) {
		return painted(text)
	}
	return painted("\x1b[" + sgr + "m" + text + "\x1b[0m")
}

// printError prints the error that ended a command.
func (a *app) printError(err error) {
	// An error that cannot be printed cannot be reported elsewhere either.
	_ = a.stderr.printf("%s %s%s\n", a.paint(a.stderr, red, "dagrun:"), a.rankPrefix(err), a.brief(err))
}

// brief is an error without the stack of a kernel of the CPU device that panicked, unless -v asks for all.
func (a *app) brief(err error) string {
	text := err.Error()
	var device *cudart.Error
	if !a.Flags.Verbose && errors.As(err, &device) && strings.HasPrefix(device.Detail, "goroutine ") {
		text = strings.Replace(text, "\n"+device.Detail, "", 1)
	}
	return strings.TrimRight(text, "\n")
}

// note prints something on stderr that a person may want to know and a program does not need.
func (a *app) note(format string, args ...any) {
	if a.Flags.Quiet || a.Flags.Output == "json" {
		return
	}
	a.progress.clear()
	_ = a.stderr.printf("%s %s\n", a.paint(a.stderr, dim, "note:"), fmt.Sprintf(format, args...)) // as above
}

// warn prints a warning on stderr; the command continues.
func (a *app) warn(format string, args ...any) {
	if a.Flags.Quiet {
		return
	}
	a.progress.clear()
	_ = a.stderr.printf("%s %s\n", a.paint(a.stderr, yellow, "warning:"), fmt.Sprintf(format, args...)) // as above
}

// rankPrefix says which rank an error is of, unless the error names ranks itself.
func (a *app) rankPrefix(err error) string {
	if a.place.Launcher == "" || errors.Is(err, world.ErrRank) {
		return ""
	}
	return fmt.Sprintf("rank %d of %d: ", a.place.Rank, a.place.Ranks)
}
