// Command mutants measures tests: it changes one place of a package's code at a time, and counts how many of these mutants the tests kill.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"time"
)

const usage = `Usage: go run ./tests/mutants [FLAG ...] PACKAGE[=TESTS[:REGEXP],...] ...

Draws mutants of each PACKAGE, a folder below the module's, and runs its tests and those of the packages TESTS (whose names match REGEXP) that
call the changed function, until one fails: first tests that killed other mutants. A mutant has one change:

  && and || swapped             a comparison turned around, or off by one
  + and - swapped               ! or - removed
  a constant replaced           a statement left out
  a function that returns zero values at once

Mutants that do not compile are drawn again. Those whose tests run into the time limit count as killed. Equivalent mutants are named in a list, with reasons, and not counted. The source is not changed.

Exit status 1: fewer mutants than -least were killed in a package.

Flags:
`

// settings are what the flags say.
type settings struct {
	seed       uint64
	count      int
	parallel   int
	least      float64
	short      bool
	grace      time.Duration
	memory     int64
	equivalent string
	match      string
	list       bool
}

var errTooFew = errors.New("too few mutants were killed")

func main() {
	var s settings
	flag.Uint64Var(&s.seed, "seed", 1, "draw with this `seed`")
	flag.IntVar(&s.count, "count", 40, "draw this `many` mutants of each package; 0 for all")
	flag.IntVar(&s.parallel, "parallel", 1, "run the tests of this `many` mutants at once")
	flag.Float64Var(&s.least, "least", 0, "fail if less than this `percentage` is killed in a package")
	flag.BoolVar(&s.short, "short", false, "run tests with -short")
	flag.DurationVar(&s.grace, "grace", 20*time.Second, "let tests take this `time` and four times what they take without a change")
	flag.Int64Var(&s.memory, "memory", 16<<30, "let a test map this many `bytes`; 0 for no limit")
	flag.StringVar(&s.equivalent, "equivalent", "tests/mutants/equivalent.txt", "the `list` of equivalent mutants, below the module's folder")
	flag.StringVar(&s.match, "match", "", "draw only mutants whose names match this `regexp`: files, functions and the code before and after")
	flag.BoolVar(&s.list, "list", false, "print the names of all mutants, and run nothing")
	flag.Usage = func() {
		fmt.Fprint(flag.CommandLine.Output(), usage)
		flag.PrintDefaults()
	}
	flag.Parse()
	root, err := moduleRoot()
	if err == nil {
		err = run(os.Stdout, root, s, flag.Args())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func moduleRoot() (string, error) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return "", fmt.Errorf("no module here: %w", err)
	}
	return string(out[:len(out)-1]), nil
}

// run measures packages one after the other, and prints a table and the survivors at the end.
func run(w io.Writer, root string, s settings, arguments []string) error {
	if len(arguments) == 0 {
		return errors.New("no package is named; see -help")
	}
	reasons, err := readEquivalent(filepath.Join(root, s.equivalent))
	if err != nil {
		return err
	}
	if err := checkEquivalent(root, reasons); err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	b := &bench{root: root, work: work, short: s.short, grace: s.grace, memory: s.memory}
	var all []tally
	for _, argument := range arguments {
		counted, err := measurePackage(w, b, s, argument, reasons)
		if err != nil {
			return err
		}
		all = append(all, counted)
	}
	if s.list {
		return nil
	}
	return report(w, s, all)
}

// tally is what came out for a package.
type tally struct {
	name                     string
	most                     int // 0 is all
	tried, killed, timeLimit int
	equivalent               int
	survivors                []mutant
}

func (t *tally) missing() int {
	if t.most == 0 {
		return mostTogether
	}
	return t.most - t.tried - t.equivalent
}

func (t *tally) rate() float64 { return 100 * float64(t.killed) / float64(max(t.tried, 1)) }

func measurePackage(w io.Writer, b *bench, s settings, argument string, reasons map[string]string) (tally, error) {
	of, err := b.list(argument)
	if err != nil {
		return tally{}, err
	}
	matching, err := regexp.Compile(s.match)
	if err != nil {
		return tally{}, fmt.Errorf("-match: %w", err)
	}
	var mutants []mutant
	for _, file := range of.files {
		more, err := readMutants(b.root, file)
		if err != nil {
			return tally{}, err
		}
		mutants = append(mutants, slices.DeleteFunc(more, func(m mutant) bool { return !matching.MatchString(m.name()) })...)
	}
	if s.list {
		for k := range mutants {
			fmt.Fprintln(w, mutants[k].name())
		}
		return tally{}, nil
	}
	fmt.Fprintf(w, "%s: %d mutants, seed %d\n", of.name, len(mutants), s.seed)
	rng := rand.New(rand.NewPCG(s.seed, 0))
	rng.Shuffle(len(mutants), func(i, j int) { mutants[i], mutants[j] = mutants[j], mutants[i] })
	return tryAll(w, b, s, of, mutants, reasons)
}

