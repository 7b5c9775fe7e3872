// A trial: what the tests say of one mutant.

package main

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// verdict is how a trial ended.
type verdict string

const (
	survived   verdict = "SURVIVED"
	killed     verdict = "killed"
	timedOut   verdict = "timed out" // counts as killed: an endless loop
	uncompiled verdict = "does not compile"
)

// tryAlone builds a mutant that cannot be in one program with others, and tries it with all tests.
func (b *bench) tryAlone(s *subject, m *mutant, all map[string][]reaches) (verdict, error) {
	g, err := b.group(s, []*mutant{m})
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(g.folder)
	g.cases = map[string][]reaches{}
	for tests, cases := range all {
		for _, one := range cases {
			g.cases[tests] = append(g.cases[tests], reaches{name: one.name, takes: one.takes})
		}
	}
	return b.try(s, g, 0)
}

// try runs the tests that reach a mutant's function until one fails: first those that killed other mutants.
func (b *bench) try(s *subject, g *group, k int) (verdict, error) {
	if !g.compiles[k] {
		return uncompiled, nil
	}
	for _, some := range s.killers.inFront(s.tests, g, k) {
		if v, err := b.trial(s, g, k, some.tests, some.cases); v != survived || err != nil {
			return v, err
		}
	}
	return survived, nil
}

func (b *bench) trial(s *subject, g *group, k int, tests string, some []reaches) (verdict, error) {
	limit := b.grace
	var names []string
	for _, one := range some {
		limit += 4 * one.takes
		names = append(names, one.name)
	}
	out, err := b.test(s, g, tests, names, limit, active+"="+strconv.Itoa(k+1))
	switch {
	case err == nil:
		return survived, nil
	case bytes.Contains(out, []byte("panic: test timed out after")):
		return timedOut, nil
	}
	s.killers.add(tests, out)
	return killed, onlyExit(err)
}

// measure runs each test alone and without a mutant. All must pass.
func (b *bench) measure(s *subject, g *group) error {
	g.cases = map[string][]reaches{}
	for _, tests := range s.tests {
		_, some, _ := strings.Cut(tests, ":")
		list, err := b.command(g.programs[tests], "-test.list", cmp.Or(some, ".")).Output()
		if err != nil {
			return fmt.Errorf("the tests of %s cannot be listed: %w", tests, err)
		}
		for _, name := range strings.Fields(string(list)) {
			if strings.HasPrefix(name, "Benchmark") {
				continue
			}
			file := filepath.Join(g.folder, "reached")
			start := time.Now()
			if out, err := b.test(s, g, tests, []string{name}, time.Hour, reached+"="+file); err != nil {
				return fmt.Errorf("the tests of %s fail without any mutant: %w\n%s", tests, err, out)
			}
			one := reaches{name: name, takes: time.Since(start).Round(time.Millisecond), first: map[string]bool{}}
			if numbers, err := os.ReadFile(file); err == nil {
				for _, number := range strings.Fields(string(numbers)) {
					one.first[number] = true
				}
				if err := os.Remove(file); err != nil {
					return err
				}
			}
			g.cases[tests] = append(g.cases[tests], one)
		}
	}
	return nil
}

// test runs some tests of a package in the package's folder.
func (b *bench) test(s *subject, g *group, tests string, names []string, limit time.Duration, environment string) ([]byte, error) {
	some := "^(" + strings.Join(names, "|") + ")$"
	arguments := []string{g.programs[tests], "-test.failfast", "-test.paniconexit0", "-test.timeout", limit.String(), "-test.run", some}
	if b.short {
		arguments = append(arguments, "-test.short")
	}
	if s.properties[tests] {
		arguments = append(arguments, "-rapid.nofailfile") // or it would leave a file in the source for each mutant that it kills
	}
	if b.memory > 0 {
		arguments = append([]string{"sh", "-c", fmt.Sprintf(`ulimit -v %d; exec "$0" "$@"`, b.memory>>10)}, arguments...)
	}
	command := b.command(arguments[0], arguments[1:]...)
	name, _, _ := strings.Cut(tests, ":")
	command.Dir = filepath.Join(b.root, filepath.FromSlash(name))
	command.Env = append(os.Environ(), environment)
	return command.CombinedOutput()
}

// batch is what one run of a test program tries.
type batch struct {
	tests string
	cases []reaches
}

// inFront returns the tests that reach a mutant's function, killers of others in front.
func (k *killers) inFront(entries []string, g *group, number int) []batch {
	k.lock.Lock()
	defer k.lock.Unlock()
	var likely, others []batch
	for _, tests := range entries {
		front, rest := batch{tests: tests}, batch{tests: tests}
		for _, one := range g.cases[tests] {
			switch {
			case !one.reaches(g, number):
			case slices.Contains(k.of[tests], one.name):
				front.cases = append(front.cases, one)
			default:
				rest.cases = append(rest.cases, one)
			}
		}
		likely, others = append(likely, front), append(others, rest)
	}
	return slices.DeleteFunc(append(likely, others...), func(b batch) bool { return len(b.cases) == 0 })
}
