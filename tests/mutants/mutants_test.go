// Tests of the mutation tool, on a small module whose tests are weak in known places.

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const small = `package small

import "fmt"

type point struct{ x, y int }

// within has one change of each kind.
func (p *point) within(most int, closed bool) (bool, error) {
	count := make([]int, 0, 3)
	if p.x < most && !closed {
		p.y++
		return true, nil
	}
	fmt.Println(len(count) + 1)
	return p.x == most || -p.y >= 2, nil
}
`

func TestMutantsOfASmallFile(t *testing.T) {
	mutants, err := mutantsOf("a/small.go", []byte(small))
	require.NoError(t, err)
	var names []string
	for k := range mutants {
		names = append(names, strings.TrimPrefix(mutants[k].name(), "a/small.go point.within: "))
	}
	require.Equal(t, []string{
		"its body => return",
		"make([]int, 0, 3) => make([]int, 1, 3)",
		"p.x < most && !closed => p.x < most || !closed",
		"p.x < most => p.x >= most",
		"p.x < most => p.x <= most",
		"!closed => closed",
		"p.y++ => p.y--",
		"p.y++ => nothing",
		"return true, nil => return false, nil",
		"fmt.Println(len(count) + 1) => nothing",
		"len(count) + 1 => len(count) - 1",
		"len(count) + 1 => len(count) + 2",
		"p.x == most || -p.y >= 2 => p.x == most && -p.y >= 2",
		"p.x == most => p.x != most",
		"-p.y >= 2 => -p.y < 2",
		"-p.y >= 2 => -p.y > 2",
		"-p.y => p.y",
		"-p.y >= 2 => -p.y >= 3",
	}, names)
	require.Contains(t, string(mutants[0].apply([]byte(small))), "\treturn *new(bool), *new(error); count := make")
	require.Contains(t, string(mutants[3].apply([]byte(small))), "if p.x >= most && !closed {")
	require.Equal(t, 10, mutants[3].line)
}

func TestEqualChangesOfAFunctionAreNumbered(t *testing.T) {
	mutants, err := mutantsOf("a.go", []byte("package a\nvar x, y = 1, 1\nconst steps = 4_000\nfunc f() { g(); g() }\n"))
	require.NoError(t, err)
	var names []string
	for k := range mutants {
		names = append(names, mutants[k].name())
	}
	require.Equal(t, []string{
		"a.go x: x, y = 1, 1 => x, y = 2, 1", "a.go x: x, y = 1, 1 => x, y = 1, 2", "a.go steps: steps = 4_000 => steps = 2000",
		"a.go f: its body => return", "a.go f: g() => nothing", "a.go f: g() => nothing (2)",
	}, names)
}

// module writes a module with a package that its own tests and those of another one test.
func module(t *testing.T, equivalent string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":              "module example\n\ngo 1.26\n",
		"sum/sum.go":          "package sum\n\nfunc Below(x, y int) bool { return x < y }\n\nfunc Twice(n int) int { return n + n }\n",
		"sum/sum_test.go":     "package sum\n\nimport \"testing\"\n\nfunc TestBelow(t *testing.T) {\n\tif !Below(1, 2) || Below(2, 1) {\n\t\tt.Fail()\n\t}\n}\n",
		"other/other.go":      "package other\n",
		"other/other_test.go": "package other\n\nimport (\n\t\"testing\"\n\n\t\"example/sum\"\n)\n\nfunc TestTwice(t *testing.T) {\n\tif sum.Twice(3) != 6 {\n\t\tt.Fail()\n\t}\n}\n",
		"equivalent.txt":      equivalent,
	} {
		file := filepath.Join(root, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o777))
		require.NoError(t, os.WriteFile(file, []byte(text), 0o666))
	}
	return root
}

