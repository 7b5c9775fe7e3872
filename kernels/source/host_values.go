// What host code around a launch says its numbers and pointers are: sums and quotients as pipelines write them, and declared types.

package source

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// hostCode are the words of a source, in which the variables of a launch are looked up.
type hostCode struct {
	in      []token
	known   *surroundings
	renamed map[string]string // variables that are arguments of the launch: the kernel's parameters
	left    int               // words that may still be looked at
}

// surroundings are what a source declares that arguments of templates may name.
type surroundings struct {
	variables *declaredVariables
	types     map[string][]token
	structs   structures
}

const (
	// mostConfigured is how many words a launch has before or after its <<<, and a declaration in host code has.
	mostConfigured = 1 << 10
	// mostSought is how many words are looked at for all launches of a source, so that reading it takes no time that grows with its square.
	mostSought = 1 << 22
	// mostNamed is through how many variables and functions a number is followed.
	mostNamed = 8
)

// enclosing calls visit for the words before a place, outwards through the blocks that the place is in, until visit returns false. inside is how
// many blocks a word is in that the place is not in; at the head of a function, enters has the words of its parameters.
func (h *hostCode) enclosing(at int, visit func(i, inside int) bool, enters func(params []token) bool) {
	inside := 0
	for i := at - 1; i > 0 && h.left > 0; i-- {
		h.left--
		switch h.in[i].text {
		case "}":
			inside++
		case "{":
			if inside > 0 {
				inside--
				continue
			}
			if open := h.parenthesis(i - 1); open > 0 && h.in[open-1].word() && !slices.Contains([]string{"if", "for", "while", "switch"}, h.in[open-1].text) {
				if !enters(h.in[open+1 : i-1]) {
					return
				}
				i = open
			}
			continue
		}
		if !visit(i, inside) {
			return
		}
	}
}

// parenthesis is where the one that ends at a place is opened, or -1.
func (h *hostCode) parenthesis(end int) int {
	if h.in[end].text != ")" {
		return -1
	}
	depth := 0
	for at := end; at >= max(0, end-mostConfigured); at-- {
		h.left--
		switch h.in[at].text {
		case ")":
			depth++
		case "(":
			depth--
		}
		if depth == 0 {
			return at
		}
	}
	return -1
}

// statement is where the one that a word is in begins. nested reports that this is within parentheses.
func (h *hostCode) statement(at int) (start int, nested bool) {
	depth := 0
	for i := at - 1; i >= max(0, at-mostConfigured); i-- {
		h.left--
		switch t := h.in[i].text; {
		case t == ")" || t == "]":
			depth++
		case (t == "(" || t == "[") && depth == 0:
			return i + 1, true
		case t == "(" || t == "[":
			depth--
		case t == ";" || t == "{" || t == "}" || t == "\n":
			return i + 1, false
		}
	}
	return at, true
}

// value finds what a variable was last set to before a place, if that is sure: its words and where they stand. A dim3 has up to three parts.
func (h *hostCode) value(name string, at int) (parts [][]token, place int) {
	h.enclosing(at, func(i, inside int) bool {
		if h.in[i].text != name || i+2 >= len(h.in) {
			return true
		}
		before, next, after := h.in[i-1].text, h.in[i+1].text, h.in[i+2].text
		if before == "." || before == "->" || before == "::" {
			return true
		}
		sets := next == "=" || slices.Contains([]string{"+", "-", "*", "/", "%", "&", "|", ">", "<"}, next) &&
			(after == "=" || after == next && (next == "+" || next == "-")) ||
			next == "." || before == "&" || next == ">" && after == ">=" || next == "<" && after == "<="
		start, nested := h.statement(i)
		declares := start < i && h.declares(start, i)
		switch {
		case inside > 0:
			return !sets || declares // in a block of its own, or it may be another value
		case next == "=" && !nested && (declares || start == i):
			parts, place = [][]token{h.until(i+2, ";", ",")}, i
		case next == "(" && declares && !nested && slices.ContainsFunc(h.in[start:i], func(t token) bool { return t.text == "dim3" }):
			if args, end := arguments(h.in, i+1); end > 0 {
				parts, place = args, i
			}
		case !sets && !declares:
			return true
		}
		return false
	}, func([]token) bool { return false })
	return parts, place
}

