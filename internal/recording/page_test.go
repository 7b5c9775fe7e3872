// Tests that docs/recording.md tells of the files as they are, and leads to format.h for the rest.

package recording_test

import (
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

// format.h, which docs/recording.md leads to, has the kinds of records that are read, with their numbers in order.
func TestFormatHasTheKindsThatAreRead(t *testing.T) {
	page, err := os.ReadFile(formatPage)
	require.NoError(t, err)
	require.Contains(t, string(page), "(../cudart/recorder/library/format.h)")
	source, err := os.ReadFile(filepath.Join("..", "..", "cudart", "recorder", "library", "format.h"))
	require.NoError(t, err)
	_, list, found := strings.Cut(string(source), "    RECORD_THREAD = 1,")
	require.True(t, found)
	list, _, _ = strings.Cut("    RECORD_THREAD = 1,"+list, "};")
	number, seen := 0, 0
	for _, m := range regexp.MustCompile(`(?m)^\s*(?:RECORD|CALL)_[A-Z_]+(?: = (\d+))?,\s*//.*$`).FindAllStringSubmatch(list, -1) {
		number++
		if m[1] != "" {
			number, _ = strconv.Atoi(m[1])
		}
		require.NotRegexp(t, `^kind \d+$`, recording.Kind(number).String(), "nothing reads this kind")
		seen++
	}
	require.Equal(t, recording.KnownKinds(), seen)
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
