//go:build linux

// Command cases tries dagrun from outside with random cases, each a process of its own, and compares what it does with a reference that shares no
// code with it.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

const usage = `Usage: go run ./tests/cases [FLAG ...]

Draws cases of five kinds in turn and runs dagrun with each:

  pipelines   random pipelines in random modes: the results are those of a reference, to the bit
  schedules   schedules of the user's own, right and wrong: check lists exactly the pairs that nothing orders
  plans       plans with something changed: what is accepted is in order, and computes what the reference does
  recordings  recordings of random programs, and damaged ones: the verdict is that of the reference
  hostile     files of all kinds, damaged or made to mislead: nothing outside is written or quoted

In every case dagrun must end in time, within its memory, and with an exit status that its help lists.

Exit status 1: something was found. Each finding is printed with the command that makes it again.

Flags:
`

// kinds are the kinds of cases, in the order in which they take turns.
var kinds = []struct {
	name string
	try  func(t *trial)
}{
	{"pipelines", (*trial).pipelines},
	{"schedules", (*trial).schedules},
	{"plans", (*trial).plans},
	{"recordings", (*trial).recordings},
	{"hostile", (*trial).hostile},
}

// settings are what the flags say.
type settings struct {
	seed     uint64
	count    int
	only     int
	kind     string
	parallel int
	dagrun   string
	keep     string
}

var errFound = errors.New("something was found")

func main() {
	var s settings
	flag.Uint64Var(&s.seed, "seed", 1, "draw with this `seed`")
	flag.IntVar(&s.count, "count", 1000, "try this `many` cases")
	flag.IntVar(&s.only, "only", -1, "try this `case` only, and keep its files")
	flag.StringVar(&s.kind, "kind", "", "try cases of this `kind` only")
	flag.IntVar(&s.parallel, "parallel", 2, "try this `many` cases at once")
	flag.StringVar(&s.dagrun, "dagrun", "", "the `command`; it is built if this is left out")
	flag.StringVar(&s.keep, "keep", "", "keep the files of cases with findings in this `folder` (default: a new one)")
	flag.Usage = func() {
		fmt.Fprint(flag.CommandLine.Output(), usage)
		flag.PrintDefaults()
	}
	flag.Parse()
	if err := run(os.Stdout, s); err != nil {
		fmt.Fprintln(os.Stderr, "cases:", err)
		os.Exit(1)
	}
}

// tally is what came out of the cases of a kind.
type tally struct {
	cases, runs, findings int
	counts                map[string]int
}

func run(w io.Writer, s settings) error {
	work, err := os.MkdirTemp("", "cases")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	if s.dagrun == "" {
		s.dagrun = filepath.Join(work, "dagrun")
		if out, err := exec.Command("go", "build", "-o", s.dagrun, "github.com/dagrun/dagrun/cmd/dagrun").CombinedOutput(); err != nil {
			return fmt.Errorf("%w\n%s", err, out)
		}
	}
	if s.dagrun, err = filepath.Abs(s.dagrun); err != nil {
		return err
	}
	if s.keep == "" {
		s.keep = filepath.Join(os.TempDir(), fmt.Sprintf("cases-%d", s.seed))
	}
	tallies := make([]tally, len(kinds))
	var mu sync.Mutex
	var all sync.WaitGroup
	numbers := make(chan int)
	for range s.parallel {
		all.Go(func() {
			for number := range numbers {
				t, kind := tryCase(s, work, number)
				mu.Lock()
				tallies[kind].add(t)
				report(w, s, t, number, kind)
				mu.Unlock()
			}
		})
	}
	for number := range s.count {
		wanted := s.kind == "" || kinds[number%len(kinds)].name == s.kind
		if wanted && (s.only < 0 || s.only == number) {
			numbers <- number
		}
	}
	if s.only >= s.count {
		numbers <- s.only
	}
	close(numbers)
	all.Wait()
	findings := 0
	fmt.Fprintf(w, "seed %d\n", s.seed)
	for i := range tallies {
		if c := &tallies[i]; c.cases > 0 {
			fmt.Fprintf(w, "%-10s %6d cases, %6d runs, %d findings:%s\n", kinds[i].name, c.cases, c.runs, c.findings, c)
			findings += c.findings
		}
	}
	if findings > 0 {
		return errFound
	}
	return nil
}

// tryCase tries one case in a folder of its own, which is removed if nothing was found.
func tryCase(s settings, work string, number int) (*trial, int) {
	kind := number % len(kinds)
	t := &trial{Rand: rand.New(rand.NewPCG(s.seed, uint64(number))), dagrun: s.dagrun, folder: filepath.Join(work, fmt.Sprint(number), "case"),
		counts: map[string]int{}}
	t.must(os.MkdirAll(t.folder, 0o700))
	kinds[kind].try(t)
	if len(t.found) > 0 || s.only >= 0 {
		t.must(os.MkdirAll(s.keep, 0o700))
		kept := filepath.Join(s.keep, fmt.Sprint(number))
		t.must(os.RemoveAll(kept))
		t.must(os.Rename(filepath.Dir(t.folder), kept))
	}
	t.must(os.RemoveAll(filepath.Dir(t.folder)))
	return t, kind
}

func report(w io.Writer, s settings, t *trial, number, kind int) {
	if s.only >= 0 {
		fmt.Fprintf(w, "%s\nfiles in %s\n", strings.Join(t.runs, "\n"), filepath.Join(s.keep, fmt.Sprint(number)))
	}
	for _, text := range t.found {
		fmt.Fprintf(w, "case %d (%s): %s: %s\nagain: go run ./tests/cases -seed %d -only %d\n\n", number, kinds[kind].name, t.runs[len(t.runs)-1], text,
			s.seed, number)
	}
}

func (c *tally) add(t *trial) {
	c.cases++
	c.runs += len(t.runs)
	c.findings += len(t.found)
	if c.counts == nil {
		c.counts = map[string]int{}
	}
	for what, n := range t.counts {
		c.counts[what] += n
	}
}

func (c *tally) String() string {
	text := ""
	for _, what := range slices.Sorted(maps.Keys(c.counts)) {
		text += fmt.Sprintf(" %d %s,", c.counts[what], what)
	}
	return strings.TrimSuffix(text, ",")
}
