// What is measured: a package, its tests, and which of them killed mutants before.

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// subject is a package whose code is changed, and the packages whose tests are run, its own first.
type subject struct {
	name        string
	packageName string
	files       []string        // below the module's folder
	tests       []string        // packages, each followed by :REGEXP if only some of its tests are run
	properties  map[string]bool // whether an entry of tests has property tests
	killers     killers
}

// bench runs trials for one module.
type bench struct {
	root   string // the module's folder
	work   string // for overlays and test programs
	short  bool
	grace  time.Duration
	memory int64 // bytes that a test may map; 0 for no limit
}

func (b *bench) command(name string, arguments ...string) *exec.Cmd {
	command := exec.Command(name, arguments...)
	command.Dir = b.root
	return command
}

// onlyExit passes on errors other than an exit status: the command could not be started.
func onlyExit(err error) error {
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return nil
	}
	return err
}

// list finds the files of a package, and its own tests.
func (b *bench) list(argument string) (*subject, error) {
	name, tests, _ := strings.Cut(argument, "=")
	command := b.command("go", "list", "-f", `{{.Name}}|{{join .GoFiles " "}}|{{len .TestGoFiles}}{{len .XTestGoFiles}}`, "./"+name)
	var failure bytes.Buffer
	command.Stderr = &failure
	out, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %s", name, err, strings.TrimSpace(failure.String()))
	}
	found := strings.Split(strings.TrimSpace(string(out)), "|")
	s := &subject{name: name, packageName: found[0], properties: map[string]bool{}}
	for _, file := range strings.Fields(found[1]) {
		s.files = append(s.files, name+"/"+file)
	}
	if found[2] != "00" {
		s.tests = append(s.tests, name)
	}
	if tests != "" {
		s.tests = append(s.tests, strings.Split(tests, ",")...)
	}
	if len(s.tests) == 0 {
		return nil, fmt.Errorf("%s has no tests of its own: name packages that test it, as %s=PACKAGE", name, name)
	}
	for _, entry := range s.tests {
		name, _, _ := strings.Cut(entry, ":")
		if s.properties[entry], err = b.drawsProperties(name); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// drawsProperties reports whether a package has property tests.
func (b *bench) drawsProperties(name string) (bool, error) {
	out, err := b.command("go", "list", "-f", `{{join .TestImports " "}} {{join .XTestImports " "}}`, "./"+name).Output()
	return strings.Contains(string(out), "pgregory.net/rapid"), err
}

// reaches is a test: how long it takes and which functions it calls, each by the number of its first mutant.
type reaches struct {
	name  string
	takes time.Duration
	first map[string]bool // nil if that is not known
}

// killers remembers the tests that killed mutants, by entry of a subject's tests: they probably kill others.
type killers struct {
	lock sync.Mutex
	of   map[string][]string // the latest last
}

const mostKillers = 6

var failed = regexp.MustCompile(`(?m)^--- FAIL: ([^ /]+)`)

func (k *killers) add(tests string, output []byte) {
	found := failed.FindSubmatch(output)
	if found == nil {
		return
	}
	k.lock.Lock()
	defer k.lock.Unlock()
	if k.of == nil {
		k.of = map[string][]string{}
	}
	name := string(found[1])
	names := append(slices.DeleteFunc(k.of[tests], func(other string) bool { return other == name }), name)
	k.of[tests] = names[max(0, len(names)-mostKillers):]
}
