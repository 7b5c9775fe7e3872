// A test of what a reader types besides the examples that show their output: commands in the text of the README and of docs/, and in blocks
// of shell lines.

package tests

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/runtime/cache"
)

// notTyped are commands of the text that are only names (they need a file), that talk to an editor, or that measure for seconds; other
// tests run those.
var notTyped = regexp.MustCompile(`^dagrun (run|check|trace|bench|plan|dot|fmt|tune|launch|lsp|init)$|^dagrun record\b|^dagrun (bench|lsp)\b|--measure|--save-profile$|^dagrun plan --|smooth\.yaml`)

// typed replaces the words that stand for what a reader has.
var typed = strings.NewReplacer("dagrun kernels FILE", "dagrun kernels pipelines/add2.cu", "dagrun kernels NAME", "dagrun kernels gemm", "FILE", "pipelines/saxpy.yaml", "COMMAND", "run", "docs/", "")

// What stands as a command in the text of a page, or in a block of shell lines, runs.
func TestWhatThePagesTypeRuns(t *testing.T) {
	t.Setenv(cache.Variable, t.TempDir())
	s := newShell(t, builtDagrun(t))
	t.Run("text", func(t *testing.T) { s.runText(t) })
	t.Run("blocks", func(t *testing.T) { s.runBlocks(t) })
	t.Run("bringing", func(t *testing.T) { s.runBringing(t) })
}

// runText runs the commands in the text, each once. The README's come first: what they write is used by later ones.
func (s *shell) runText(t *testing.T) {
	pages, err := filepath.Glob("../docs/*.md")
	require.NoError(t, err)
	var ran []string
	for _, name := range append([]string{"../README.md"}, pages...) {
		for _, m := range regexp.MustCompile("`(dagrun [^`\n]*)`").FindAllStringSubmatch(page(t, strings.TrimPrefix(name, "../")), -1) {
			line := typed.Replace(m[1])
			if notTyped.MatchString(m[1]) || slices.Contains(ran, line) {
				continue
			}
			ran = append(ran, line)
			out, err := s.run(line)
			if line == "dagrun check pipelines/race.yaml" || strings.HasPrefix(line, "dagrun check ") && strings.Contains(line, ".rec") {
				require.Error(t, err, "it has a race")
				continue
			}
			require.NoError(t, err, "%s, %s: %s", name, line, out)
		}
	}
	require.Greater(t, len(ran), 20)
}

// runBlocks runs the blocks of shell lines on the pages, without those of docs/commands.md, which have tests of their own, and without what
// needs a cluster on docs/scaling.md.
func (s *shell) runBlocks(t *testing.T) {
	pages, err := filepath.Glob("../docs/*.md")
	require.NoError(t, err)
	ran := 0
	for _, name := range pages {
		if base := filepath.Base(name); base == "commands.md" {
			continue
		}
		for _, block := range fences(page(t, strings.TrimPrefix(name, "../")), "sh") {
			for line := range strings.Lines(block) {
				if strings.HasSuffix(name, "scaling.md") && (!strings.HasPrefix(line, "dagrun ") || strings.Contains(line, "--graph")) {
					continue
				}
				if strings.Contains(line, "heat.yaml") && os.Getenv("DAGRUN_LONG") == "" {
					continue // it plans thousands of nodes for eight devices
				}
				out, err := s.run(line)
				require.NoError(t, err, "%s, %s: %s", name, line, out)
				ran++
			}
		}
	}
	require.Greater(t, ran, 5)
}

// runBringing compares what the page on bringing a program over shows of its file.
func (s *shell) runBringing(t *testing.T) {
	if !haveCompiler() {
		t.Skip("needs a compiler for CUDA C: install clang 14 or newer")
	}
	line, want, found := strings.Cut(strings.TrimPrefix(fences(page(t, "docs/bringing.md"), "")[0], "$ "), "\n")
	require.True(t, found)
	out, err := s.run(line)
	require.NoError(t, err, out)
	require.Equal(t, want, out)
}
