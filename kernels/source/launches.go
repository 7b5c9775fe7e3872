// How a file's own host code launches its kernels: with which template arguments, grid and block.

package source

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Launched is a launch of a kernel in the file, as its author wrote it after macros.
type Launched struct {
	Template []string // arguments that are given, or follow from types of variables, if each says what it is without its surroundings
	Text     string   // such as "scale<256><<<blocks, 256>>>"
	Place    string

	// As pipelines write them, over the kernel's parameters and what else host code names; nothing where host code says it in another way.
	Grid, Block []string
	Shared      string
	Values      map[string]string // parameters that are numbers in the launch
}

// mostLaunched is how many launches of a kernel are told: people write few that differ.
const mostLaunched = 4

// mostAngles is how deep the templates of a launch are nested.
const mostAngles = 30

// launchesOf finds the launches in a source by the kernel's name without namespaces.
func launchesOf(in []token, files []string, known *surroundings, kernels []sourceKernel) map[string][]Launched {
	found := map[string][]Launched{}
	host := &hostCode{in: in, known: known, left: mostSought}
	named := map[string]*sourceKernel{} // nil: several have the name
	for i := range kernels {
		name := kernels[i].name[strings.LastIndexByte(kernels[i].name, ':')+1:]
		_, again := named[name]
		if named[name] = &kernels[i]; again {
			named[name] = nil
		}
	}
	for i := 1; i+3 < len(in); i++ {
		if in[i].text != "<" || in[i+1].text != "<" || in[i+2].text != "<" {
			continue
		}
		parts, end := configuration(in, i+3)
		if end < 0 || len(parts) < 2 {
			continue
		}
		name, args := i-1, [][]token(nil)
		if in[name].text == ">" {
			open := opening(in, name)
			if open < 1 {
				continue
			}
			args, _ = angled(in, open)
			name = open - 1
		}
		if !in[name].word() {
			continue
		}
		l := Launched{Place: fmt.Sprintf("%s:%d", files[in[name].file], in[name].line), Text: asWritten(in[name:i]) + "<<<" + asWritten(parts[0])}
		for _, part := range parts[1:] {
			l.Text += ", " + asWritten(part)
		}
		l.Text += ">>>"
		for _, a := range args {
			if !known.selfContained(a) {
				l.Template = nil
				break
			}
			l.Template = append(l.Template, asWritten(a))
		}
		all := found[in[name].text]
		if _, ours := named[in[name].text]; ours && len(all) < mostLaunched && !slices.ContainsFunc(all, func(o Launched) bool { return o.Text == l.Text }) {
			passed, _ := arguments(in[:min(len(in), end+mostConfigured)], end+1)
			host.reads(&l, named[in[name].text], parts, passed, i)
			found[in[name].text] = append(all, l)
		}
		i = end
	}
	return found
}

// reads takes what the launch at a place says in the words of its parameters, if its kernel is known.
func (h *hostCode) reads(l *Launched, k *sourceKernel, parts, passed [][]token, at int) {
	h.renamed, l.Values = map[string]string{}, map[string]string{}
	if k != nil && len(passed) == len(k.raw) {
		for i, arg := range passed {
			p := takeApart(k.raw[i], nil)
			if p.name == "" || p.stars > 0 || p.problem != "" {
				continue
			}
			if len(arg) == 1 && arg[0].word() {
				h.renamed[arg[0].text] = p.name
			}
			if v, ok := h.literal(arg); ok {
				l.Values[p.name] = v
			}
		}
		h.instance(l, k, passed, at)
	}
	l.Grid, l.Block = h.extent(parts[0], at), h.extent(parts[1], at)
	if len(parts) > 2 {
		if q, ok := h.quantity(parts[2], at, 0); ok && q.text() != "0" {
			l.Shared = q.text()
		}
	}
}

