// Suggestions for misspelt names: the candidate that was probably meant.

package words

import (
	"fmt"
	"unicode/utf8"
)

// Suggest returns the candidate nearest to name, or "" if none is near enough to have been meant. Ties go to the first.
func Suggest(name string, candidates []string) string {
	best, least := "", min((utf8.RuneCountInString(name)+1)/3, 3)
	for _, c := range candidates {
		if d := distance(name, c, least); d <= least && (best == "" || d < least) && c != name {
			best, least = c, d
		}
	}
	return best
}

// DidYouMean is a hint at the candidate nearest to a name, or "".
func DidYouMean(name string, candidates []string) string {
	if near := Suggest(name, candidates); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	return ""
}

// distance is the number of letters to insert, delete, replace or swap with their neighbour to get from a to b; above limit
// it may return any larger number.
func distance(a, b string, limit int) int {
	s, t := []rune(a), []rune(b)
	if len(s)-len(t) > limit || len(t)-len(s) > limit {
		return limit + 1
	}
	before, last, row := make([]int, len(t)+1), make([]int, len(t)+1), make([]int, len(t)+1)
	for j := range last {
		last[j] = j
	}
	for i := range s {
		row[0] = i + 1
		least := row[0]
		for j := range t {
			cost := 1
			if s[i] == t[j] {
				cost = 0
			}
			row[j+1] = min(last[j+1]+1, row[j]+1, last[j]+cost)
			if i > 0 && j > 0 && s[i] == t[j-1] && s[i-1] == t[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
			least = min(least, row[j+1])
		}
		if least > limit {
			return least
		}
		before, last, row = last, row, before
	}
	return last[len(t)]
}
