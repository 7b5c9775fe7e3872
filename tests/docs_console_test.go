// Tests of what a reader of docs/ and of the README can type: the commands run, and print what the pages show.

package tests

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/runtime"
	"github.com/dagrun/dagrun/runtime/cache"
)

// shell runs lines as a reader would: in a folder with the pipelines, with dagrun on the path.
type shell struct{ folder, bin string }

func newShell(t *testing.T, bin string) *shell {
	t.Helper()
	s := &shell{t.TempDir(), bin}
	require.NoError(t, os.CopyFS(filepath.Join(s.folder, "pipelines"), os.DirFS("../pipelines")))
	recorded, err := os.ReadFile("../internal/recording/order/testdata/recordings/seed.rec") // what the pages call infer.rec, seed.rec, one.rec and two.rec
	require.NoError(t, err)
	for _, name := range []string{"infer.rec", "seed.rec", "one.rec", "two.rec"} {
		require.NoError(t, os.WriteFile(filepath.Join(s.folder, name), recorded, 0o644))
	}
	graph, err := os.ReadFile("../cmd/dagrun/internal/replan/testdata/vit.rec") // net.rec: a recording with a captured graph
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(s.folder, "net.rec"), graph, 0o644))
	return s
}

func builtDagrun(t *testing.T) (bin string) {
	t.Helper()
	bin = t.TempDir()
	output(t, "..", "go", "build", "-o", filepath.Join(bin, "dagrun"), "./cmd/dagrun")
	return bin
}

func (s *shell) run(line string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, "bash", "-c", "set -o pipefail; "+line)
	c.Dir = s.folder
	c.Env = append(os.Environ(), "PATH="+s.bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	out, err := c.CombinedOutput()
	return string(out), err
}

func fences(text, language string) []string {
	var blocks []string
	for _, m := range regexp.MustCompile("(?ms)^```"+language+"\n(.*?)^```$").FindAllStringSubmatch(text, -1) {
		blocks = append(blocks, m[1])
	}
	return blocks
}

// Every example of the page of commands runs, in the order of the page.
func TestExamplesOfTheCommandsPageRun(t *testing.T) {
	t.Setenv(cache.Variable, t.TempDir())
	s := newShell(t, builtDagrun(t))
	// What the examples call mine.yaml and plan.json.
	for _, line := range []string{"dagrun init mine", "dagrun plan mine.yaml --save-plan plan.json"} {
		out, err := s.run(line)
		require.NoError(t, err, "%s: %s", line, out)
	}
	ran := 0
	for _, block := range fences(page(t, "docs/commands.md"), "sh") {
		for line := range strings.Lines(block) {
			line, _, _ = strings.Cut(strings.TrimSpace(line), "  ")
			if line == "dagrun lsp" || strings.Contains(line, "--nodes") || strings.HasPrefix(line, "dagrun record") {
				continue // an editor talks to the first, the second needs several machines, the last a GPU; the tests of the command run all
			}
			if lacksJQ(t, line) {
				continue
			}
			switch { // these take as long as they measure, so less is asked of them
			case strings.HasPrefix(line, "dagrun tune"):
				line += " --for 100ms"
			case strings.HasPrefix(line, "dagrun bench"):
				line += " --strategy list --streams 2 --iterations 5 --warmup 1"
			}
			out, err := s.run(line)
			if line == "dagrun check pipelines/race.yaml" || line == "dagrun check pipelines/*.yaml" || strings.HasPrefix(line, "dagrun check ") && strings.Contains(line, ".rec") {
				require.Error(t, err, "%s: a file has races", line)
				require.Contains(t, out, "race on ", line)
			} else {
				require.NoError(t, err, "%s: %s", line, out)
			}
			ran++
		}
	}
	require.Greater(t, ran, 40)
}

// lacksJQ reports whether a line needs jq and this machine has none, and then says that the test leaves it out.
func lacksJQ(t *testing.T, line string) bool {
	t.Helper()
	if !strings.Contains(line, "| jq ") {
		return false
	}
	_, err := exec.LookPath("jq")
	if err != nil {
		t.Logf("NOT ALL TESTED: %s (without jq, not: %s)", t.Name(), line)
	}
	return err != nil
}

// A block of a page that is marked as console shows commands after "$ ", and below each what it prints; a line of ... stands for any lines.
// DAGRUN_UPDATE_SCRIPTS=1 writes what the commands print, except where a block has such a line.
func TestPagesShowWhatCommandsPrint(t *testing.T) {
	bin, update := builtDagrun(t), os.Getenv("DAGRUN_UPDATE_SCRIPTS") != ""
	names, err := filepath.Glob("../docs/*.md")
	require.NoError(t, err)
	ran := 0
	for _, name := range append(names, "../README.md") {
		blocks := fences(page(t, strings.TrimPrefix(name, "../")), "console")
		if len(blocks) == 0 {
			continue
		}
		t.Run(filepath.Base(name), func(t *testing.T) {
			s := newShell(t, bin)
			for _, block := range blocks {
				written := ""
				for _, step := range strings.Split("\n"+block, "\n$ ")[1:] {
					line, want, _ := strings.Cut(step, "\n")
					if want = strings.TrimRight(want, "\n"); want != "" {
						want += "\n"
					}
					if lacksJQ(t, line) {
						require.False(t, update, "the page cannot be written again without jq")
						continue
					}
					out, _ := s.run(line) // some of the commands fail on purpose
					got := strings.TrimRight(out, "\n")
					if got != "" {
						got += "\n"
					}
					written += "$ " + line + "\n" + got
					ran++
					if update && !strings.Contains(block, "\n...\n") {
						continue
					}
					pattern := "^" + strings.ReplaceAll(regexp.QuoteMeta(want), `\.\.\.`+"\n", `(?:.*\n)*`) + "$"
					require.Regexp(t, pattern, got, "$ %s; DAGRUN_UPDATE_SCRIPTS=1 writes the page again", line)
				}
				if update && !strings.Contains(block, "\n...\n") {
					text := strings.Replace(page(t, strings.TrimPrefix(name, "../")), "```console\n"+block+"```", "```console\n"+written+"```", 1)
					require.NoError(t, os.WriteFile(name, []byte(text), 0o666))
				}
			}
		})
	}
	require.Greater(t, ran, 3)
}