// The mutants of this module's functions are built into one program, and only that of the name tried is active in it: a mutant too many would
// be killed by a test that does not reach it.
func TestFunctionsOfEveryFormAreCopied(t *testing.T) {
	root := module(t, "")
	for name, text := range map[string]string{
		"sum/sum.go": `package sum

type Pair[T any] struct{ left, right T }

func (p *Pair[T]) Count(_ string, more ...int) (count int) {
outer:
	for range 9 {
		for range more {
			count++
			if count == 2 && len(more) == 2 {
				break outer
			}
		}
	}
	return count
}

func First[T, U any](some T, _ int, _ *U) T { return some }

func (Pair[T]) Two() int { return 2 }

func Nothing(int, ...string) { called = true }

var called = false

const three = 2 + 1
`,
		"sum/sum_test.go": `package sum

import "testing"

func TestCount(t *testing.T) {
	if (&Pair[int]{}).Count("", 1) != 9 || (&Pair[int]{}).Count("", 1, 2) != 2 {
		t.Fail()
	}
}

func TestFirst(t *testing.T) {
	if First("x", 1, t) != "x" {
		t.Fail()
	}
}

func TestTwo(t *testing.T) {
	if (Pair[int]{}).Two() != 2 || three != 3 {
		t.Fail()
	}
}

func TestNothing(t *testing.T) {
	if called {
		t.Fail()
	}
	Nothing(1)
	if !called {
		t.Fail()
	}
}
`,
	} {
		require.NoError(t, os.WriteFile(filepath.Join(root, filepath.FromSlash(name)), []byte(text), 0o666))
	}
	var out bytes.Buffer
	require.NoError(t, run(&out, root, settings{seed: 1, parallel: 2, grace: time.Minute, equivalent: "equivalent.txt"}, []string{"sum"}))
	text := out.String()
	for _, name := range []string{
		"Pair[T].Count: its body => return", "Pair[T].Count: 9 => 10", "Pair[T].Count: count == 2 => count != 2", "First: its body => return",
		"Pair[T].Two: return 2 => return 3", "Nothing: its body => return", "Nothing: called = true => nothing", "called: called = false => called = true",
		"three: 2 + 1 => 2 - 1",
	} {
		require.Contains(t, text, "  killed     sum/sum.go:"+lineOf(t, text, name)+" "+name+"\n")
	}
}

func lineOf(t *testing.T, text, name string) string {
	t.Helper()
	before, _, found := strings.Cut(text, " "+name+"\n")
	require.True(t, found, "%s is not among\n%s", name, text)
	return before[strings.LastIndex(before, ":")+1:]
}

func TestKillRateAndSurvivors(t *testing.T) {
	root := module(t, "# none would notice\nsum/sum.go Below: its body => return\n    for the sake of this test\n    alone\n")
	var out bytes.Buffer
	err := run(&out, root, settings{seed: 1, parallel: 2, least: 90, grace: time.Minute, equivalent: "equivalent.txt"}, []string{"sum=other:Tw.ce"})
	require.ErrorIs(t, err, errTooFew)
	require.EqualError(t, err, "too few mutants were killed: 75.0% in sum; at least 90% must be")
	text := out.String()
	require.Contains(t, text, "sum: 5 mutants, seed 1\n")
	require.Contains(t, text, "  killed     sum/sum.go:3 Below: x < y => x >= y\n")
	require.Contains(t, text, "  killed     sum/sum.go:5 Twice: n + n => n - n\n")
	require.Contains(t, text, "  equivalent sum/sum.go:3 Below: its body => return\n")
	_, table, _ := strings.Cut(text, "\n\n")
	require.Equal(t, `seed 1                            tried killed     rate time limit equivalent
sum                                   4      3    75.0%          0          1

sum/sum.go:3: survived
  sum/sum.go Below: x < y => x <= y
`, table)
}

// Whichever of its mutants is drawn, the test's loop does not end.
func TestEndlessLoopsCountAsKilled(t *testing.T) {
	root := module(t, "")
	require.NoError(t, os.WriteFile(filepath.Join(root, "sum", "sum.go"), []byte("package sum\n\nfunc Step(n *int) { *n++ }\n"), 0o666))
	require.NoError(t, os.WriteFile(filepath.Join(root, "sum", "sum_test.go"), []byte("package sum\n\nimport \"testing\"\n\nfunc TestStep(t *testing.T) {\n\tfor n := 0; n < 3; {\n\t\tStep(&n)\n\t}\n}\n"), 0o666))
	var out bytes.Buffer
	require.NoError(t, run(&out, root, settings{seed: 1, count: 1, parallel: 1, least: 100, grace: time.Second, equivalent: "equivalent.txt"}, []string{"sum"}))
	require.Contains(t, out.String(), "sum                                   1      1   100.0%          1          0\n")
}

// A test may need a constant's value to be compiled, such as in the length of an array.
func TestMutantsThatTestsAreNotBuiltWithDoNotCount(t *testing.T) {
	root := module(t, "")
	for name, text := range map[string]string{
		"sum/sum.go":          "package sum\n\nconst Most = 3\n\nvar Step = 1\n",
		"sum/sum_test.go":     "package sum\n\nimport \"testing\"\n\nfunc TestStep(t *testing.T) {\n\tif Step != 1 {\n\t\tt.Fail()\n\t}\n}\n",
		"other/other_test.go": "package other\n\nimport \"example/sum\"\n\nvar _ [3]int = [sum.Most]int{}\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(root, filepath.FromSlash(name)), []byte(text), 0o666))
	}
	s := settings{seed: 1, parallel: 1, least: 100, grace: time.Minute, equivalent: "equivalent.txt"}
	var out bytes.Buffer
	require.NoError(t, run(&out, root, s, []string{"sum=other"}))
	require.Contains(t, out.String(), "  killed     sum/sum.go:5 Step: Step = 1 => Step = 2\n")
	require.NotContains(t, out.String(), "Most")
	require.NoError(t, os.WriteFile(filepath.Join(root, "other", "other_test.go"), []byte("package other\n\nvar _ [3]int = [4]int{}\n"), 0o666))
	require.ErrorContains(t, run(&out, root, s, []string{"sum=other"}), "the tests of other cannot be built: exit status 1\n")
}

