// Names: what the mangled name of a kernel tells, and how a place is named for people.

package recording

import (
	"fmt"
	"path"
	"strconv"
	"strings"
)

// PlaceText names the user's line of a place: seed.py:3, or the function or the address where there is no line. It is "" if the place is not known.
func (p *Process) PlaceText(place uint64) string {
	f, known := p.Where(place)
	switch {
	case !known:
		return ""
	case f.Line > 0:
		return fmt.Sprintf("%s:%d", path.Base(f.File), f.Line)
	case f.Function != "":
		return fmt.Sprintf("%s in %s", PlainName(f.Function), path.Base(f.File))
	}
	return fmt.Sprintf("%s+0x%x", path.Base(f.File), f.Offset)
}

// ConstParameters says for each parameter of a kernel whether its mangled name shows a pointer to const. Where the name has anything but
// pointers to plain types and numbers, all parameters from there on count as written.
func ConstParameters(mangled string, parameters int) []bool {
	reads := make([]bool, 0, parameters)
	rest, found := strings.CutPrefix(mangled, "_Z")
	if !found {
		return nil
	}
	name, rest := cutName(rest)
	if name == "" {
		return nil
	}
	for len(rest) > 0 && len(reads) < parameters {
		pointer := rest[0] == 'P'
		rest = strings.TrimPrefix(rest, "P")
		constant := strings.HasPrefix(rest, "K") || strings.HasPrefix(rest, "VK")
		rest = strings.TrimLeft(rest, "VK")
		rest = strings.TrimPrefix(rest, "U10__restrict")
		if rest == "" || !strings.Contains("vbcahstijlmxynofdeg", rest[:1]) {
			return reads
		}
		reads, rest = append(reads, pointer && constant), rest[1:]
	}
	return reads
}

// cutName cuts a name without scopes, such as 3add, from the beginning of a text.
func cutName(text string) (name, rest string) {
	digits := len(text) - len(strings.TrimLeft(text, "0123456789"))
	length, err := strconv.Atoi(text[:digits])
	if err != nil || length == 0 || length > len(text)-digits {
		return "", text
	}
	return text[digits : digits+length], text[digits+length:]
}

// PlainName returns the name of a kernel without its scopes, parameters and arguments: of _ZN2at6native6reduceIfEEvPf, reduce.
func PlainName(mangled string) string {
	rest, found := strings.CutPrefix(mangled, "_Z")
	if !found {
		return mangled
	}
	rest = strings.TrimLeft(strings.TrimPrefix(rest, "N"), "rVKL")
	last := mangled
	for {
		name, after := cutName(rest)
		if name == "" {
			return last
		}
		if !strings.HasPrefix(name, "_GLOBAL__N_") {
			last = name
		}
		rest = after
	}
}