// declares reports whether a statement that starts with a type gives something the name at a place.
func (h *hostCode) declares(start, at int) bool {
	switch before := h.in[at-1]; {
	case before.word():
		return !slices.Contains([]string{"return", "else", "case", "do", "sizeof"}, before.text)
	case before.text == "," || before.text == "*" || before.text == "&":
		_, builtin := cudaTypes[h.in[start].text]
		return builtin || slices.Contains([]string{"const", "dim3", "auto", "static", "unsigned"}, h.in[start].text)
	}
	return false
}

// until are the words from a place to one of the marks, outside of parentheses.
func (h *hostCode) until(from int, marks ...string) []token {
	depth := 0
	for i := from; i < min(len(h.in), from+mostConfigured); i++ {
		h.left--
		switch t := h.in[i].text; {
		case depth == 0 && slices.Contains(marks, t):
			return h.in[from:i]
		case t == "(" || t == "{" || t == "[":
			depth++
		case t == ")" || t == "}" || t == "]":
			depth--
		}
	}
	return nil
}

// typed is the type of a pointer or number that an argument passes, if it is a variable with an offset, or cast.
func (h *hostCode) typed(arg []token, at int) (p parameter, ok bool) {
	if len(arg) > 2 && arg[0].text == "(" {
		if _, end := arguments(arg, 0); end > 0 && end+1 < len(arg) {
			p = takeApart(append(slices.Clone(arg[1:end]), token{text: "x"}), nil)
			return p, p.problem == "" && len(p.words) > 0
		}
	}
	if len(arg) > 2 && arg[0].text == "&" && arg[2].text == "[" {
		arg = arg[1:2]
	}
	if len(arg) == 0 || !arg[0].word() || len(arg) > 1 && arg[1].text != "+" && arg[1].text != "-" {
		return p, false
	}
	name := arg[0].text
	h.enclosing(at, func(i, inside int) bool {
		if inside > 0 || h.in[i].text != name || i+1 >= len(h.in) || !slices.Contains([]string{";", ",", "=", "["}, h.in[i+1].text) {
			return true
		}
		start, nested := h.statement(i)
		if nested || start >= i || !h.in[start].word() {
			return true
		}
		end := start
		for end < i && h.in[end].text != "*" && h.in[end].text != "," && h.in[end].text != "=" {
			end++
		}
		if end < i && h.in[end].text != "*" { // the first of several names
			end--
		}
		stars := i
		for stars > end && h.in[stars-1].text == "*" {
			stars--
		}
		if stars > end && h.in[stars-1].text != "," {
			return true
		}
		p = takeApart(slices.Concat(h.in[start:end], h.in[stars:i+1]), nil)
		ok = p.problem == "" && p.name == name && len(p.words) > 0
		return false
	}, func(params []token) bool {
		list, end := arguments(slices.Concat([]token{{text: "("}}, params, []token{{text: ")"}}), 0)
		for _, d := range list {
			if p = takeApart(d, nil); end > 0 && p.name == name {
				ok = p.problem == "" && len(p.words) > 0
				return false
			}
		}
		return true
	})
	return p, ok
}

// quantity is a number of a launch: a sum of terms and a number.
type quantity struct {
	terms    []string // each with its sign: "+n", "-m*2"
	constant int64
	real     bool // C++ computes it in floating point
	fraction bool // and it may be none
}

func number(v int64) quantity { return quantity{constant: v} }

