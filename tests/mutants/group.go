// A group of mutants is built at once, because building takes longer than most trials. Each function that has mutants gets a copy for each of
// them, and begins by calling the copy that the environment names. The source is never changed: the go command is given an overlay.

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Environment variables of test programs: the number of the mutant to run, from 1, and, without one, a file for what is reached: the number
// of the first mutant of each function that is called.
const (
	active  = "ACTIVE_MUTANT"
	reached = "REACHED_MUTANTS"
)

const chooser = `package %s

import (
	"fmt"
	"os"
	"strconv"
	"sync"
)

var activeMutant, _ = strconv.Atoi(os.Getenv("` + active + `"))

var reachedMutants sync.Map

func reachMutant(number int) {
	if _, before := reachedMutants.LoadOrStore(number, true); before {
		return
	}
	if file, err := os.OpenFile(os.Getenv("` + reached + `"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666); err == nil {
		fmt.Fprintln(file, number)
		file.Close()
	}
}
`

// group is test programs with some mutants.
type group struct {
	folder   string
	mutants  []*mutant
	compiles []bool
	programs map[string]string    // by entry of the subject's tests
	cases    map[string][]reaches // likewise; none if all tests are to be tried
}

// together reports whether a mutant can be in one program with others.
func (m *mutant) together() bool { return m.within != nil && m.within.call != "" }

// copied returns a file's source with a copy of a function for each mutant whose number is given. Errors in a copy are told at the mutant's
// number, where a file's name is expected.
func copied(source []byte, mutants []*mutant, numbers []int) []byte {
	calls := map[int]string{}
	var copies strings.Builder
	for _, k := range numbers {
		m := mutants[k]
		if calls[m.within.body] == "" {
			calls[m.within.body] = fmt.Sprintf(" if activeMutant == 0 { reachMutant(%d) };", first(mutants, m))
		}
		suffix := fmt.Sprintf("Mutant%d", k+1)
		calls[m.within.body] += fmt.Sprintf(" if activeMutant == %d { "+m.within.call+" };", k+1, suffix)
		changed := m.apply(source)
		end := m.within.end + len(changed) - len(source)
		fmt.Fprintf(&copies, "\n//line mutant%d:1\n%s%s%s\n", k+1, changed[m.within.start:m.within.name], suffix, changed[m.within.name:end])
	}
	var text []byte
	for at := range source {
		text = append(append(text, calls[at]...), source[at])
	}
	return append(text, copies.String()...)
}

// group builds the test programs of some mutants: of any number that can be together, or of one.
func (b *bench) group(s *subject, mutants []*mutant) (*group, error) {
	folder, err := os.MkdirTemp(b.work, "group")
	if err != nil {
		return nil, err
	}
	g := &group{folder: folder, mutants: mutants, compiles: make([]bool, len(mutants)), programs: map[string]string{}}
	for k := range mutants {
		g.compiles[k] = true
	}
	for {
		overlay, err := b.overlay(g, s)
		if err != nil {
			return nil, err
		}
		wrong, err := b.compile(g, s, overlay)
		if err != nil {
			return nil, err
		}
		if len(wrong) == 0 {
			if wrong, err = b.link(g, s, overlay); len(wrong) == 0 {
				return g, err
			}
		}
		for _, k := range wrong {
			g.compiles[k] = false
		}
		if g.alone() {
			return g, nil
		}
	}
}

// alone reports whether the group is one mutant that cannot be together with others.
func (g *group) alone() bool { return len(g.mutants) == 1 && !g.mutants[0].together() }

var numbered = regexp.MustCompile(`(?m)\bmutant(\d+):\d+:`)

// compile returns the numbers of mutants that do not compile.
func (b *bench) compile(g *group, s *subject, overlay string) ([]int, error) {
	out, err := b.command("go", "build", "-gcflags=-e", "-overlay", overlay, "./"+s.name).CombinedOutput()
	if err == nil {
		return nil, nil
	}
	if err := onlyExit(err); err != nil {
		return nil, err
	}
	if g.alone() {
		return []int{0}, nil
	}
	var wrong []int
	for _, found := range numbered.FindAllSubmatch(out, -1) {
		var number int
		fmt.Sscan(string(found[1]), &number)
		wrong = append(wrong, number-1)
	}
	if len(wrong) == 0 {
		return nil, fmt.Errorf("%s does not compile with mutants, and none of them is named:\n%s", s.name, out)
	}
	return wrong, nil
}

// link builds the tests, and returns the number of a mutant that they cannot be built with. A copy of a function changes no declaration, so only a
// mutant alone can be one.
func (b *bench) link(g *group, s *subject, overlay string) ([]int, error) {
	for k, tests := range s.tests {
		name, _, _ := strings.Cut(tests, ":")
		program := filepath.Join(g.folder, fmt.Sprintf("tests%d", k))
		if out, err := b.command("go", "test", "-c", "-vet=off", "-ldflags=-s -w", "-overlay", overlay, "-o", program, "./"+name).CombinedOutput(); err != nil {
			if g.alone() && onlyExit(err) == nil {
				return []int{0}, nil
			}
			return nil, fmt.Errorf("the tests of %s cannot be built: %w\n%s", name, err, out)
		}
		g.programs[tests] = program
	}
	return nil, nil
}

// overlay writes the changed files, and the list that puts them in the place of the originals.
func (b *bench) overlay(g *group, s *subject) (string, error) {
	numbers := map[string][]int{}
	for k, m := range g.mutants {
		if g.compiles[k] {
			numbers[m.file] = append(numbers[m.file], k)
		}
	}
	replace := map[string]string{}
	write := func(original, text string) error {
		changed := filepath.Join(g.folder, fmt.Sprintf("file%d.go", len(replace)))
		replace[filepath.Join(b.root, filepath.FromSlash(original))] = changed
		return os.WriteFile(changed, []byte(text), 0o666)
	}
	for file, some := range numbers {
		source, err := os.ReadFile(filepath.Join(b.root, filepath.FromSlash(file)))
		if err != nil {
			return "", err
		}
		if m := g.mutants[some[0]]; !m.together() {
			source = m.apply(source)
		} else {
			source = copied(source, g.mutants, some)
		}
		if err := write(file, string(source)); err != nil {
			return "", err
		}
	}
	if err := write(s.name+"/active_mutant.go", fmt.Sprintf(chooser, s.packageName)); err != nil {
		return "", err
	}
	list, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	file := filepath.Join(g.folder, "overlay.json")
	return file, os.WriteFile(file, list, 0o666)
}

// first returns the number of the first mutant of a mutant's function.
func first(mutants []*mutant, m *mutant) int {
	return 1 + slices.IndexFunc(mutants, func(other *mutant) bool { return other.within == m.within })
}

func (r *reaches) reaches(g *group, k int) bool {
	return r.first == nil || r.first[strconv.Itoa(first(g.mutants, g.mutants[k]))]
}
