// Output of a command: colours on terminals, and escaping of text from outside so that it cannot control a terminal.

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/term"

	"github.com/dagrun/dagrun/cudart"
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

// sink is standard output or standard error. What is written to it comes out as words.Safe spells it; only printf adds colours. It
// remembers the first error of writing, so that output cut short is not taken for success. Any goroutine may use it.
type sink struct {
	w    io.Writer
	text *words.Writer
	mu   sync.Mutex
	err  error
	once func() // called before the first bytes are written; may be nil
}

func newSink(w io.Writer) *sink {
	s := &sink{w: w}
	s.text = words.NewWriter(writerFunc(s.pass))
	return s
}

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// pass writes bytes as they are.
func (s *sink) pass(p []byte) (int, error) {
	s.mu.Lock()
	once := s.once
	s.once = nil
	s.mu.Unlock()
	if once != nil {
		once()
	}
	n, err := s.w.Write(p)
	if err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.err == nil {
			s.err = err
		}
	}
	return n, err
}

func (s *sink) Write(p []byte) (int, error) { return s.text.Write(p) }

// painted is text that is safe for a terminal, with the colours that paint gave it.
type painted string

// printf prints like fmt.Fprintf; arguments that are painted keep their colours, all others come out as words.Safe spells them.
func (s *sink) printf(format string, args ...any) error {
	safe := make([]any, len(args))
	for i, arg := range args {
		switch v := arg.(type) {
		case painted:
			safe[i] = string(v)
		case string:
			safe[i] = words.Safe(v)
		case error:
			safe[i] = words.Safe(v.Error())
		case fmt.Stringer:
			safe[i] = words.Safe(v.String())
		default:
			safe[i] = arg
		}
	}
	return s.text.WriteTrusted(fmt.Sprintf(format, safe...))
}

// document returns the writer for output that another program reads: text is unchanged unless it goes to a terminal.
func (s *sink) document() io.Writer {
	if terminal(s) {
		return s
	}
	return writerFunc(s.pass)
}

func (s *sink) failure() error {
	_ = s.text.Flush() // an error of it is remembered like any other
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		return nil
	}
	return withStatus(statusInternal, fmt.Errorf("cannot write the output: %w", s.err))
}

// file returns the file that a sink writes to, nil if it writes to something else.
func (s *sink) file() *os.File {
	file, _ := s.w.(*os.File)
	return file
}

// terminal reports whether s is one.
func terminal(s *sink) bool {
	file := s.file()
	return file != nil && term.IsTerminal(int(file.Fd()))
}

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

// colored reports whether s takes colours: a terminal, unless the flag or NO_COLOR says otherwise.
func (a *app) colored(s *sink) bool {
	switch a.flags.color {
	case "always":
		return true
	case "never":
		return false
	}
	return terminal(s) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
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
	if !a.flags.verbose && errors.As(err, &device) && strings.HasPrefix(device.Detail, "goroutine ") {
		text = strings.Replace(text, "\n"+device.Detail, "", 1)
	}
	return strings.TrimRight(text, "\n")
}

// note prints something on stderr that a person may want to know and a program does not need.
func (a *app) note(format string, args ...any) {
	if a.flags.quiet || a.flags.output == "json" {
		return
	}
	a.progress.clear()
	_ = a.stderr.printf("%s %s\n", a.paint(a.stderr, dim, "note:"), fmt.Sprintf(format, args...)) // as above
}

// warn prints a warning on stderr; the command continues.
func (a *app) warn(format string, args ...any) {
	if a.flags.quiet {
		return
	}
	a.progress.clear()
	_ = a.stderr.printf("%s %s\n", a.paint(a.stderr, yellow, "warning:"), fmt.Sprintf(format, args...)) // as above
}