// text is the quantity as pipelines write it.
func (q quantity) text() string {
	text := strings.Join(q.terms, "")
	if q.constant != 0 || text == "" {
		text += fmt.Sprintf("%+d", q.constant)
	}
	text = strings.TrimPrefix(text, "+")
	if q.fraction {
		return "floor(" + text + ")"
	}
	return text
}

// factor is the quantity where it is multiplied, or divides.
func (q quantity) factor(divides bool) string {
	q.fraction = false
	if q.terms == nil || len(q.terms) == 1 && q.constant == 0 && q.terms[0][0] == '+' && (!divides || !strings.ContainsAny(q.terms[0], "*/%")) {
		return q.text()
	}
	return "(" + q.text() + ")"
}

func (q quantity) plus(o quantity, sign byte) quantity {
	sum := quantity{slices.Clone(q.terms), q.constant + o.constant, q.real || o.real, q.fraction || o.fraction}
	if sign == '-' {
		sum.constant = q.constant - o.constant
	}
	for _, t := range o.terms {
		if sign == '-' {
			t = strings.NewReplacer("+", "-", "-", "+").Replace(t[:1]) + t[1:]
		}
		sum.terms = append(sum.terms, t)
	}
	return sum
}

func (q quantity) times(o quantity) quantity {
	if q.terms == nil && o.terms == nil {
		return quantity{nil, q.constant * o.constant, q.real || o.real, q.fraction || o.fraction}
	}
	if q.terms == nil && q.constant == 1 {
		return quantity{o.terms, o.constant, q.real || o.real, o.fraction}
	}
	if o.terms == nil && o.constant == 1 {
		return quantity{q.terms, q.constant, q.real || o.real, q.fraction}
	}
	return quantity{[]string{"+" + q.factor(false) + "*" + o.factor(false)}, 0, q.real || o.real, q.fraction || o.fraction}
}

// over divides as C++ does. What rounds up in whole numbers is written so.
func (q quantity) over(o quantity) (quantity, bool) {
	if o.terms == nil && o.constant <= 0 {
		return q, false
	}
	if q.real || o.real {
		if q.terms == nil && o.terms == nil && q.constant%o.constant == 0 {
			return quantity{nil, q.constant / o.constant, true, false}, true
		}
		return quantity{[]string{"+" + q.factor(false) + "/" + o.factor(true)}, 0, true, true}, true
	}
	if q.terms == nil && o.terms == nil {
		return number(q.constant / o.constant), true
	}
	how, above := "floor", q
	if o.terms == nil && q.terms != nil && q.constant == o.constant-1 {
		how, above.constant = "ceil", 0
	} else if len(o.terms) == 1 && o.constant == 0 && q.constant == -1 && len(q.terms) > 1 {
		if i := slices.Index(q.terms, o.terms[0]); i >= 0 {
			how, above.constant, above.terms = "ceil", 0, slices.Delete(slices.Clone(q.terms), i, i+1)
		}
	}
	if o.terms == nil && o.constant == 1 {
		return above, true
	}
	return quantity{terms: []string{"+" + how + "(" + above.factor(false) + "/" + o.factor(true) + ")"}}, true
}

// reckoner reads one expression of host code.
type reckoner struct {
	host  *hostCode
	in    []token
	i     int
	at    int // where its variables are looked up
	depth int
	bad   bool
}

// quantity is what an expression of host code computes, if it is one of a few kinds.
func (h *hostCode) quantity(in []token, at, depth int) (quantity, bool) {
	if depth > mostNamed || len(in) == 0 {
		return quantity{}, false
	}
	r := &reckoner{host: h, in: in, at: at, depth: depth}
	q := r.shifted()
	return q, !r.bad && r.i == len(in)
}

func (r *reckoner) peek() string {
	if r.i < len(r.in) {
		return r.in[r.i].text
	}
	return ""
}

// takes passes the next word if it is the one.
func (r *reckoner) takes(text string) bool {
	if r.peek() != text {
		return false
	}
	r.i++
	return true
}

