// Mistakes: the pipelines of the repository are damaged in the ways people damage files, and the message must be at the right line and
// say what mends it. The mistakes come from a seed; DAGRUN_MISTAKES=N tries N seeds instead of one.

package tests

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/dag/file"
	"github.com/dagrun/dagrun/kernels"
)

// mistakesOfKind is how many mistakes of each kind a seed makes: 300 in all.
const mistakesOfKind = 15

// mistakeFile is a right file and what its words are.
type mistakeFile struct {
	name      string
	lines     []string
	section   []string // of each line: params, buffers or nodes
	words     map[string]bool
	buffers   map[string]bool // names up to the first dot
	variables map[string]bool // params and variables of foreach
	graph     *dag.Graph
}

var (
	anyWord       = regexp.MustCompile(`\w+`)
	sectionKey    = regexp.MustCompile(`^(\w+):`)
	declaration   = regexp.MustCompile(`^ +(\w+)[\w.$()-]*:(?: |$)`)
	foreachNames  = regexp.MustCompile(`foreach: \{(.*)`)
	foreachName   = regexp.MustCompile(`(?:^|[{,] ?)(\w+):`)
	mistakeParser = func(name string, source string) (*dag.Graph, error) {
		dir := filepath.Join("..", "pipelines")
		return file.Parse([]byte(source), file.Options{Name: name, Dir: dir, Library: kernels.Library(), ReadFile: os.ReadFile, OpenModule: kernels.ModuleOpener(dir, os.ReadFile, nil)})
	}
)

func readMistakeFile(t *testing.T, name string) *mistakeFile {
	source, err := os.ReadFile(filepath.Join("..", "pipelines", name+".yaml"))
	require.NoError(t, err)
	f := &mistakeFile{name: name + ".yaml", lines: strings.Split(string(source), "\n"), words: map[string]bool{}, buffers: map[string]bool{}, variables: map[string]bool{}}
	section := ""
	for _, line := range f.lines {
		if found := sectionKey.FindStringSubmatch(line); found != nil {
			section = found[1]
		}
		f.section = append(f.section, section)
		for _, word := range anyWord.FindAllString(line, -1) {
			f.words[word] = true
		}
		if found := foreachNames.FindStringSubmatch(withoutComment(line)); found != nil {
			for _, name := range foreachName.FindAllStringSubmatch("{"+found[1], -1) {
				f.variables[name[1]] = f.variables[name[1]] || len(name[1]) == 1
			}
		}
		if found := declaration.FindStringSubmatch(line); found != nil && section == "params" {
			f.variables[found[1]] = true
		}
	}
	f.graph, err = mistakeParser(f.name, string(source))
	require.NoError(t, err)
	for k := range f.graph.Buffers {
		base, _, _ := strings.Cut(f.graph.Buffers[k].Name, ".")
		f.buffers[base] = true
	}
	return f
}

func withoutComment(line string) string {
	if strings.HasPrefix(strings.TrimSpace(line), "#") {
		return ""
	}
	line, _, _ = strings.Cut(line, "  #")
	return line
}

// sites are where a kind of mistake can be made.
func (f *mistakeFile) sites(k *mistakeKind) []mistakeSite {
	var sites []mistakeSite
	for line := range f.lines {
		text := withoutComment(f.lines[line])
		for from := 0; from < len(text); {
			found := k.where.FindStringSubmatchIndex(text[from:])
			if found == nil {
				break
			}
			sites = append(sites, mistakeSite{f, line, from + found[2], text[from+found[2] : from+found[3]]})
			if k.where.String()[0] == '^' {
				break
			}
			from += max(found[3], 1)
		}
	}
	return sites
}

// damaged is the file with one piece replaced, and the line.
func (s *mistakeSite) damaged(by string) (source, line string) {
	line = s.file.lines[s.line]
	line = line[:s.from] + by + line[s.from+len(s.text):]
	lines := slices.Clone(s.file.lines)
	lines[s.line] = line
	return strings.Join(lines, "\n"), line
}

// rightLine judges the line of a message: see mistakeKind.
func (s *mistakeSite) rightLine(k *mistakeKind, d *dag.Diagnostic) bool {
	line := int(d.Pos.Line) - 1
	next := s.line + 1
	for next < len(s.file.lines) && strings.TrimSpace(withoutComment(s.file.lines[next])) == "" {
		next++
	}
	switch {
	case line == s.line:
		return true
	case k.structure:
		return line == next
	case k.apart:
		return regexp.MustCompile(fmt.Sprintf(`\bline (%d|%d)\b`, s.line+1, s.declaration()+1)).MatchString(d.Error())
	}
	return false
}

