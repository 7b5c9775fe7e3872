// The page on learning, taken at its word: its commands run, and the test that it names exists.

package tests

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/runtime/cache"
)

func TestLearningPageCommandsRun(t *testing.T) {
	page, err := os.ReadFile("../docs/learning.md")
	require.NoError(t, err)
	dagrun := filepath.Join(t.TempDir(), "dagrun")
	output(t, "..", "go", "build", "-o", dagrun, "./cmd/dagrun")
	t.Setenv(cache.Variable, t.TempDir())
	var ran []string
	for _, m := range regexp.MustCompile("(?ms)^```\n(.*?)^```$").FindAllStringSubmatch(string(page), -1) {
		for line := range strings.Lines(m[1]) {
			command, _, _ := strings.Cut(line, "#")
			words := strings.Fields(command)
			require.Equal(t, "dagrun", words[0])
			ran = append(ran, words[1])
			got := output(t, "..", dagrun, words[1:]...)
			switch words[1] {
			case "tune":
				require.Contains(t, got, "\nbest: dagrun ")
			case "bench":
				require.Regexp(t, `\n(best|no winner: \d+ points \(=\) differ by no more than their replays do; one of them): dagrun `, got)
			}
		}
	}
	require.Greater(t, len(ran), 6)
	names := regexp.MustCompile("`([\\w/]+)/(Test\\w+)`").FindAllStringSubmatch(string(page), -1)
	require.NotEmpty(t, names)
	for _, name := range names {
		require.True(t, hasTest(t, name[1], name[2]), "%s has no %s", name[1], name[2])
	}
}