// shifted reads sums with << and >> between them.
func (r *reckoner) shifted() quantity {
	q := r.sum()
	for !r.bad && r.i+1 < len(r.in) && (r.peek() == "<" || r.peek() == ">") && r.in[r.i+1].text == r.peek() {
		left := r.peek() == "<"
		r.i += 2
		by := r.sum()
		if by.terms != nil || by.constant < 0 || by.constant > 40 {
			r.bad = true
			break
		}
		if left {
			q = q.times(number(1 << by.constant))
		} else {
			q, _ = q.over(number(1 << by.constant))
		}
	}
	return q
}

func (r *reckoner) sum() quantity {
	q := r.product()
	for !r.bad && (r.peek() == "+" || r.peek() == "-") {
		sign := r.peek()[0]
		r.i++
		q = q.plus(r.product(), sign)
	}
	return q
}

func (r *reckoner) product() quantity {
	q := r.single()
	for !r.bad {
		switch {
		case r.takes("*"):
			q = q.times(r.single())
		case r.takes("/"):
			var ok bool
			q, ok = q.over(r.single())
			r.bad = r.bad || !ok
		case r.takes("%"):
			o := r.single()
			q = quantity{terms: []string{"+" + q.factor(false) + "%" + o.factor(true)}}
		default:
			return q
		}
	}
	return q
}

// single reads a number, a name, a call, a cast, or what is in parentheses.
func (r *reckoner) single() quantity {
	if r.bad || r.i >= len(r.in) {
		r.bad = true
		return quantity{}
	}
	t := r.in[r.i]
	switch {
	case r.takes("-"):
		return number(0).plus(r.single(), '-')
	case r.takes("+"):
		return r.single()
	case t.text == "(":
		parts, end := arguments(r.in, r.i)
		if end < 0 || len(parts) != 1 {
			break
		}
		r.i = end + 1
		if p := takeApart(append(slices.Clone(parts[0]), token{text: "x"}), r.host.known.types); p.stars == 0 && p.problem == "" {
			if dtype, ok := p.dtype(); ok {
				return r.converted(r.single(), dtype.Float())
			}
		}
		if q, ok := r.host.quantity(parts[0], r.at, r.depth+1); ok {
			return q
		}
	case t.text[0] >= '0' && t.text[0] <= '9':
		r.i++
		text := strings.TrimRight(strings.ReplaceAll(strings.ToLower(t.text), "'", ""), "ul")
		if v, err := strconv.ParseInt(text, 0, 64); err == nil {
			return number(v)
		}
		if v, err := strconv.ParseFloat(strings.TrimRight(text, "f"), 64); err == nil && v == float64(int64(v)) {
			return quantity{constant: int64(v), real: true}
		}
	case t.word():
		return r.named()
	}
	r.bad = true
	return quantity{}
}

// converted is a quantity in another type of number.
func (r *reckoner) converted(q quantity, real bool) quantity {
	if !real && q.fraction {
		return quantity{terms: []string{"+" + q.text()}}
	}
	q.real = real
	return q
}

// named reads a variable or a call.
func (r *reckoner) named() quantity {
	name := r.in[r.i].text
	r.i++
	for r.takes("::") {
		name = r.peek()
		r.i++
	}
	if name == "static_cast" && r.peek() == "<" {
		parts, end := angled(r.in, r.i)
		if end > 0 && len(parts) == 1 && end+1 < len(r.in) && r.in[end+1].text == "(" {
			p := takeApart(append(slices.Clone(parts[0]), token{text: "x"}), r.host.known.types)
			dtype, ok := p.dtype()
			r.i = end + 1
			r.bad = r.bad || !ok || p.stars > 0
			return r.converted(r.single(), dtype.Float())
		}
	}
	if r.peek() == "(" {
		args, end := arguments(r.in, r.i)
		if end > 0 {
			r.i = end + 1
			return r.call(name, args)
		}
	}
	if next := r.peek(); r.bad || next == "." || next == "->" || next == "[" || next == "(" {
		r.bad = true
		return quantity{}
	}
	if own := r.host.renamed[name]; own != "" {
		return quantity{terms: []string{"+" + own}}
	}
	if v, ok := r.host.known.variables.constants[name]; ok {
		return number(v)
	}
	if parts, place := r.host.value(name, r.at); len(parts) == 1 {
		if q, ok := r.host.quantity(parts[0], place, r.depth+1); ok {
			return r.converted(q, q.real && !q.fraction)
		}
	}
	return quantity{terms: []string{"+" + name}}
}

