// Writes values as JSON text. See reader.go for reading.

package jsontext

import (
	"math"
	"strconv"
	"unicode/utf8"
)

// AppendString appends s as a JSON string. Letters of all scripts stay unchanged; characters that end a line in JavaScript are escaped.
func AppendString(b []byte, s string) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	start := 0
	for i, r := range s {
		switch {
		case r == '"' || r == '\\':
			b = append(append(b, s[start:i]...), '\\', byte(r))
			start = i + 1
		case r < ' ' || r == 0x7f || r == 0x2028 || r == 0x2029:
			b = append(append(b, s[start:i]...), '\\', 'u', hex[r>>12&15], hex[r>>8&15], hex[r>>4&15], hex[r&15])
			start = i + utf8.RuneLen(r)
		}
	}
	return append(append(b, s[start:]...), '"')
}

// AppendFloat appends the shortest text that reads back as the same number.
func AppendFloat(b []byte, v float64) []byte {
	format := byte('f')
	if a := math.Abs(v); a != 0 && (a < 1e-6 || a >= 1e21) {
		format = 'e'
	}
	return strconv.AppendFloat(b, v, format, -1, 64)
}