// mostTogether bounds how many mutants are in one test program.
const mostTogether = 200

// tryAll tries mutants in the order drawn, until enough of them have compiled.
func tryAll(w io.Writer, b *bench, s settings, of *subject, mutants []mutant, reasons map[string]string) (tally, error) {
	t := tally{name: of.name, most: s.count}
	for at := 0; at < len(mutants) && t.missing() > 0; {
		few := min(len(mutants)-at, t.missing()+t.missing()/4, mostTogether) // some do not compile
		if err := t.tryGroup(w, b, s, of, mutants[at:at+few], reasons); err != nil {
			return t, err
		}
		at += few
	}
	slices.SortFunc(t.survivors, func(a, b mutant) int {
		if a.file != b.file {
			return slices.Compare([]string{a.file}, []string{b.file})
		}
		return a.start - b.start
	})
	return t, nil
}

// tryGroup tries mutants, several at a time. Most of them are built together, the others when their turn comes.
func (t *tally) tryGroup(w io.Writer, b *bench, s settings, of *subject, drawn []mutant, reasons map[string]string) error {
	var shared []*mutant
	place := map[*mutant]int{}
	for k := range drawn {
		if m := &drawn[k]; reasons[m.name()] == "" && m.together() {
			place[m] = len(shared)
			shared = append(shared, m)
		}
	}
	together, err := b.group(of, shared)
	if err != nil {
		return err
	}
	defer os.RemoveAll(together.folder)
	if err := b.measure(of, together); err != nil {
		return err
	}
	for len(drawn) > 0 && t.missing() > 0 {
		few := min(s.parallel, len(drawn), t.missing())
		verdicts, failures := make([]verdict, few), make([]error, few)
		var all sync.WaitGroup
		for k := range few {
			m := &drawn[k]
			switch n, ok := place[m]; {
			case ok:
				all.Go(func() { verdicts[k], failures[k] = b.try(of, together, n) })
			case reasons[m.name()] == "":
				all.Go(func() { verdicts[k], failures[k] = b.tryAlone(of, m, together.cases) })
			}
		}
		all.Wait()
		for k := range few {
			if failures[k] != nil {
				return failures[k]
			}
			t.count(w, &drawn[k], verdicts[k])
		}
		drawn = drawn[few:]
	}
	return nil
}

// count adds a verdict; none stands for an equivalent mutant.
func (t *tally) count(w io.Writer, m *mutant, v verdict) {
	switch v {
	case uncompiled:
		return
	case "":
		t.equivalent++
		fmt.Fprintf(w, "  %-10s %s:%d %s: %s => %s\n", "equivalent", m.file, m.line, m.function, m.before, m.after)
		return
	case survived:
		t.survivors = append(t.survivors, *m)
	case timedOut:
		t.timeLimit++
		t.killed++
	case killed:
		t.killed++
	}
	t.tried++
	fmt.Fprintf(w, "  %-10s %s:%d %s: %s => %s\n", v, m.file, m.line, m.function, m.before, m.after)
}

func report(w io.Writer, s settings, all []tally) error {
	fmt.Fprintf(w, "\n%-32s %6s %6s %8s %10s %10s\n", fmt.Sprintf("seed %d", s.seed), "tried", "killed", "rate", "time limit", "equivalent")
	var wrong error
	for k := range all {
		t := &all[k]
		fmt.Fprintf(w, "%-32s %6d %6d %7.1f%% %10d %10d\n", t.name, t.tried, t.killed, t.rate(), t.timeLimit, t.equivalent)
		if t.rate() < s.least {
			wrong = errors.Join(wrong, fmt.Errorf("%w: %.1f%% in %s; at least %g%% must be", errTooFew, t.rate(), t.name, s.least))
		}
	}
	for k := range all {
		for _, m := range all[k].survivors {
			fmt.Fprintf(w, "\n%s:%d: survived\n  %s\n", m.file, m.line, m.name())
		}
	}
	return wrong
}
