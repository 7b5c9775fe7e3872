//go:build linux

// The command as a user runs it: started as a process of its own, with limits. Whatever it is given, it must end in time, with an exit status that
// it documents, and within its memory.

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/dagrun/dagrun/internal/words"
)

// Limits of one run of the command, for inputs of a few kilobytes.
const (
	mostTime   = 10 * time.Minute // of a busy machine; most runs take a few hundredths of a second, and those with --effort thorough seconds
	mostMemory = 1 << 30          // bytes
)

// trial is one case: what it draws, and where its files are.
type trial struct {
	*rand.Rand
	dagrun string
	folder string
	runs   []string // the command lines so far
	found  []string // what is wrong
	counts map[string]int
}

// wrong notes a finding.
func (t *trial) wrong(format string, args ...any) {
	t.found = append(t.found, fmt.Sprintf(format, args...))
}

// count counts cases that ended in the same way.
func (t *trial) count(what string) { t.counts[what]++ }

// chance is true in one of n cases.
func (t *trial) chance(n int) bool { return t.IntN(n) == 0 }

func pick[T any](t *trial, list ...T) T { return list[t.IntN(len(list))] }

// write makes a file of the case.
func (t *trial) write(name string, content []byte) {
	path := filepath.Join(t.folder, name)
	err := os.MkdirAll(filepath.Dir(path), 0o700)
	if err == nil {
		err = os.WriteFile(path, content, 0o600)
	}
	t.must(err)
}

func (t *trial) read(name string) []byte {
	content, err := os.ReadFile(filepath.Join(t.folder, name))
	if err != nil {
		return nil
	}
	return content
}

// must ends the program on an error that is not dagrun's.
func (t *trial) must(err error) {
	if err != nil {
		panic(fmt.Sprintf("%s: %v", t.folder, err))
	}
}

// outcome is how a run of the command ended.
type outcome struct {
	status      int
	out, errors string
}

// text is all that it printed.
func (o *outcome) text() string { return o.out + o.errors }

// fallen is what Go programs print when they fall.
var fallen = regexp.MustCompile(`(?m)^(panic: |fatal error: |goroutine \d+ \[|SIG[A-Z]+: )|runtime error: |internal error`)

// run starts dagrun in the folder of the case. It notes crashes, hangs, exit statuses that the documentation does not have, and too much memory.
func (t *trial) run(args ...string) outcome {
	t.runs = append(t.runs, "dagrun "+strings.Join(args, " "))
	ctx, cancel := context.WithTimeout(context.Background(), mostTime)
	defer cancel()
	command := exec.CommandContext(ctx, t.dagrun, args...)
	command.Dir, command.WaitDelay = t.folder, time.Second
	command.Env = append(os.Environ(), "DAGRUN_CACHE="+filepath.Join(t.folder, "cache"), "GOTRACEBACK=single", "GOMEMLIMIT=off")
	var out, complaints bytes.Buffer
	command.Stdout, command.Stderr = &out, &complaints
	err := command.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) && ctx.Err() == nil {
		t.must(err)
	}
	o := outcome{command.ProcessState.ExitCode(), out.String(), complaints.String()}
	switch {
	case ctx.Err() != nil:
		t.wrong("it has not ended after %s", mostTime)
	case o.status < 0 || o.status > 5:
		t.wrong("it ended with %s:\n%s", command.ProcessState, shortened(o.text()))
	case fallen.MatchString(o.text()):
		t.wrong("it fell:\n%s", shortened(o.text()))
	}
	if usage, ok := command.ProcessState.SysUsage().(*syscall.Rusage); ok {
		if bytes := usage.Maxrss << 10; bytes > mostMemory {
			t.wrong("it used %s", words.Bytes(bytes))
		}
	}
	return o
}

func shortened(text string) string {
	if len(text) > 2000 {
		return text[:2000] + "..."
	}
	return text
}