// literal is an argument that is a number as pipelines write it.
func (h *hostCode) literal(arg []token) (string, bool) {
	if v, ok := h.known.variables.constant(arg); ok && !slices.ContainsFunc(arg, token.word) {
		return fmt.Sprint(v), true
	}
	text := strings.TrimRight(asWritten(arg), "fF")
	if !strings.ContainsAny(text, ".eE") || strings.HasPrefix(text, "0x") {
		return "", false
	}
	v, err := strconv.ParseFloat(text, 64)
	return fmt.Sprint(v), err == nil && !math.IsInf(v, 0)
}

// extent is a grid or a block: up to three numbers, which are 1 if they are left out.
func (h *hostCode) extent(part []token, at int) []string {
	if len(part) == 1 && part[0].word() {
		if parts, place := h.value(part[0].text, at); len(parts) > 1 {
			return h.numbers(parts, place)
		} else if len(parts) == 1 && len(parts[0]) > 0 && parts[0][0].text == "dim3" {
			part, at = parts[0], place
		}
	}
	if len(part) > 2 && part[0].text == "dim3" && (part[1].text == "(" || part[1].text == "{") {
		inner := slices.Clone(part[1:])
		inner[0].text, inner[len(inner)-1].text = "(", ")"
		if parts, end := arguments(inner, 0); end == len(inner)-1 {
			return h.numbers(parts, at)
		}
	}
	return h.numbers([][]token{part}, at)
}

func (h *hostCode) numbers(parts [][]token, at int) []string {
	var all []string
	for _, part := range parts {
		q, ok := h.quantity(part, at, 0)
		if !ok || len(parts) > 3 {
			return nil
		}
		all = append(all, q.text())
	}
	return all
}

// instance adds the arguments of a template that C++ deduces from the types of what is passed, if they are all known then.
func (h *hostCode) instance(l *Launched, k *sourceKernel, passed [][]token, at int) {
	args := slices.Clone(l.Template)
	if len(args) > len(k.template) {
		return
	}
	for _, wanted := range k.template[len(args):] {
		if wanted.standard != nil && len(args) > 0 {
			break
		}
		deduced := ""
		for i := range passed {
			p := takeApart(k.raw[i], nil)
			if deduced != "" || p.problem != "" || len(p.words) != 1 || p.words[0].text != wanted.name {
				continue
			}
			if from, ok := h.typed(passed[i], at); ok && from.stars == p.stars && h.known.selfContained(from.words) {
				deduced = textOf(from.words)
			}
		}
		if deduced == "" {
			return
		}
		args = append(args, deduced)
	}
	l.Template = args
}

// asWritten is a text with one space where there is white space.
func asWritten(in []token) string {
	var b strings.Builder
	for i, t := range in {
		if i > 0 && t.space {
			b.WriteByte(' ')
		}
		b.WriteString(t.text)
	}
	return b.String()
}

// configuration reads what is between <<< and >>>, and returns the index of the last >, or -1.
func configuration(in []token, at int) ([][]token, int) {
	parts, depth := [][]token{nil}, 0
	for last := min(len(in), at+mostConfigured) - 2; at < last; at++ {
		switch t := in[at].text; {
		case t == ";" || t == "<" && in[at+1].text == "<" && in[at+2].text == "<":
			return nil, -1
		case t == "(" || t == "[" || t == "{":
			depth++
		case t == ")" || t == "]" || t == "}":
			depth--
		case t == ">" && depth == 0 && in[at+1].text == ">" && in[at+2].text == ">":
			return parts, at + 2
		case t == "," && depth == 0:
			parts = append(parts, nil)
			continue
		}
		parts[len(parts)-1] = append(parts[len(parts)-1], in[at])
	}
	return nil, -1
}

// opening is where the angle bracket that ends at a place is opened, or -1.
func opening(in []token, end int) int {
	depth := 0
	for at := end; at >= max(0, end-mostConfigured); at-- {
		switch in[at].text {
		case ">":
			if depth++; depth > mostAngles {
				return -1
			}
		case "<":
			if depth--; depth == 0 {
				return at
			}
		case ";", "{", "}":
			return -1
		}
	}
	return -1
}
