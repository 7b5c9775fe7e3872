// Text for people, worded the same everywhere: sizes in bytes, counts with their noun, and the width of text.

// Package words holds the wording that all packages share. The same number of bytes prints the same everywhere, columns line up
// for names in any script, and text from outside cannot control a terminal.
package words

import (
	"errors"
	"strconv"
	"strings"
	"unicode"
)

// Bytes formats a number of bytes: 512 bytes, 8 MiB, 1.5 GiB, 117.19 KiB.
func Bytes(n int64) string {
	if n < 1024 {
		return Count(n, "byte", "bytes")
	}
	units := []string{"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}
	value, unit := float64(n)/1024, 0
	for value >= 1023.995 && unit < len(units)-1 {
		value /= 1024
		unit++
	}
	number := strings.TrimRight(strconv.FormatFloat(value, 'f', 2, 64), "0")
	return strings.TrimSuffix(number, ".") + " " + units[unit]
}

// Time formats a time in microseconds: 3.2 us, 47.1 us, 12.5 ms.
func Time(us float64) string {
	switch {
	case us >= 1e6:
		return strconv.FormatFloat(us/1e6, 'g', 4, 64) + " s"
	case us >= 1e4:
		return strconv.FormatFloat(us/1e3, 'g', 4, 64) + " ms"
	}
	return strconv.FormatFloat(us, 'g', 4, 64) + " us"
}

// Count formats a number with its noun: 1 node, 2 nodes.
func Count[N int | int32 | int64](n N, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.FormatInt(int64(n), 10) + " " + many
}

// List joins words to "a, b and c", "a and b" or "a"; the word before the last, here "and", is given.
func List(list []string, before string) string {
	if len(list) < 2 {
		return strings.Join(list, "")
	}
	last := len(list) - 1
	return strings.Join(list[:last], ", ") + " " + before + " " + list[last]
}

// ErrNoWriter is returned by functions that write to an [io.Writer] and are given nil.
var ErrNoWriter = errors.New("there is no writer to write to")

// Name is the word for a value of an enumeration, whose words are given in the order of its values: KIND(99) beyond them.
func Name[T ~uint8](v T, kind string, words []string) string {
	if int(v) < len(words) {
		return words[v]
	}
	return kind + "(" + strconv.Itoa(int(v)) + ")"
}

// wide holds what terminals give two columns: the scripts and signs of East Asia, and emoji. It is never changed.
var wide = &unicode.RangeTable{
	R16: []unicode.Range16{
		{0x1100, 0x115f, 1}, {0x231a, 0x231b, 1}, {0x23e9, 0x23ec, 1}, {0x23f0, 0x23f3, 3}, {0x25fd, 0x25fe, 1}, {0x2614, 0x2615, 1},
		{0x2648, 0x2653, 1}, {0x267f, 0x2693, 20}, {0x26a1, 0x26a1, 1}, {0x26aa, 0x26ab, 1}, {0x26bd, 0x26be, 1}, {0x26c4, 0x26c5, 1},
		{0x26ce, 0x26d4, 6}, {0x26ea, 0x26ea, 1}, {0x26f2, 0x26f3, 1}, {0x26f5, 0x26fa, 5}, {0x26fd, 0x2705, 8}, {0x270a, 0x270b, 1},
		{0x2728, 0x2728, 1}, {0x274c, 0x274e, 2}, {0x2753, 0x2755, 1}, {0x2757, 0x2757, 1}, {0x2795, 0x2797, 1}, {0x27b0, 0x27bf, 15},
		{0x2b1b, 0x2b1c, 1}, {0x2b50, 0x2b55, 5}, {0x2e80, 0x303e, 1}, {0x3041, 0xa4cf, 1}, {0xa960, 0xa97c, 1}, {0xac00, 0xd7a3, 1},
		{0xf900, 0xfaff, 1}, {0xfe30, 0xfe6b, 1}, {0xff01, 0xff60, 1}, {0xffe0, 0xffe6, 1},
	},
	R32: []unicode.Range32{
		{0x16fe0, 0x18cff, 1}, {0x1b000, 0x1b2ff, 1}, {0x1f004, 0x1f004, 1}, {0x1f0cf, 0x1f0cf, 1}, {0x1f18e, 0x1f18e, 1}, {0x1f191, 0x1f19a, 1},
		{0x1f200, 0x1f320, 1}, {0x1f32d, 0x1f64f, 1}, {0x1f680, 0x1f6ff, 1}, {0x1f7e0, 0x1f7f0, 1}, {0x1f90c, 0x1f9ff, 1}, {0x1fa70, 0x1faff, 1},
		{0x20000, 0x3fffd, 1},
	},
}

// RuneWidth returns how many columns a terminal gives a character: 0 for marks that combine with the one before, 2 for East Asian
// scripts and emoji, else 1.
func RuneWidth(r rune) int {
	switch {
	case r < 0x300:
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf), r >= 0x1160 && r <= 0x11ff: // vowels and finals of Hangul join the letter before
		return 0
	case unicode.Is(wide, r):
		return 2
	}
	return 1
}

// Width returns how many columns a terminal gives a text.
func Width(s string) int {
	width := 0
	for _, r := range s {
		width += RuneWidth(r)
	}
	return width
}

// Cut shortens a text to at most that many columns.
func Cut(s string, columns int) string {
	width := 0
	for at, r := range s {
		if width += RuneWidth(r); width > columns {
			return s[:at]
		}
	}
	return s
}

// Pad fills a text with spaces to that many columns.
func Pad(s string, columns int) string {
	return s + strings.Repeat(" ", max(0, columns-Width(s)))
}

// Shorten keeps messages readable where the text is not.
func Shorten(s string) string {
	const longest = 60
	if len(s) <= longest {
		return s
	}
	return strings.ToValidUTF8(s[:longest-3], "") + "..."
}
