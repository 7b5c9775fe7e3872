// Tables: aligned columns of text, measured as a terminal shows them.

package main

import (
	"bufio"
	"io"
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
		cells[i] = words.Line(cells[i]) // before its width is taken
	}
	t.rows = append(t.rows, cells)
}

func (t *table) write(w io.Writer) error {
	widths, numbers := make([]int, len(t.head)), make([]bool, len(t.head))
	for i, h := range t.head {
		widths[i], numbers[i] = words.Width(h), len(t.rows) > 0
		for _, row := range t.rows {
			widths[i] = max(widths[i], words.Width(row[i]))
			numbers[i] = numbers[i] && (row[i] == "" || row[i] == "-" || row[i][0] >= '0' && row[i][0] <= '9')
		}
	}
	b := bufio.NewWriter(w)
	line := func(cells []string) {
		var text strings.Builder
		for i, cell := range cells {
			if i > 0 {
				text.WriteString("  ")
			}
			pad := strings.Repeat(" ", widths[i]-words.Width(cell))
			if numbers[i] {
				text.WriteString(pad + cell)
			} else {
				text.WriteString(cell + pad)
			}
		}
		b.WriteString(strings.TrimRight(text.String(), " ") + "\n")
	}
	line(t.head)
	for _, row := range t.rows {
		line(row)
	}
	return b.Flush()
}