// declaration is the line where the buffer begins whose key is damaged: that line itself, or the one with its name above.
func (s *mistakeSite) declaration() int {
	indent := func(line int) int { return len(s.file.lines[line]) - len(strings.TrimLeft(s.file.lines[line], " ")) }
	line := s.line
	if text := strings.TrimSpace(s.file.lines[line]); strings.HasPrefix(text, "shape:") || strings.HasPrefix(text, "dtype:") {
		for indent(line) >= indent(s.line) {
			line--
		}
	}
	return line
}

// namesCure judges what a message says of the way out.
func (s *mistakeSite) namesCure(damaged, cure string, d *dag.Diagnostic) bool {
	switch cure {
	case sizeCure:
		for i := range s.file.graph.Buffers {
			b := &s.file.graph.Buffers[i]
			if b.Scratch || int(b.Pos.Line)-1 > s.line || int(b.Pos.Line) < s.line-4 {
				continue
			}
			for _, n := range append([]int64{b.Bytes, b.Bytes / b.DType.Size()}, b.Shape...) {
				if regexp.MustCompile(fmt.Sprintf(`\b%d\b`, n)).MatchString(d.Message + d.Hint) {
					return true
				}
			}
		}
		return false
	case swapCure:
		mended, ok := swapNamed(damaged, d.Error())
		if !ok {
			return false
		}
		source, _ := s.damaged(mended)
		_, err := mistakeParser(s.file.name, source)
		return err == nil
	}
	return strings.Contains(withoutBlanks(d.Message+"; "+d.Hint), withoutBlanks(cure))
}

func withoutBlanks(s string) string { return strings.ReplaceAll(s, " ", "") }

func TestMistakesAreNamedWithTheirCure(t *testing.T) {
	seeds := 1
	if text := os.Getenv("DAGRUN_MISTAKES"); text != "" {
		var err error
		seeds, err = strconv.Atoi(text)
		require.NoError(t, err, "DAGRUN_MISTAKES")
	}
	var files []*mistakeFile
	for _, name := range pipelineNames(t) {
		files = append(files, readMistakeFile(t, name))
	}
	var table, missed strings.Builder
	made, good := 0, 0
	fmt.Fprintf(&table, "%-28s %5s %6s %5s %6s %9s\n", "kind", "made", "line", "cure", "valid", "messages")
	for i := range mistakeKinds {
		k := &mistakeKinds[i]
		var sites []mistakeSite
		for _, f := range files {
			sites = append(sites, f.sites(k)...)
		}
		require.NotEmpty(t, sites, k.name)
		ofKind, lines, cures, valid, messages := 0, 0, 0, 0, 0
		for seed := range seeds {
			m := &mistakeMaker{rand.New(rand.NewPCG(uint64(seed), uint64(i)))}
			seen := map[string]bool{}
			for want, tries := ofKind+mistakesOfKind, 0; ofKind < want && tries < 2000; tries++ {
				s := &sites[m.IntN(len(sites))]
				by, cure, ok := k.damage(m, s)
				if !ok {
					continue
				}
				source, line := s.damaged(by)
				if place := fmt.Sprint(s.file.name, s.line, line); seen[place] {
					continue
				} else {
					seen[place] = true
				}
				_, err := mistakeParser(s.file.name, source)
				if err == nil {
					valid++
					continue
				}
				var wrong *file.ParseError
				require.True(t, errors.As(err, &wrong), err)
				first := &wrong.List[0]
				onLine, cured := s.rightLine(k, first), s.namesCure(by, cure, first)
				ofKind++
				messages += len(wrong.List) + wrong.More
				if onLine {
					lines++
				}
				if cured {
					cures++
				}
				if onLine && cured {
					good++
				} else {
					fmt.Fprintf(&missed, "%s, line %d, wants %s:\n    %s\n  %s\n", k.name, s.line+1, cure, strings.TrimSpace(line), first.Error())
				}
			}
		}
		made += ofKind
		fmt.Fprintf(&table, "%-28s %5d %6d %5d %6d %9d\n", k.name, ofKind, lines, cures, valid, messages)
	}
	t.Logf("%d mistakes, %d named with line and cure (%.1f of 100)\n%s\nmissed:\n%s", made, good, 100*float64(good)/float64(made), table.String(), missed.String())
	require.GreaterOrEqual(t, made, 300*seeds)
	require.GreaterOrEqual(t, 100*good, 95*made)
}
