// Kinds of mistakes that people make in pipeline files: where each can be made, what it makes of the text, and what mends it.

package tests

import (
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// mistakeKind is one way to damage a line.
type mistakeKind struct {
	name string
	// where finds what is damaged: the first group of the pattern.
	where *regexp.Regexp
	// damage returns what stands there afterwards and the word that the message must hold, or false if the mistake cannot be made there.
	damage func(m *mistakeMaker, s *mistakeSite) (damaged, cure string, ok bool)
	// structure says that the damage is to YAML itself: often the line still reads well then, and only the next one cannot follow it. A
	// message at the beginning of either is at the right line.
	structure bool
	// apart says that the line contradicts another one, and nothing tells which is wrong. A message at the other line is right if it
	// names the number of the damaged one, or of the line with the name of its buffer.
	apart bool
}

// mistakeSite is a piece of a line that can be damaged.
type mistakeSite struct {
	file *mistakeFile
	line int // from 0
	from int // in bytes
	text string
}

// mistakeMaker draws mistakes from a seed.
type mistakeMaker struct{ *rand.Rand }

func (m *mistakeMaker) one(of ...string) string { return of[m.IntN(len(of))] }

// misspell leaves a letter out, doubles one, swaps two or takes the next one of the alphabet. The result is no other word of the file.
func (m *mistakeMaker) misspell(word string, f *mistakeFile) (string, bool) {
	for range 20 {
		k := m.IntN(len(word))
		wrong := word[:k+1] + word[k:]
		switch way := m.IntN(4); {
		case len(word) < 3: // in a shorter one another letter makes another word
		case way == 0:
			wrong = word[:k] + word[k+1:]
		case way == 1 && k > 0:
			wrong = word[:k-1] + word[k:k+1] + word[k-1:k] + word[k+1:]
		case way == 2 && word[k] >= 'a' && word[k] < 'z':
			wrong = word[:k] + string(word[k]+1) + word[k+1:]
		}
		if wrong != word && !f.words[wrong] && (wrong[0] == '_' || wrong[0] >= 'A') {
			return wrong, true
		}
	}
	return "", false
}

// misspelt damages a word if it is one of those wanted; the right word mends it.
func misspelt(wanted func(s *mistakeSite) bool) func(*mistakeMaker, *mistakeSite) (string, string, bool) {
	return func(m *mistakeMaker, s *mistakeSite) (string, string, bool) {
		if wanted != nil && !wanted(s) {
			return "", "", false
		}
		wrong, ok := m.misspell(s.text, s.file)
		return wrong, `did you mean "` + s.text, ok
	}
}

// without damages by leaving the text out.
func without(cure string) func(*mistakeMaker, *mistakeSite) (string, string, bool) {
	return func(*mistakeMaker, *mistakeSite) (string, string, bool) { return "", cure, true }
}

const sliceText = `\((?:[^()]|\([^()]*\))*(?:\.\.| of )(?:[^()]|\([^()]*\))*\)`

// otherTypes are what other languages call a type.
var otherTypes = map[string][]string{"f32": {"float", "float32", "fp32", "F32"}, "f64": {"double", "float64", "fp64"}, "i32": {"int", "int32"}, "i64": {"int64", "long"}, "u8": {"uint8", "byte"}, "f16": {"half"}}

var mistakeKinds = []mistakeKind{
	{name: "misspelt key", where: regexp.MustCompile(`(?:^|[\s{,])(version|params|modules|buffers|nodes|place|dtype|shape|init|expect|foreach|name|memcpy|memset|kernel|map|with|args|after|when|grid|block|from|to|value|expr|ramp|uniform|rtol|atol|step|stream|priority):(?:\s|$)`),
		damage: misspelt(func(s *mistakeSite) bool {
			named := s.file.buffers[s.text] || strings.HasPrefix(s.file.lines[s.line][s.from+len(s.text):], ": [") // of the user's own
			return !named || s.text == "shape" || s.text == "args" || s.text == "after"
		})},
	{name: "misspelt kernel", where: regexp.MustCompile(`kernel: (\w+)[,}\n]?`), damage: misspelt(func(s *mistakeSite) bool { return s.file.section[s.line] == "nodes" })},
	{name: "misspelt buffer", where: regexp.MustCompile(`(?:from: |to: |\b\w{1,6}: |[\[,] |\[|len\()([A-Za-z_]\w*)`),
		damage: misspelt(func(s *mistakeSite) bool { return s.file.section[s.line] == "nodes" && s.file.buffers[s.text] })},
	{name: "misspelt function", where: regexp.MustCompile(`\b(floor|ceil|min|max|len|rand|pow|abs|sqrt|log2)\(`), damage: misspelt(nil)},
	{name: "misspelt param or variable", where: regexp.MustCompile(`(?:shape: \[|args: \[|foreach: \{\w: |(?:from|to): | of |\$|\(|[-+*/] ?)([A-Za-z_]\w*)`),
		damage: misspelt(func(s *mistakeSite) bool { return s.file.variables[s.text] })},
	{name: "misspelt node", where: regexp.MustCompile(`after: \[([a-z_]\w*)`), damage: misspelt(nil)},
	{name: "misspelt word", where: regexp.MustCompile(`(?:place|sync|priority|init): (host|device|explicit|auto|high|low|zeros)\b`), damage: misspelt(nil)},
	{name: "type of another language", where: regexp.MustCompile(`dtype: (\w+)`), damage: func(m *mistakeMaker, s *mistakeSite) (string, string, bool) {
		return m.one(append(otherTypes[s.text], strings.ToUpper(s.text))...), `did you mean "` + s.text, true
	}},
	{name: "wrong type", apart: true, where: regexp.MustCompile(`dtype: (\w+)`), damage: func(m *mistakeMaker, s *mistakeSite) (string, string, bool) {
		wrong := m.one("f64", "f32", "i32", "u8", "i64")
		return wrong, s.text, wrong != s.text
	}},
	{name: "wrong size", apart: true, where: regexp.MustCompile(`shape: \[([^\]]*)\]`), damage: func(m *mistakeMaker, s *mistakeSite) (string, string, bool) {
		sizes := strings.Split(s.text, ", ")
		k := m.IntN(len(sizes))
		sizes[k] = m.one(sizes[k]+" + 1", sizes[k]+" - 1", "2*("+sizes[k]+")", "floor(("+sizes[k]+")/2)")
		return strings.Join(sizes, ", "), sizeCure, true
	}},
	{name: "value without its brackets", where: regexp.MustCompile(`(?:shape|args|after|foreach|memcpy|memset|init|expect|ramp): (\[[^][,]*\]|\{[^{},]*\})`), damage: func(_ *mistakeMaker, s *mistakeSite) (string, string, bool) {
		return s.text[1 : len(s.text)-1], s.text, true
	}},
	{name: "slice of another language", where: regexp.MustCompile(`[\w$](` + sliceText + `)`), damage: func(m *mistakeMaker, s *mistakeSite) (string, string, bool) {
		inside := s.text[1 : len(s.text)-1]
		if a, b, part := strings.Cut(inside, " of "); part {
			return m.one("("+a+"/"+b+")", "("+a+", "+b+")", "["+inside+"]", "("+a+" off "+b+")", "("+a+" in "+b+")"), s.text, true
		}
		a, b, _ := strings.Cut(inside, "..")
		return m.one("["+a+":"+b+"]", "("+a+":"+b+")", "("+a+"..."+b+")", "["+inside+"]", "("+a+", "+b+")"), s.text, a != "" && b != ""
	}},
	{name: "swapped range", where: regexp.MustCompile(`[\w$](` + sliceText + `)`), damage: func(_ *mistakeMaker, s *mistakeSite) (string, string, bool) {
		inside := s.text[1 : len(s.text)-1]
		if a, b, part := strings.Cut(inside, " of "); part {
			return "(" + b + " of " + a + ")", s.text, true
		}
		a, b, _ := strings.Cut(inside, "..")
		return "(" + b + ".." + a + ")", s.text, a != "" && b != ""
	}},
	{name: "swapped arguments", where: regexp.MustCompile(`args: \[([^][]*)\]`), damage: func(m *mistakeMaker, s *mistakeSite) (string, string, bool) {
		args := splitArguments(s.text)
		if len(args) < 2 {
			return "", "", false
		}
		a, b := m.IntN(len(args)), m.IntN(len(args))
		swapped := slices.Clone(args)
		swapped[a], swapped[b] = swapped[b], swapped[a]
		return strings.Join(swapped, ", "), swapCure, args[a] != args[b]
	}},
	{name: "missing comma", structure: true, where: regexp.MustCompile(`[\w\])}](,) `), damage: without("comma")},
	{name: "missing colon", structure: true, where: regexp.MustCompile(`[\w](:)(?:\s|$)`), damage: without("colon")},
	{name: "missing space after a colon", structure: true, where: regexp.MustCompile(`\w:( )\S`), damage: without("space")},
	{name: "wrong indentation", structure: true, where: regexp.MustCompile(`^( {2,})\S`), damage: func(m *mistakeMaker, s *mistakeSite) (string, string, bool) {
		width := len(s.text) + []int{-2, -1, 1, 2}[m.IntN(4)]
		return strings.Repeat(" ", width), "indent", true
	}},
	{name: "missing bracket or quote", structure: true, where: regexp.MustCompile(`([][{}()"])`), damage: func(_ *mistakeMaker, s *mistakeSite) (string, string, bool) {
		if s.text == `"` {
			return "", "quote", true
		}
		return "", s.text, true
	}},
	{name: "missing key", where: regexp.MustCompile(`(?:(?:[{ ]|memcpy: \{|memset: \{))((?:place|dtype|name|kernel): [^,{}\[\]()]+, |(?:from|to): [\w$.]+, )`), damage: func(_ *mistakeMaker, s *mistakeSite) (string, string, bool) {
		key, _, _ := strings.Cut(s.text, ":")
		return "", key, true
	}},
}

// Cures that are no fixed word: the size that the buffer has in the right file, or the swap of two arguments that makes the file right.
const (
	sizeCure = "(size)"
	swapCure = "(swap)"
)

// splitArguments splits at the commas outside of brackets.
func splitArguments(list string) []string {
	var args []string
	depth, from := 0, 0
	for k := range len(list) {
		switch list[k] {
		case '(', '[', '{':
			depth++
		case ')', ']', '}':
			depth--
		case ',':
			if depth == 0 {
				args = append(args, strings.TrimSpace(list[from:k]))
				from = k + 1
			}
		}
	}
	return append(args, strings.TrimSpace(list[from:]))
}

var swapHint = regexp.MustCompile(`swap arguments (\d+) and (\d+)`)

// swapNamed makes the swap that a message proposes in a damaged list of arguments.
func swapNamed(list, message string) (string, bool) {
	found := swapHint.FindStringSubmatch(message)
	if found == nil {
		return "", false
	}
	args := splitArguments(list)
	a, _ := strconv.Atoi(found[1])
	b, _ := strconv.Atoi(found[2])
	if min(a, b) < 1 || max(a, b) > len(args) {
		return "", false
	}
	args[a-1], args[b-1] = args[b-1], args[a-1]
	return strings.Join(args, ", "), true
}
