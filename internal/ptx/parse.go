// Parsing a module: its head, and the directives outside functions.

package ptx

import (
	"fmt"
	"strings"

	"github.com/dagrun/dagrun/internal/words"
)

// Parse reads a module. The error is an *Error with the place of the first mistake.
func Parse(text string) (*Module, error) {
	p := newParser(text)
	if len(text) > maxSource {
		return nil, &Error{Position{1, 1}, fmt.Sprintf("the PTX has %s, but at most %s can be read; split the module", words.Bytes(int64(len(text))),
			words.Bytes(maxSource))}
	}
	if i := strings.IndexByte(text, 0); i >= 0 && strings.Trim(text[i:], "\x00") == "" {
		p.text = text[:i] // the driver's images end with zeros
	}
	p.module()
	if p.err != nil {
		return nil, p.err
	}
	return p.m, nil
}

// Head reads only the start of a module: its version, target and size of addresses. The rest may be anything.
func Head(text string) (*Module, error) {
	p := newParser(text)
	p.next()
	p.version()
	for p.err == nil && (p.isDot(".target") || p.isDot(".address_size")) {
		p.directive(Internal, false)
	}
	if p.err != nil {
		return nil, p.err
	}
	return p.m, nil
}

func (p *parser) module() {
	p.next()
	p.version()
	for p.err == nil && p.token.kind != endToken {
		p.top()
	}
}

// version reads what each module starts with.
func (p *parser) version() {
	if !p.isDot(".version") {
		p.fail(p.token.pos, "PTX must start with .version, not with %s", p.describe(p.token))
		return
	}
	p.next()
	pos, word := p.wordAt(numberToken)
	if n, err := fmt.Sscanf(word, "%d.%d", &p.m.Major, &p.m.Minor); n != 2 || err != nil {
		p.fail(pos, "expected a version such as 7.0, not %s", short(word))
		return
	}
	if p.m.Major < 1 || p.m.Major > 9 {
		p.fail(pos, "PTX ISA %s is not supported; 3.0 to 9.x are, so compile for an older one", short(word))
	}
}

// top reads one directive outside functions.
func (p *parser) top() {
	if p.token.kind != dotToken {
		if p.isMark(';') {
			p.next()
			return
		}
		p.fail(p.token.pos, "expected a directive such as .entry or .global, not %s", p.describe(p.token))
		return
	}
	linkage, managed := Internal, false
	for {
		switch p.text[p.token.start:p.token.end] {
		case ".visible":
			linkage = Visible
		case ".extern":
			linkage = Extern
		case ".weak":
			linkage = Weak
		case ".common":
			linkage = Common
		case ".attribute":
			managed = p.attribute() || managed
			continue
		default:
			p.directive(linkage, managed)
			return
		}
		p.next()
	}
}

func (p *parser) directive(linkage Linkage, managed bool) {
	t := p.token
	word := p.text[t.start:t.end]
	if p.token.kind != dotToken {
		p.fail(t.pos, "expected a directive such as .entry or .global, not %s", p.describe(t))
		return
	}
	switch word {
	case ".target":
		p.next()
		p.m.Target = p.word(wordToken)
		for p.isMark(',') {
			p.next()
			p.m.Options = append(p.m.Options, p.word(wordToken))
		}
	case ".address_size":
		p.next()
		pos := p.token.pos
		switch n := p.integer(); n {
		case 32, 64:
			p.m.AddressSize = int(n)
		default:
			p.fail(pos, "an address must have 32 or 64 bits, not %d", n)
		}
	case ".entry", ".func":
		p.parseFunction(linkage, word == ".entry")
	case ".global", ".const", ".shared", ".local", ".tex", ".reg":
		p.next()
		p.declarations(spacesByName[word[1:]], linkage, managed)
	case ".file":
		p.file()
	case ".section":
		p.section()
	case ".alias":
		p.alias()
	case ".pragma":
		p.m.Pragmas = append(p.m.Pragmas, p.pragma()...)
	case ".loc":
		p.loc()
	case ".version":
		p.version()
	default:
		p.fail(t.pos, "%s is not a directive that is possible here; expected .entry, .func, .global, .const, .shared or the like", short(word))
	}
}

func (p *parser) alias() {
	p.next()
	pos, from := p.wordAt(wordToken)
	p.expectMark(',', "between the two names of .alias")
	to, name := p.wordAt(wordToken)
	p.expectMark(';', "after .alias")
	if p.err != nil {
		return
	}
	id, ok := p.m.Function(from)
	if !ok {
		p.fail(pos, ".alias names %s, which is not declared as a function above", short(from))
		return
	}
	target, ok := p.m.Function(name)
	if !ok {
		p.fail(to, ".alias names %s, which is not declared as a function above", short(name))
		return
	}
	p.m.Functions[id].Alias = target
}
