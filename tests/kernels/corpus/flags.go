// The -I and -D that a file's own makefile passes. Makefiles are read, never run, so that a sweep over strangers' files runs none of their code.

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/dagrun/dagrun/kernels/launch"
)

// given are the flags of a file's makefile.
type given struct {
	include []string
	define  []launch.Definition
}

// flagsFor reads the makefile that is nearest to a file, not above the folders that are swept, and all CMakeLists.txt from there up.
func flagsFor(path string, roots []string) given {
	var g given
	folder := filepath.Dir(path)
	for made := false; ; folder = filepath.Join(folder, "..") {
		for _, name := range []string{"Makefile", "makefile", "GNUmakefile"} {
			if text, err := os.ReadFile(filepath.Join(folder, name)); err == nil && !made {
				made = true
				g.makefile(folder, string(text))
			}
		}
		if text, err := os.ReadFile(filepath.Join(folder, "CMakeLists.txt")); err == nil {
			g.cmake(folder, string(text))
		}
		absolute, err := filepath.Abs(folder)
		if err != nil || slices.Contains(roots, absolute) || filepath.Dir(absolute) == absolute {
			return g
		}
	}
}

var (
	assignment = regexp.MustCompile(`^\s*(?:export\s+)?([A-Za-z_][\w.]*)\s*(\+=|\?=|:=|::=|=)\s*(.*)$`)
	reference  = regexp.MustCompile(`\$[({]([A-Za-z_][\w.]*)[)}]`)
	compared   = regexp.MustCompile(`^(ifeq|ifneq)\s*\((.*),(.*)\)\s*$`)
	ifDefined  = regexp.MustCompile(`^(ifdef|ifndef)\s+(\S+)`)
	word       = regexp.MustCompile(`(?:"[^"]*"|'[^']*'|[^\s"'])+`)
	folderList = regexp.MustCompile(`(?is)\b(?:target_)?include_directories\s*\(([^)]*)\)`)
)

// makefile follows the variables and conditions of a makefile. Its lines may say -I and -D anywhere.
func (g *given) makefile(folder, text string) {
	variables := map[string]string{}
	expand := func(s string) string {
		for range 20 {
			next := reference.ReplaceAllStringFunc(s, func(r string) string { return variables[reference.FindStringSubmatch(r)[1]] })
			if next == s {
				break
			}
			s = next
		}
		return s
	}
	var taken []bool // of the conditions that are open
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\\\n", " ")
	var lines []string
	for _, line := range strings.Split(text, "\n") {
		plain := strings.TrimSpace(line)
		if strings.HasPrefix(plain, "#") {
			continue
		}
		if m := compared.FindStringSubmatch(plain); m != nil {
			taken = append(taken, (strings.TrimSpace(expand(m[2])) == strings.TrimSpace(expand(m[3]))) == (m[1] == "ifeq"))
			continue
		}
		if m := ifDefined.FindStringSubmatch(plain); m != nil {
			taken = append(taken, (variables[m[2]] != "") == (m[1] == "ifdef"))
			continue
		}
		switch n := len(taken); {
		case strings.HasPrefix(plain, "else") && n > 0:
			taken[n-1] = !taken[n-1]
			continue
		case strings.HasPrefix(plain, "endif") && n > 0:
			taken = taken[:n-1]
			continue
		case slices.Contains(taken, false):
			continue
		}
		if m := assignment.FindStringSubmatch(line); m != nil && !strings.HasPrefix(line, "\t") {
			switch value := m[3]; m[2] {
			case "+=":
				variables[m[1]] += " " + value
			case "?=":
				if variables[m[1]] == "" {
					variables[m[1]] = value
				}
			default:
				variables[m[1]] = strings.ReplaceAll(strings.ReplaceAll(value, "$("+m[1]+")", variables[m[1]]), "${"+m[1]+"}", variables[m[1]])
			}
			continue
		}
		lines = append(lines, line)
	}
	for _, value := range variables {
		lines = append(lines, value)
	}
	slices.Sort(lines)
	for _, line := range lines {
		g.words(folder, word.FindAllString(expand(line), -1))
	}
}

// words takes the flags out of a command line.
func (g *given) words(folder string, all []string) {
	unquoted := strings.NewReplacer(`"`, "", `'`, "", `\`, "")
	for i, w := range all {
		flag, value := w[:min(2, len(w))], unquoted.Replace(w[min(2, len(w)):])
		if flag != "-I" && flag != "-D" {
			continue
		}
		if value == "" && i+1 < len(all) {
			value = unquoted.Replace(all[i+1])
		}
		if value == "" || strings.Contains(value, "$") {
			continue
		}
		if flag == "-I" {
			g.folder(folder, value)
			continue
		}
		name, what, assigned := strings.Cut(value, "=")
		if !assigned {
			what = "1"
		}
		if !macroName.MatchString(name) || slices.ContainsFunc(g.define, func(d launch.Definition) bool { return d.Name == name }) {
			continue
		}
		g.define = append(g.define, launch.Definition{Name: name, Value: what})
	}
}

var macroName = regexp.MustCompile(`^[A-Za-z_]\w*$`)

func (g *given) folder(folder, value string) {
	if !filepath.IsAbs(value) {
		value = filepath.Join(folder, value)
	}
	if info, err := os.Stat(value); err == nil && info.IsDir() && !slices.Contains(g.include, value) {
		g.include = append(g.include, value)
	}
}

func (g *given) cmake(folder, text string) {
	for _, m := range folderList.FindAllStringSubmatch(text, -1) {
		for _, w := range strings.Fields(m[1]) {
			w = strings.NewReplacer("${CMAKE_CURRENT_SOURCE_DIR}", ".", "${CMAKE_SOURCE_DIR}", ".", "${PROJECT_SOURCE_DIR}", ".", `"`, "").Replace(w)
			if !strings.Contains(w, "$") && w != "PRIVATE" && w != "PUBLIC" {
				g.folder(folder, w)
			}
		}
	}
}
