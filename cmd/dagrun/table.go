// Tables: aligned columns of text, measured as a terminal shows them.

package main

import (
	"bufio"
	"io"
	"slices"
	"strings"

	"github.com/dagrun/dagrun/internal/words"
)

// table collects rows and writes them aligned. Columns whose every cell looks like a number are aligned to the right.
type table struct {
	head []string
	rows [][]string
}

func newTable(head ...string) *table { return &table{head: head} }

func (t *table) row(cells ...string) {
	for i := range cells {
		cells[i] = words.Line(cells[i]) // before its width is measured
	}
	t.rows = append(t.rows, cells)
}

// narrowest is the least width of a wrapped column; if there is less room, lines stay as long as they are.
const narrowest = 16

// gap is what separates columns.
const gap = "  "

// write writes the table. If lines would be longer than width, the widest columns of text are wrapped; 0 means no limit.
func (t *table) write(w io.Writer, width int) error {
	widths, numbers := make([]int, len(t.head)), make([]bool, len(t.head))
	for i, h := range t.head {
		widths[i], numbers[i] = words.Width(h), len(t.rows) > 0
		for _, row := range t.rows {
			widths[i] = max(widths[i], words.Width(row[i]))
			numbers[i] = numbers[i] && (row[i] == "" || row[i] == "-" || row[i][0] >= '0' && row[i][0] <= '9')
		}
	}
	fit(widths, numbers, width)
	b := bufio.NewWriter(w)
	for _, row := range append([][]string{t.head}, t.rows...) {
		lines, most := make([][]string, len(row)), 1
		for i, cell := range row {
			lines[i] = wrap(cell, widths[i])
			most = max(most, len(lines[i]))
		}
		for k := range most {
			var text strings.Builder
			for i := range row {
				cell := ""
				if k < len(lines[i]) {
					cell = lines[i][k]
				}
				if i > 0 {
					text.WriteString(gap)
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
	return b.Flush()
}

// fit narrows columns of text, always the widest, until a line has at most width columns. If that is impossible, it changes nothing.
func fit(widths []int, numbers []bool, width int) {
	if width == 0 {
		return
	}
	fitted := slices.Clone(widths)
	line := (len(widths) - 1) * len(gap)
	for _, n := range widths {
		line += n
	}
	for ; line > width; line-- {
		widest := -1
		for i, n := range fitted {
			if !numbers[i] && n > narrowest && (widest < 0 || n > fitted[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			return
		}
		fitted[widest]--
	}
	copy(widths, fitted)
}

// wrap breaks text between words into lines of at most width columns. A word that is longer has a line of its own.
func wrap(text string, width int) []string {
	if words.Width(text) <= width {
		return []string{text}
	}
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
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