// A mutant that takes memory without end must not take it from others.
func TestMemoryOfTestsIsLimited(t *testing.T) {
	s := settings{seed: 1, count: 1, parallel: 1, grace: time.Minute, memory: 1 << 20, equivalent: "equivalent.txt"}
	require.ErrorContains(t, run(&bytes.Buffer{}, module(t, ""), s, []string{"sum"}), "the tests of sum fail without any mutant")
	s.memory = 16 << 30
	require.NoError(t, run(&bytes.Buffer{}, module(t, ""), s, []string{"sum"}))
}

func TestOneSeedDrawsTheSame(t *testing.T) {
	root := module(t, "")
	draw := func(seed uint64) string {
		var out bytes.Buffer
		require.NoError(t, run(&out, root, settings{seed: seed, count: 2, parallel: 1, grace: time.Minute, equivalent: "equivalent.txt"}, []string{"sum=other"}))
		return out.String()
	}
	require.Equal(t, draw(3), draw(3))
}

func TestNamesAreListed(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, run(&out, module(t, ""), settings{list: true, equivalent: "equivalent.txt"}, []string{"sum"}))
	require.Equal(t, `sum/sum.go Below: its body => return
sum/sum.go Below: x < y => x >= y
sum/sum.go Below: x < y => x <= y
sum/sum.go Twice: its body => return
sum/sum.go Twice: n + n => n - n
`, out.String())
	out.Reset()
	require.NoError(t, run(&out, module(t, ""), settings{list: true, match: "Tw.*-", equivalent: "equivalent.txt"}, []string{"sum"}))
	require.Equal(t, "sum/sum.go Twice: n + n => n - n\n", out.String())
	require.ErrorContains(t, run(&out, module(t, ""), settings{match: "(", equivalent: "equivalent.txt"}, []string{"sum"}), "-match: error parsing regexp")
}

func TestMistakesOfUseAreTold(t *testing.T) {
	for equivalent, want := range map[string]string{
		"sum/sum.go Below: x < z => x <= z\n  gone\n": "there is no such mutant any more: sum/sum.go Below: x < z => x <= z; remove it from the list of equivalent mutants, or name the one that it has become",
		"sum/sum.go Below: x < y => x <= y\n":         "equivalent.txt: no reason is given for sum/sum.go Below: x < y => x <= y",
		"a\n  b\na\n  c\n":                            "equivalent.txt:3: this mutant is named twice: a",
		"  b\n":                                       "equivalent.txt:1: a reason without a mutant before it",
	} {
		err := run(&bytes.Buffer{}, module(t, equivalent), settings{equivalent: "equivalent.txt"}, []string{"sum"})
		require.ErrorContains(t, err, want)
	}
	root := module(t, "")
	s := settings{seed: 1, count: 1, parallel: 1, equivalent: "equivalent.txt"}
	require.EqualError(t, run(&bytes.Buffer{}, root, s, nil), "no package is named; see -help")
	require.NoError(t, os.Remove(filepath.Join(root, "sum", "sum_test.go")))
	require.EqualError(t, run(&bytes.Buffer{}, root, s, []string{"sum"}), "sum has no tests of its own: name packages that test it, as sum=PACKAGE")
	require.NoError(t, os.WriteFile(filepath.Join(root, "other", "wrong_test.go"), []byte("package other\n\nimport \"testing\"\n\nfunc TestWrong(t *testing.T) { t.Fail() }\n"), 0o666))
	require.ErrorContains(t, run(&bytes.Buffer{}, root, s, []string{"sum=other"}), "the tests of other fail without any mutant: exit status 1\n--- FAIL: TestWrong")
}

// Property tests leave a file with the case that failed, in the folder of their package, unless they are told not to.
func TestPropertyTestsAreKnown(t *testing.T) {
	b := &bench{root: "../.."}
	for name, want := range map[string]bool{"planner/proof": true, "tests/mutants": false} {
		properties, err := b.drawsProperties(name)
		require.NoError(t, err)
		require.Equal(t, want, properties, name)
	}
}

// The names of the list are those of mutants that exist: code that changes takes its reasons with it.
func TestNamedEquivalentMutantsExist(t *testing.T) {
	reasons, err := readEquivalent("equivalent.txt")
	require.NoError(t, err)
	require.NoError(t, checkEquivalent("../..", reasons))
}
