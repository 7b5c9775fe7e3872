// Every form of the video instructions of one value, held against PTX's definition: parts of the sources with their signs, an operation on whole
// numbers, saturation to the place of the result, and what is done with a third number.

package simt_test

import (
	"fmt"
	"testing"
)

// selected is a part of a word as a number of a type: "" is all of it.
func selected(v uint64, part string, signed bool) int64 {
	width, shift := 32, 0
	if part != "" {
		width = map[byte]int{'b': 8, 'h': 16}[part[1]]
		shift = width * int(part[2]-'0')
	}
	v = v >> shift & (1<<width - 1)
	if signed && v>>(width-1) != 0 {
		return int64(v) - 1<<width
	}
	return int64(v)
}

func TestEveryFormOfVideoInstructions(t *testing.T) {
	operations := map[string]func(a, b int64) int64{
		"vadd": func(a, b int64) int64 { return a + b }, "vsub": func(a, b int64) int64 { return a - b }, "vmin": func(a, b int64) int64 { return min(a, b) },
		"vmax": func(a, b int64) int64 { return max(a, b) },
		"vabsdiff": func(a, b int64) int64 {
			if a > b {
				return a - b
			}
			return b - a
		},
	}
	bounds := func(signed bool, width int) (low, high int64) {
		if signed {
			return -1 << (width - 1), 1<<(width-1) - 1
		}
		return 0, 1<<width - 1
	}
	parts := []string{"", ".b0", ".b3", ".h0", ".h1", ".b1", ".b2"}
	number := 0
	for _, name := range []string{"vadd", "vsub", "vabsdiff", "vmin", "vmax"} {
		for types := range 8 {
			signed := [3]bool{types&1 != 0, types&2 != 0, types&4 != 0}
			suffix := ""
			for _, s := range signed {
				suffix += map[bool]string{true: ".s32", false: ".u32"}[s]
			}
			for _, sat := range []bool{false, true} {
				for _, second := range []string{"", "add", "min", "max", ".b0", ".b2", ".h0", ".h1"} {
					number++
					pa, pb := parts[number%len(parts)], parts[number/3%len(parts)]
					word := name + suffix + map[bool]string{true: ".sat"}[sat]
					width, place := 32, ""
					code := "%rd, %ra" + pa + ", %rb" + pb
					switch {
					case second != "" && second[0] == '.':
						place = second
						width = map[byte]int{'b': 8, 'h': 16}[place[1]]
						code = "%rd" + place + ", %ra" + pa + ", %rb" + pb + ", %rc"
					case second != "":
						word += "." + second
						code += ", %rc"
					}
					form{fmt.Sprintf("%s %s;", word, code), "u32 u32 u32 u32", func(v [3]uint64) (uint64, bool) {
						r := operations[name](selected(v[0], pa, signed[1]), selected(v[1], pb, signed[2]))
						low, high := bounds(signed[0], width)
						if sat {
							r = min(max(r, low), high)
						}
						if place != "" {
							shift := width * int(place[2]-'0')
							keep := uint64(1<<width-1) << shift
							return v[2]&^keep | uint64(r)<<shift&keep, true
						}
						low, high = bounds(signed[0], 32)
						if (r < low || r > high) && (second == "min" || second == "max") {
							return 0, false // compared as more than 32 bits, or not
						}
						third := selected(v[2], "", signed[0])
						switch second {
						case "add":
							r += third
						case "min":
							r = min(r, third)
						case "max":
							r = max(r, third)
						}
						return uint64(uint32(r)), true
					}}.check(t)
				}
			}
		}
	}
}

// vmad multiplies parts, negates at most one side of the sum, adds one or not, shifts, and saturates or not.
func TestEveryFormOfVideoProducts(t *testing.T) {
	parts := []string{"", ".b0", ".b1", ".b2", ".b3", ".h0", ".h1"}
	number := 0
	for types := range 8 {
		signed := [3]bool{types&1 != 0, types&2 != 0, types&4 != 0}
		suffix := ""
		for _, s := range signed {
			suffix += map[bool]string{true: ".s32", false: ".u32"}[s]
		}
		for _, sat := range []string{"", ".sat"} {
			for shifted, shift := range map[string]int{"": 0, ".shr7": 7, ".shr15": 15} {
				for _, c := range []struct{ po, a, b, c string }{{"", "", "", ""}, {".po", "", "", ""}, {"", "-", "", ""}, {"", "", "-", ""}, {"", "-", "-", ""}, {"", "", "", "-"}} {
					number++
					pa, pb := parts[number%len(parts)], parts[number/2%len(parts)]
					if pa == "" {
						pa = ".h1" // a product of two whole words has more bits than its result is defined for
					}
					code := fmt.Sprintf("vmad%s%s%s %%rd, %s%%ra%s, %s%%rb%s, %s%%rc;", suffix, sat, shifted, c.a, pa, c.b, pb, c.c)
					if c.po != "" {
						code = fmt.Sprintf("vmad%s.po%s%s %%rd, %%ra%s, %%rb%s, %%rc;", suffix, sat, shifted, pa, pb)
					}
					form{code, "u32 u32 u32 u32", func(v [3]uint64) (uint64, bool) {
						r := selected(v[0], pa, signed[1]) * selected(v[1], pb, signed[2])
						if c.a != c.b {
							r = -r
						}
						third := selected(v[2], "", signed[0] || signed[1] || signed[2])
						if c.c != "" {
							third = -third
						}
						r += third
						if c.po != "" {
							r++
						}
						r >>= shift
						if sat != "" && signed[0] {
							r = min(max(r, -1<<31), 1<<31-1)
						} else if sat != "" {
							r = min(max(r, 0), 1<<32-1)
						}
						return uint64(uint32(r)), true
					}}.check(t)
				}
			}
		}
	}
}
