// Tables: aligned columns of text, measured as a terminal shows them.

package cli

import (
	"bufio"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/dagrun/dagrun/internal/words"
)

// Table collects rows and writes them aligned. Columns whose every cell looks like a number are aligned to the right.
type Table struct {
	head []string
	rows [][]string
	Keys int // how many columns say what a row is about; 0 stands for one
}

func NewTable(head ...string) *Table { return &Table{head: head} }

func (t *Table) Row(cells ...string) {
	for i := range cells {
		cells[i] = words.Line(cells[i]) // before its width is measured
	}
	t.rows = append(t.rows, cells)
}

// narrowest is the least width of a wrapped column of text.
const narrowest = 16

// Write writes the table, with lines of at most width columns; 0 means no limit. In this order, it wraps the heads and the widest columns of
// text, narrows the gaps, and puts columns that are still too many below the others, with the key columns repeated.
func (t *Table) Write(w io.Writer, width int) error {
	b := bufio.NewWriter(w)
	widths, numbers := t.widths()
	gap := 2
	if width > 0 && lineOf(widths, gap) > width {
		t.wrapHeads(widths, numbers)
		if !fit(widths, numbers, gap, width) && fit(widths, numbers, 1, width) {
			gap = 1
		}
	}
	for k, columns := range t.blocks(widths, gap, width) {
		if k > 0 {
			b.WriteByte('\n')
		}
		for _, row := range append([][]string{t.head}, t.rows...) {
			t.writeRow(b, row, columns, widths, numbers, gap)
		}
	}
	return b.Flush()
}

// widths returns the width of each column, and which ones have only numbers.
func (t *Table) widths() (widths []int, numbers []bool) {
	widths, numbers = make([]int, len(t.head)), make([]bool, len(t.head))
	for i, h := range t.head {
		widths[i], numbers[i] = words.Width(h), len(t.rows) > 0
		for _, row := range t.rows {
			widths[i] = max(widths[i], words.Width(row[i]))
			numbers[i] = numbers[i] && (row[i] == "" || row[i] == "-" || row[i][0] >= '0' && row[i][0] <= '9')
		}
	}
	return widths, numbers
}

// wrapHeads narrows columns of numbers whose head is wider than they are.
func (t *Table) wrapHeads(widths []int, numbers []bool) {
	for i, h := range t.head {
		if !numbers[i] {
			continue
		}
		widths[i] = 0
		for _, word := range pieces(h) {
			widths[i] = max(widths[i], words.Width(word))
		}
		for _, row := range t.rows {
			widths[i] = max(widths[i], words.Width(row[i]))
		}
	}
}

// blocks divides the columns into tables that are at most width columns wide, if that is possible.
func (t *Table) blocks(widths []int, gap, width int) [][]int {
	all := make([]int, len(widths))
	for i := range all {
		all[i] = i
	}
	if width == 0 || lineOf(widths, gap) <= width {
		return [][]int{all}
	}
	keys := min(max(t.Keys, 1), len(all))
	var blocks [][]int
	for rest := all[keys:]; len(rest) > 0; {
		block := slices.Clone(all[:keys])
		line := lineOf(widths[:keys], gap)
		for len(rest) > 0 && (len(block) == keys || line+gap+widths[rest[0]] <= width) {
			line += gap + widths[rest[0]]
			block = append(block, rest[0])
			rest = rest[1:]
		}
		blocks = append(blocks, block)
	}
	return blocks
}

// writeRow writes some columns of a row, on as many lines as its cells take.
func (t *Table) writeRow(b *bufio.Writer, row []string, columns, widths []int, numbers []bool, gap int) {
	lines, most := make([][]string, len(row)), 1
	for _, i := range columns {
		lines[i] = Wrap(row[i], widths[i])
		most = max(most, len(lines[i]))
	}
	for k := range most {
		var text strings.Builder
		for at, i := range columns {
			cell := ""
			if k < len(lines[i]) {
				cell = lines[i][k]
			}
			if at > 0 {
				text.WriteString(strings.Repeat(" ", gap))
			}
			pad := strings.Repeat(" ", max(0, widths[i]-words.Width(cell)))
			if numbers[i] {
				text.WriteString(pad + cell)
			} else {
				text.WriteString(cell + pad)
			}
		}
		b.WriteString(strings.TrimRight(text.String(), " ") + "\n")
	}
}

// lineOf is the width of a line.
func lineOf(widths []int, gap int) int {
	line := max(0, len(widths)-1) * gap
	for _, n := range widths {
		line += n
	}
	return line
}

// fit narrows columns of text, always the widest, until a line has at most width columns. If that is impossible, it changes nothing.
func fit(widths []int, numbers []bool, gap, width int) bool {
	fitted := slices.Clone(widths)
	for line := lineOf(widths, gap); line > width; line-- {
		widest := -1
		for i, n := range fitted {
			if !numbers[i] && n > narrowest && (widest < 0 || n > fitted[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			return false
		}
		fitted[widest]--
	}
	copy(widths, fitted)
	return true
}

// Wrap breaks text between words into lines of at most width columns. A word that is longer has a line of its own.
func Wrap(text string, width int) []string {
	if words.Width(text) <= width {
		return []string{text}
	}
	var lines []string
	line := ""
	for _, word := range pieces(text) {
		switch {
		case line == "":
			line = word
		case words.Width(line)+1+words.Width(word) <= width:
			line += " " + word
		default:
			lines = append(lines, line)
			line = word
		}
	}
	return append(lines, line)
}

// pieces are the words that a text is broken between. A head that is long can be broken in its middle.
func pieces(text string) []string {
	var all []string
	for _, word := range strings.Fields(text) {
		if word == "measured/predicted" {
			all = append(all, "measured/", "predicted")
		} else {
			all = append(all, word)
		}
	}
	return all
}

func Dash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

func NonZero(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

// ShellQuoted makes text one word of a shell.
func ShellQuoted(text string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-./=,:+@%", r)
	}
	if text != "" && strings.IndexFunc(text, func(r rune) bool { return !plain(r) }) < 0 {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// Fixed prints microseconds for a column: one decimal, two below ten.
func Fixed(us float64) string {
	if us < 10 {
		return strconv.FormatFloat(us, 'f', 2, 64)
	}
	return strconv.FormatFloat(us, 'f', 1, 64)
}
