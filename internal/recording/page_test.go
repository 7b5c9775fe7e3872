// Tests that docs/recording.md tells of the files as they are: most of its tables are made from format.h.

package recording_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/internal/recording"
)

const formatPage = "../../docs/recording.md"

// TestFormatPage compares the tables of docs/recording.md with format.h; DAGRUN_UPDATE_SCRIPTS=1 writes them again.
func TestFormatPage(t *testing.T) {
	source, err := os.ReadFile(filepath.Join("..", "..", "cudart", "recorder", "library", "format.h"))
	require.NoError(t, err)
	page, err := os.ReadFile(formatPage)
	require.NoError(t, err)
	tables := 0
	want := regexp.MustCompile(`(?s)<!-- from format\.h: ([^\n]*) -->\n.*?<!-- end -->`).ReplaceAllStringFunc(string(page), func(old string) string {
		tables++
		what := strings.TrimPrefix(old[:strings.Index(old, " -->")], "<!-- from format.h: ")
		text := ""
		switch what {
		case "records":
			text = "\n" + recordTable(t, string(source)) + "\n"
		case "bodies of nodes":
			text = "\n" + bodies(t, string(source)) + "\n\n"
		case "enums":
			text = enumTable(string(source))
		default:
			for name := range strings.SplitSeq(what, ", ") {
				text += "\n" + structTable(t, string(source), strings.TrimPrefix(name, "struct "))
			}
			text += "\n"
		}
		return "<!-- from format.h: " + what + " -->\n" + text + "<!-- end -->"
	})
	require.Equal(t, 5, tables)
	if os.Getenv("DAGRUN_UPDATE_SCRIPTS") != "" {
		require.NoError(t, os.WriteFile(formatPage, []byte(want), 0o644))
		return
	}
	require.Equal(t, want, string(page), "docs/recording.md is not what format.h says; DAGRUN_UPDATE_SCRIPTS=1 go test ./internal/recording -run TestFormatPage writes it again")
}

func cell(text string) string { return strings.ReplaceAll(strings.TrimSpace(text), "|", `\|`) }

// recordTable lists the kinds of records.
func recordTable(t *testing.T, source string) string {
	out := "| number | record | words | tail |\n|---|---|---|---|\n"
	list := source[strings.Index(source, "RECORD_THREAD = 1,"):]
	number, seen := 0, 0
	for line := range strings.SplitSeq(list[:strings.Index(list, "};")], "\n") {
		m := regexp.MustCompile(`^\s*(RECORD|CALL)_([A-Z_]+)(?: = (\d+))?,\s*// ?(.*)$`).FindStringSubmatch(line)
		if m == nil {
			continue
		}
		number++
		if m[3] != "" {
			number, _ = strconv.Atoi(m[3])
		}
		words, tail, _ := strings.Cut(m[4], "tail:")
		name := recording.Kind(number).String()
		if m[1] == "CALL" {
			name += " (call)"
		}
		out += fmt.Sprintf("| %d | %s | %s | %s |\n", number, name, cell(strings.TrimRight(strings.TrimSpace(words), ";")), cell(tail))
		seen++
	}
	require.Equal(t, recording.KnownKinds(), seen)
	return out
}

// structTable lists the fields of a structure with their offsets.
func structTable(t *testing.T, source, name string) string {
	_, rest, found := strings.Cut(source, "struct "+name+" {\n")
	require.True(t, found, name)
	out := "| at | bytes | of `" + name + "` | meaning |\n|---|---|---|---|\n"
	at := 0
	for line := range strings.SplitSeq(rest[:strings.Index(rest, "};")], "\n") {
		m := regexp.MustCompile(`^\s*uint(\d+)_t ([a-z_, ]+);\s*(?://\s*(.*))?$`).FindStringSubmatch(line)
		if m == nil {
			require.Empty(t, strings.TrimSpace(line))
			continue
		}
		bits, err := strconv.Atoi(m[1])
		require.NoError(t, err)
		for field := range strings.SplitSeq(m[2], ", ") {
			out += fmt.Sprintf("| %d | %d | `%s` | %s |\n", at, bits/8, field, cell(m[3]))
			at += bits / 8
		}
	}
	return out
}

// bodies is the comment on what the bytes of a node are.
func bodies(t *testing.T, source string) string {
	_, rest, found := strings.Cut(source, "// What the bytes are, ")
	require.True(t, found)
	rest, _, _ = strings.Cut(rest, "\n\n")
	return "What the bytes of a node are, " + strings.ReplaceAll(rest, "\n// ", " ")
}

// enumTable lists the other names and their values.
func enumTable(source string) string {
	out := "\n| names | values |\n|---|---|\n"
	for _, m := range regexp.MustCompile(`(?m)^enum \{ ([A-Z]+)_(.*?) \};(?: // (.*))?$`).FindAllStringSubmatch(source, -1) {
		var values []string
		next := 0
		for item := range strings.SplitSeq(m[1]+"_"+m[2], ", ") {
			name, value, given := strings.Cut(item, " = ")
			if given {
				next, _ = strconv.Atoi(value)
			}
			values = append(values, fmt.Sprintf("%d %s", next, strings.TrimPrefix(name, m[1]+"_")))
			next++
		}
		more := ""
		if m[3] != "" {
			more = " (" + cell(m[3]) + ")"
		}
		out += fmt.Sprintf("| %s | %s%s |\n", m[1], strings.Join(values, ", "), more)
	}
	return out + "\n"
}

// The rest of the page: the header of a section, kinds and magic numbers of a recording.
func TestPageOfSections(t *testing.T) {
	text, err := os.ReadFile(formatPage)
	require.NoError(t, err)
	page := string(text)
	for _, said := range recording.SaidOfSections() {
		require.Contains(t, page, said)
	}
	rows := regexp.MustCompile(`(?m)^\| (\d+) \| (\d+) \| [^|]* \|$`).FindAllStringSubmatch(page[:strings.Index(page, "## A part")], -1)
	at := 0
	for _, row := range rows {
		require.Equal(t, strconv.Itoa(at), row[1])
		bytes, err := strconv.Atoi(row[2])
		require.NoError(t, err)
		at += bytes
	}
	require.Equal(t, recording.SectionHeader, at)
}