// links are the targets in the repository that a page links to.
func links(text string) []string {
	var targets []string
	for _, m := range regexp.MustCompile(`\]\(([^)\s]+)\)`).FindAllStringSubmatch(text, -1) {
		if target, _, _ := strings.Cut(m[1], "#"); target != "" && !strings.Contains(target, "://") {
			targets = append(targets, target)
		}
	}
	return targets
}

func TestLinksOfPagesLeadSomewhere(t *testing.T) {
	for _, pattern := range []string{"../*.md", "../docs/*.md", "../*/README.md", "../*/*/*.md"} {
		names, err := filepath.Glob(pattern)
		require.NoError(t, err)
		for _, name := range names {
			for _, target := range links(page(t, strings.TrimPrefix(name, "../"))) {
				_, err := os.Stat(filepath.Join(filepath.Dir(name), filepath.FromSlash(target)))
				require.NoError(t, err, "%s links to %s", name, target)
			}
		}
	}
}

// The README leads to the index of docs/, and the index to every page.
func TestIndexListsEveryPage(t *testing.T) {
	require.Contains(t, links(page(t, "README.md")), "docs/README.md")
	index := links(page(t, "docs/README.md"))
	names, err := filepath.Glob("../docs/*.md")
	require.NoError(t, err)
	for _, name := range names {
		if base := filepath.Base(name); base != "README.md" {
			require.Contains(t, index, base, "docs/README.md does not list %s", base)
		}
	}
}

// The first program of the page on embedding is in a module of its own, whose tests record the calls that it makes of plans and check their order.
func TestCallsOfTheEmbeddingPageAreOrdered(t *testing.T) {
	const dir = "embedding"
	require.Equal(t, fences(page(t, "docs/embedding.md"), "go")[0], page(t, "tests/embedding/main.go"))
	require.Equal(t, page(t, "go.sum"), page(t, "tests/embedding/go.sum"), "cp go.sum tests/embedding")
	require.Empty(t, output(t, dir, "gofmt", "-l", "."))
	require.Empty(t, output(t, dir, "go", "vet", "."))
	require.Contains(t, output(t, dir, "go", "test", "."), "ok")
}

// The programs of the page on embedding compile in another module, run, and print what the page shows.
func TestProgramsOfTheEmbeddingPageRun(t *testing.T) {
	text := page(t, "docs/embedding.md")
	programs := fences(text, "go")
	printed := fences(text, "text")
	require.Len(t, printed, len(programs))
	require.NotEmpty(t, programs)
	for k, program := range programs {
		t.Run(fmt.Sprint(k), func(t *testing.T) {
			dir := embeddingModule(t, program)
			require.NoError(t, os.CopyFS(filepath.Join(dir, "pipelines"), os.DirFS("../pipelines")))
			require.Equal(t, printed[k], output(t, dir, "go", "run", "."))
			require.Empty(t, output(t, dir, "gofmt", "-l", "main.go"))
			require.Empty(t, output(t, dir, "go", "vet", "."))
		})
	}
}

// The answers to what users of torch.cuda look for name flags, pages and Go names that exist.
func TestAnswersToUsersOfTorchNameWhatExists(t *testing.T) {
	_, table, found := strings.Cut(page(t, "docs/bringing.md"), "\n## What torch.cuda has\n")
	require.True(t, found)
	commands := page(t, "docs/commands.md")
	flags, methods := 0, 0
	for _, row := range strings.Split(strings.TrimSpace(table), "\n")[2:] {
		cells := strings.Split(strings.Trim(row, "|"), " | ")
		require.Len(t, cells, 2, row)
		for _, m := range regexp.MustCompile("`(--[a-z-]+)[^`]*`").FindAllStringSubmatch(cells[1], -1) {
			require.Regexp(t, "`"+m[1]+"[ `=\\[]", commands, row)
			flags++
		}
		for _, m := range regexp.MustCompile("`Program\\.(\\w+)`").FindAllStringSubmatch(cells[1], -1) {
			_, has := reflect.TypeFor[*runtime.Program]().MethodByName(m[1])
			require.True(t, has, "%s has no method %s", row, m[1])
			methods++
		}
		for _, m := range regexp.MustCompile("dagrun ([a-z]+)").FindAllStringSubmatch(cells[1], -1) {
			if m[1] != "runs" {
				require.Contains(t, commands, "dagrun "+m[1], row)
			}
		}
	}
	require.Greater(t, flags, 4)
	require.Greater(t, methods, 4)
}
