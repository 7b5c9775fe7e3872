// Tables of results, as Markdown.

package main

import (
	"fmt"
	"sort"
	"strings"
)

type table struct {
	title string
	head  []string
	rows  [][]string
	notes []string
}

func (t *table) row(cells ...string) { t.rows = append(t.rows, cells) }

func (t *table) markdown() string {
	widths := make([]int, len(t.head))
	for _, row := range append([][]string{t.head}, t.rows...) {
		for i, cell := range row {
			widths[i] = max(widths[i], len(cell))
		}
	}
	var b strings.Builder
	line := func(row []string) {
		for i, cell := range row {
			if i == 0 {
				fmt.Fprintf(&b, "| %-*s ", widths[i], cell)
			} else {
				fmt.Fprintf(&b, "| %*s ", widths[i], cell)
			}
		}
		b.WriteString("|\n")
	}
	fmt.Fprintf(&b, "\n### %s\n\n", t.title)
	line(t.head)
	rule := make([]string, len(widths))
	for i, w := range widths {
		rule[i] = strings.Repeat("-", w)
	}
	line(rule)
	for _, row := range t.rows {
		line(row)
	}
	for _, note := range t.notes {
		fmt.Fprintf(&b, "\n%s\n", note)
	}
	return b.String()
}

// figure prints a number with three significant digits, or "-" if there is none.
func figure(v float64) string {
	switch {
	case v == 0:
		return "-"
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	case v >= 1:
		return fmt.Sprintf("%.2f", v)
	}
	return fmt.Sprintf("%.3f", v)
}

// ratio prints a/b to three places: some bars are at 2%.
func ratio(a, b float64) string {
	if a == 0 || b == 0 {
		return "-"
	}
	return fmt.Sprintf("%.3f", a/b)
}

func median(samples []float64) float64 {
	if len(samples) == 0 {
		return 0
	}
	sorted := append([]float64(nil), samples...)
	sort.Float64s(sorted)
	if n := len(sorted); n%2 == 0 {
		return (sorted[n/2-1] + sorted[n/2]) / 2
	}
	return sorted[len(sorted)/2]
}

// medianRatio returns the median of the ratios per round: drift during a run affects both times of a round equally.
func medianRatio(a, b []float64) float64 {
	if len(a) != len(b) {
		return 0
	}
	ratios := make([]float64, len(a))
	for i := range a {
		ratios[i] = a[i] / b[i]
	}
	return median(ratios)
}
