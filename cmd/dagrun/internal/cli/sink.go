// Standard output and standard error: text from outside is escaped on its way there, so that it cannot control a terminal.

package cli

import (
	"fmt"
	"io"
	"os"
	"sync"

	"golang.org/x/term"

	"github.com/dagrun/dagrun/internal/words"
)

// Sink is standard output or standard error. What is written to it comes out as words.Safe spells it; only printf adds colours. It
// remembers the first error of writing, so that output cut short is not taken for success. Any goroutine may use it.
type Sink struct {
	w    io.Writer
	text *words.Writer
	mu   sync.Mutex
	err  error
	once func() // called before the first bytes are written; may be nil

	writing sync.Mutex
	over    bool // the process is ending, and what comes now is dropped
}

func newSink(w io.Writer) *Sink {
	s := &Sink{w: w}
	s.text = words.NewWriter(writerFunc(s.pass))
	return s
}

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// pass writes bytes as they are.
func (s *Sink) pass(p []byte) (int, error) {
	s.mu.Lock()
	once := s.once
	s.once = nil
	s.mu.Unlock()
	if once != nil {
		once()
	}
	n, err := s.write(p, false)
	if err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.err == nil {
			s.err = err
		}
	}
	return n, err
}

func (s *Sink) write(p []byte, last bool) (int, error) {
	s.writing.Lock()
	defer s.writing.Unlock()
	if s.over {
		return len(p), nil
	}
	s.over = last
	return s.w.Write(p)
}

// last prints a line of a process that ends at once, after which nothing else is printed.
func (s *Sink) last(line painted) { _, _ = s.write([]byte(line+"\n"), true) }

func (s *Sink) Write(p []byte) (int, error) { return s.text.Write(p) }

// painted is text that is safe for a terminal, with the colours that paint gave it.
type painted string

// Printf prints like fmt.Fprintf; arguments that are painted keep their colours, all others come out as words.Safe spells them.
func (s *Sink) Printf(format string, args ...any) error {
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

// Document returns the writer for output that another program reads: text is unchanged unless it goes to a terminal.
func (s *Sink) Document() io.Writer {
	if terminal(s) {
		return s
	}
	return writerFunc(s.pass)
}

func (s *Sink) Failure() error {
	_ = s.text.Flush() // an error of it is remembered like any other
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		return nil
	}
	return WithStatus(StatusInternal, fmt.Errorf("cannot write the output: %w", s.err))
}

// file returns the file that a sink writes to, nil if it writes to something else.
func (s *Sink) file() *os.File {
	file, _ := s.w.(*os.File)
	return file
}

// terminal reports whether s is one.
func terminal(s *Sink) bool {
	file := s.file()
	return file != nil && term.IsTerminal(int(file.Fd()))
}