// call reads calls of mathematics, and of functions of the source that return one expression.
func (r *reckoner) call(name string, args [][]token) quantity {
	if dtype, ok := cudaTypes[name]; ok && len(args) == 1 {
		q, ok := r.host.quantity(args[0], r.at, r.depth+1)
		r.bad = r.bad || !ok
		return r.converted(q, dtype.Float())
	}
	if name == "sizeof" && len(args) == 1 {
		p := takeApart(append(slices.Clone(args[0]), token{text: "x"}), r.host.known.types)
		if dtype, ok := p.dtype(); ok && p.stars == 0 {
			return number(dtype.Size())
		}
		r.bad = true
		return quantity{}
	}
	if parameters, returns := r.host.known.variables.units.function(name); returns != nil && len(parameters) == len(args) {
		means := map[string][]token{}
		for i, p := range parameters {
			means[p] = slices.Concat([]token{{text: "("}}, args[i], []token{{text: ")"}})
		}
		if q, ok := r.host.quantity(substitute(returns, means), r.at, r.depth+1); ok {
			return r.converted(q, false)
		}
		r.bad = true
		return quantity{}
	}
	var all []quantity
	for _, a := range args {
		q, ok := r.host.quantity(a, r.at, r.depth+1)
		r.bad = r.bad || !ok
		all = append(all, q)
	}
	switch name = strings.TrimSuffix(name, "f"); {
	case r.bad:
	case (name == "ceil" || name == "floor") && len(all) == 1:
		if !all[0].fraction {
			return all[0]
		}
		all[0].fraction = false
		return quantity{terms: []string{"+" + name + "(" + all[0].text() + ")"}, real: true}
	case (name == "min" || name == "max") && len(all) == 2:
		return quantity{terms: []string{fmt.Sprintf("+%s(%s, %s)", name, all[0].text(), all[1].text())}}
	}
	r.bad = true
	return quantity{}
}

// function is one of the source that returns one expression: the names of its parameters, and what it returns.
func (u units) function(name string) (parameters []string, returns []token) {
	if len(u[name]) != 1 {
		return nil, nil
	}
	text := u[name][0]
	for i := 1; i+1 < len(text) && text[i].text != "{" && text[i].text != "="; i++ {
		if text[i].text != "(" || text[i-1].text != name {
			continue
		}
		list, end := arguments(text, i)
		if end < 0 || end+2 >= len(text) || text[end+1].text != "{" || text[end+2].text != "return" {
			return nil, nil
		}
		for _, d := range list {
			parameters = append(parameters, takeApart(d, nil).name)
		}
		for at := end + 3; at+1 < len(text); at++ {
			if text[at].text == ";" && text[at+1].text == "}" {
				return parameters, text[end+3 : at]
			}
		}
	}
	return nil, nil
}

// selfContained reports whether a template's argument means the same everywhere: its words are types and constants of the source.
func (s *surroundings) selfContained(arg []token) bool {
	for _, t := range arg {
		if !t.word() || slices.Contains([]string{"const", "true", "false", "unsigned", "signed"}, t.text) {
			continue
		}
		_, constant := s.variables.constants[t.text]
		_, alias := s.types[t.text]
		_, builtin := cudaTypes[t.text]
		if !constant && !alias && !builtin && s.structs[t.text] == nil {
			return false
		}
	}
	return len(arg) > 0
}
