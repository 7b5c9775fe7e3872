// Ctrl-C, other signals and --timeout: work is asked to stop first, but a device that does not answer cannot keep the process alive.

package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/dagrun/dagrun/cmd/dagrun/internal/flags"
	"github.com/dagrun/dagrun/cudart/world"
	"github.com/dagrun/dagrun/internal/files"
	"github.com/dagrun/dagrun/internal/words"
	"github.com/dagrun/dagrun/planner"
)

// Grace is how long submitted work may take to finish after the command was asked to stop.
const Grace = 2 * time.Second

// RankEnd is how long a rank may take to end after another one has failed.
const RankEnd = 10 * time.Second

// Interrupted makes a context that Ctrl-C, SIGTERM and the end of the terminal cancel. A second signal of the same kind ends the process at once:
// a rank gets two kinds where a terminal sends the one to all processes and its launcher passes it on as the other. This holds until the
// process ends: the default action for a signal would end it without the exit status of an interruption.
func (t *Console) Interrupted(parent context.Context) context.Context {
	ctx, cancel := context.WithCancel(parent)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, asksToStop()...)
	go func() {
		seen := map[os.Signal]bool{}
		for len(seen) == 0 {
			if s := <-signals; !t.passed(s) {
				seen[s] = true
			}
		}
		cancel()
		patience := time.Duration(t.Patience.Load())
		late := time.After(patience)
		for {
			select {
			case s := <-signals:
				if seen[s] {
					t.Die(StatusInterrupted, "interrupted twice")
				}
				seen[s] = true
			case <-late:
				t.Die(StatusInterrupted, fmt.Sprintf("interrupted; %s did not finish within %s, %s", t.Working(), patience, t.Progress.Where()))
			}
		}
	}()
	return ctx
}

// passed gives a signal to the program that this process runs, if there is one.
func (t *Console) passed(s os.Signal) bool {
	pass := t.Signals.Load()
	if pass != nil {
		(*pass)(s)
	}
	return pass != nil
}

// asksToStop lists the signals that ask a command to stop. One that was started to outlive its terminal, as by nohup, is not asked by the
// terminal's end.
func asksToStop() []os.Signal {
	all := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		all = append(all, syscall.SIGHUP)
	}
	return all
}

// WithTimeout makes a context that --timeout cancels. The returned function must be called after the device is closed.
func (t *Console) WithTimeout(parent context.Context) (context.Context, func()) {
	if t.Flags.Timeout <= 0 {
		return parent, func() {}
	}
	ctx, cancel := context.WithTimeout(parent, t.Flags.Timeout)
	done := make(chan struct{})
	patience := Grace
	if t.Place.Ranks > 1 {
		patience += world.TimeoutPatience + RankEnd // the ranks find out which of them the others wait for, and end
	}
	last := time.AfterFunc(t.Flags.Timeout+patience, func() {
		select {
		case <-done:
		default:
			t.Die(StatusTimeout, fmt.Sprintf("timed out after %s; %s did not finish within another %s, %s", t.Flags.Timeout, t.Working(), patience, t.Progress.Where()))
		}
	})
	return ctx, func() {
		close(done)
		last.Stop()
		cancel()
	}
}

// Working names what did not finish when a command was stopped: the device or the command itself.
func (t *Console) Working() string {
	if t.Progress.onDevice() {
		return "the device"
	}
	return "the command"
}

// Die ends the process while something hangs. Files that were being written keep their old contents, except that a hard-linked file whose
// overwriting has begun is completed, or named if that takes too long.
func (t *Console) Die(status int, why string) {
	for _, text := range files.Abandon(Grace) {
		why += "; " + words.Line(text)
	}
	t.Progress.Clear()
	t.Stderr.last(t.Paint(t.Stderr, Red, "dagrun:") + " " + painted(words.Safe(why+t.Left())))
	if t.Flags.Output == "json" && !t.Answered {
		t.AnswerError(errors.New(why+t.Left()), status)
	}
	os.Exit(status)
}

// Left names the nodes that a hang left unfinished, if --debug-progress tracks them or learning was measuring nodes.
func (t *Console) Left() string {
	if text := t.stillRunning(); text != "" {
		return text
	}
	if t.Unfinished == nil {
		return ""
	}
	names := t.Unfinished()
	if len(names) == 0 {
		return "; every node had finished"
	}
	return "; not finished: " + SomeOf(names)
}

// stillRunning names the nodes that were running when learning was stopped.
func (t *Console) stillRunning() string {
	text := ""
	if t.Hung != nil {
		text, _ = t.Hung()
	}
	if t.Running == nil || len(t.Running()) == 0 {
		return text
	}
	return "; still running: " + SomeOf(t.Running()) + text
}

// SomeOf lists names, only the first where there are many.
func SomeOf(names []string) string {
	const most = 10
	text := words.Line(strings.Join(names[:min(most, len(names))], ", "))
	if len(names) > most {
		text += fmt.Sprintf(" and %d more", len(names)-most)
	}
	return text
}

// WordError words the error that ended a command for its user.
func (t *Console) WordError(c *cobra.Command, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.DeadlineExceeded):
		return WithStatus(StatusTimeout, &stopped{fmt.Sprintf("timed out after %s, %s%s", t.Flags.Timeout, t.Progress.Where(), t.stillRunning()), err})
	case errors.Is(err, context.Canceled):
		return WithStatus(StatusInterrupted, &stopped{"interrupted, " + t.Progress.Where(), err})
	}
	if t.Place.Ranks > 1 && t.Flags.Spill == flags.SpillAuto && errors.Is(err, planner.ErrMemoryCap) {
		return fmt.Errorf("%w; pipelines with several ranks are not spilled to host memory", err)
	}
	var missing *MissingFile
	if errors.As(err, &missing) {
		root := c
		if c != nil && c.HasParent() {
			root = nil
		}
		return t.fileError(root, missing.Name, missing.Err)
	}
	return err
}

// stopped is the error of a command that was interrupted or timed out, with the error that its work returned.
type stopped struct {
	text string
	err  error
}

func (e *stopped) Error() string { return e.text }

func (e *stopped) Unwrap() error { return e.err }
