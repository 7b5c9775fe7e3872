// A trial: what the tests say of one mutant. The source is never changed: the go command is given an overlay.

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// subject is a package whose code is changed, and the packages whose tests are run, its own first.
type subject struct {
	name  string
	files []string                 // below the module's folder
	tests []string                 // packages, each followed by :REGEXP if only some of its tests are run
	limit map[string]time.Duration // by entry of tests
}

// verdict is how a trial ended.
type verdict string

const (
	survived   verdict = "SURVIVED"
	killed     verdict = "killed"
	timedOut   verdict = "timed out" // counts as killed: an endless loop
	uncompiled verdict = "does not compile"
)

// bench runs trials for one module.
type bench struct {
	root   string // the module's folder
	work   string // for overlays
	short  bool
	grace  time.Duration
	memory int64 // bytes that a test may map; 0 for no limit
}

// try builds a mutant and runs the tests of each package until one fails.
func (b *bench) try(s *subject, m *mutant, id int) (verdict, error) {
	overlay, err := b.overlay(m, id)
	if err != nil {
		return "", err
	}
	build := exec.Command("go", "build", "-overlay", overlay, "./"+s.name)
	build.Dir = b.root
	if err := build.Run(); err != nil {
		return uncompiled, onlyExit(err)
	}
	for _, tests := range s.tests {
		out, err := b.test(tests, s.limit[tests], "-overlay", overlay, "-failfast")
		switch {
		case bytes.Contains(out, []byte("panic: test timed out after")):
			return timedOut, nil
		case err != nil:
			return killed, onlyExit(err)
		}
	}
	return survived, nil
}

// measure runs the tests without a mutant, which must pass, and sets how long they may take with one.
func (b *bench) measure(s *subject) error {
	s.limit = map[string]time.Duration{}
	for _, tests := range s.tests {
		start := time.Now()
		if out, err := b.test(tests, time.Hour); err != nil {
			return fmt.Errorf("the tests of %s fail without any mutant: %w\n%s", tests, err, out)
		}
		s.limit[tests] = (b.grace + 4*time.Since(start)).Round(time.Millisecond)
	}
	return nil
}

func (b *bench) test(tests string, limit time.Duration, more ...string) ([]byte, error) {
	arguments := append([]string{"test", "-vet=off", "-count=1", "-timeout", limit.String()}, more...)
	if b.short {
		arguments = append(arguments, "-short")
	}
	if b.memory > 0 {
		arguments = append(arguments, "-exec", fmt.Sprintf(`sh -c 'ulimit -v %d; exec "$0" "$@"'`, b.memory>>10))
	}
	name, some, _ := strings.Cut(tests, ":")
	if some != "" {
		arguments = append(arguments, "-run", some)
	}
	arguments = append(arguments, "./"+name)
	if properties, err := b.drawsProperties(name); err != nil {
		return nil, err
	} else if properties {
		arguments = append(arguments, "-rapid.nofailfile") // or it would leave a file in the source for each mutant that it kills
	}
	command := exec.Command("go", arguments...)
	command.Dir = b.root
	return command.CombinedOutput()
}

// drawsProperties reports whether a package has property tests.
func (b *bench) drawsProperties(name string) (bool, error) {
	command := exec.Command("go", "list", "-f", `{{join .TestImports " "}} {{join .XTestImports " "}}`, "./"+name)
	command.Dir = b.root
	out, err := command.Output()
	return strings.Contains(string(out), "pgregory.net/rapid"), err
}

// overlay writes a changed file, and the list that puts it in the place of the original.
func (b *bench) overlay(m *mutant, id int) (string, error) {
	original := filepath.Join(b.root, filepath.FromSlash(m.file))
	source, err := os.ReadFile(original)
	if err != nil {
		return "", err
	}
	changed := filepath.Join(b.work, fmt.Sprintf("mutant%d.go", id))
	if err := os.WriteFile(changed, m.apply(source), 0o666); err != nil {
		return "", err
	}
	list, err := json.Marshal(map[string]any{"Replace": map[string]string{original: changed}})
	if err != nil {
		return "", err
	}
	file := filepath.Join(b.work, fmt.Sprintf("overlay%d.json", id))
	return file, os.WriteFile(file, list, 0o666)
}

// onlyExit passes on errors other than an exit status: the go command could not be started.
func onlyExit(err error) error {
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return nil
	}
	return err
}

// list finds the files of a package, and its own tests.
func (b *bench) list(argument string) (*subject, error) {
	name, tests, _ := strings.Cut(argument, "=")
	command := exec.Command("go", "list", "-f", `{{join .GoFiles " "}}|{{len .TestGoFiles}}{{len .XTestGoFiles}}`, "./"+name)
	command.Dir = b.root
	var failure bytes.Buffer
	command.Stderr = &failure
	out, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %s", name, err, strings.TrimSpace(failure.String()))
	}
	files, counts, _ := strings.Cut(strings.TrimSpace(string(out)), "|")
	s := &subject{name: name}
	for _, file := range strings.Fields(files) {
		s.files = append(s.files, name+"/"+file)
	}
	if counts != "00" {
		s.tests = append(s.tests, name)
	}
	if tests != "" {
		s.tests = append(s.tests, strings.Split(tests, ",")...)
	}
	if len(s.tests) == 0 {
		return nil, fmt.Errorf("%s has no tests of its own: name packages that test it, as %s=PACKAGE", name, name)
	}
	return s, nil
}
