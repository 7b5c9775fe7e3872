// Ctrl-C, other signals and --timeout: work is asked to stop first, but a device that does not answer cannot keep the process alive.

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/dagrun/dagrun/cmd/dagrun/internal/flags"
	"github.com/dagrun/dagrun/cudart/world"
	"github.com/dagrun/dagrun/internal/files"
	"github.com/dagrun/dagrun/internal/words"
	"github.com/dagrun/dagrun/planner"
)

// grace is how long submitted work may take to finish after the command was asked to stop.
const grace = 2 * time.Second

// rankEnd is how long a rank may take to end after another one has failed.
const rankEnd = 10 * time.Second

// interrupted makes a context that Ctrl-C, SIGTERM and the end of the terminal cancel. A second signal of the same kind ends the process at once:
// a rank gets two kinds where a terminal sends the one to all processes and its launcher passes it on as the other. After a first signal this
// holds until the process ends: the default action for a signal would end it without the exit status of an interruption.
func (a *app) interrupted(parent context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(parent)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, asksToStop()...)
	done := make(chan struct{})
	var received atomic.Bool
	go func() {
		seen := map[os.Signal]bool{}
		for len(seen) == 0 {
			select {
			case s := <-signals:
				if !a.passed(s) {
					seen[s] = true
				}
			case <-done:
				select {
				case s := <-signals:
					seen[s] = true
				default:
					return
				}
			}
		}
		received.Store(true)
		cancel()
		patience := time.Duration(a.patience.Load())
		late, ended := time.NewTimer(patience), done
		for {
			select {
			case <-ended:
				ended = nil
				late.Stop()
			case s := <-signals:
				if seen[s] {
					a.die(statusInterrupted, "interrupted twice")
				}
				seen[s] = true
			case <-late.C:
				a.die(statusInterrupted, fmt.Sprintf("interrupted; %s did not finish within %s, %s", a.working(), patience, a.progress.where()))
			}
		}
	}()
	var once sync.Once
	return ctx, func() {
		once.Do(func() {
			if !received.Load() && len(signals) == 0 {
				signal.Stop(signals)
			}
			close(done)
			cancel()
		})
	}
}

// passed gives a signal to the program that this process runs, if there is one.
func (a *app) passed(s os.Signal) bool {
	pass := a.signals.Load()
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

// limited makes a context that --timeout cancels. The returned function must be called after the device is closed.
func (a *app) limited(parent context.Context) (context.Context, func()) {
	if a.Flags.Timeout <= 0 {
		return parent, func() {}
	}
	ctx, cancel := context.WithTimeout(parent, a.Flags.Timeout)
	done := make(chan struct{})
	patience := grace
	if a.place.Ranks > 1 {
		patience += world.TimeoutPatience + rankEnd // the ranks find out which of them the others wait for, and end
	}
	last := time.AfterFunc(a.Flags.Timeout+patience, func() {
		select {
		case <-done:
		default:
			a.die(statusTimeout, fmt.Sprintf("timed out after %s; %s did not finish within another %s, %s", a.Flags.Timeout, a.working(), patience, a.progress.where()))
		}
	})
	return ctx, func() {
		close(done)
		last.Stop()
		cancel()
	}
}

// working names what did not finish when a command was stopped: the device or the command itself.
func (a *app) working() string {
	if a.progress.onDevice() {
		return "the device"
	}
	return "the command"
}

// die ends the process while something hangs. Files that were being written keep their old contents, except that a hard-linked file whose
// overwriting has begun is completed, or named if that takes too long.
func (a *app) die(status int, why string) {
	for _, text := range files.Abandon(grace) {
		why += "; " + words.Line(text)
	}
	a.progress.clear()
	a.stderr.last(a.paint(a.stderr, red, "dagrun:") + " " + painted(words.Safe(why+a.left())))
	if a.Flags.Output == "json" && !a.answered {
		a.answerError(errors.New(why+a.left()), status)
	}
	os.Exit(status)
}

// left names the nodes that a hang left unfinished, if --debug-progress tracks them or learning was measuring nodes.
func (a *app) left() string {
	if text := a.stillRunning(); text != "" {
		return text
	}
	if a.unfinished == nil {
		return ""
	}
	names := a.unfinished()
	if len(names) == 0 {
		return "; every node had finished"
	}
	return "; not finished: " + someOf(names)
}

// stillRunning names the nodes that were running when learning was stopped.
func (a *app) stillRunning() string {
	text := ""
	if a.hung != nil {
		text, _ = a.hung()
	}
	if a.running == nil || len(a.running()) == 0 {
		return text
	}
	return "; still running: " + someOf(a.running()) + text
}

// someOf lists names, only the first where there are many.
func someOf(names []string) string {
	const most = 10
	text := words.Line(strings.Join(names[:min(most, len(names))], ", "))
	if len(names) > most {
		text += fmt.Sprintf(" and %d more", len(names)-most)
	}
	return text
}

// explain words the error that ended a command for its user.
func (a *app) explain(c *cobra.Command, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.DeadlineExceeded):
		return withStatus(statusTimeout, &stopped{fmt.Sprintf("timed out after %s, %s%s", a.Flags.Timeout, a.progress.where(), a.stillRunning()), err})
	case errors.Is(err, context.Canceled):
		return withStatus(statusInterrupted, &stopped{"interrupted, " + a.progress.where(), err})
	}
	if a.place.Ranks > 1 && a.Flags.Spill == flags.SpillAuto && errors.Is(err, planner.ErrMemoryCap) {
		return fmt.Errorf("%w; pipelines with several ranks are not spilled to host memory", err)
	}
	var missing *missingFile
	if errors.As(err, &missing) {
		root := c
		if c != nil && c.HasParent() {
			root = nil
		}
		return a.fileError(root, missing.name, missing.err)
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
