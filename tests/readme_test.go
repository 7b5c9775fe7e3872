// Tests of the README: its program compiles and runs in a separate module, its outputs are those that are printed, and the tests that it
// names exist.

package tests

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// block is a fenced block of a page.
type block struct {
	language, text string
}

func readmeBlocks(t *testing.T) []block {
	t.Helper()
	page, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	var blocks []block
	for _, m := range regexp.MustCompile("(?ms)^```(\\w*)\n(.*?)^```$").FindAllStringSubmatch(string(page), -1) {
		blocks = append(blocks, block{m[1], m[2]})
	}
	return blocks
}

// only returns the single block of a language, and its position among the blocks.
func only(t *testing.T, blocks []block, language string) int {
	t.Helper()
	found := -1
	for i, b := range blocks {
		if b.language == language {
			require.Equal(t, -1, found, "two blocks of %s", language)
			found = i
		}
	}
	require.GreaterOrEqual(t, found, 0, "no block of %s", language)
	return found
}

// output runs a command and returns what it prints.
func output(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	c := exec.Command(name, args...)
	c.Dir = dir
	c.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOPROXY=off", "GOWORK=off")
	var stderr strings.Builder
	c.Stderr = &stderr
	out, err := c.Output()
	require.NoError(t, err, "%s %v: %s", name, args, &stderr)
	return string(out)
}

// embeddingModule makes a module of its own that has only this program and uses dagrun.
func embeddingModule(t *testing.T, program string) (dir string) {
	t.Helper()
	root, err := filepath.Abs("..")
	require.NoError(t, err)
	sums, err := os.ReadFile("../go.sum")
	require.NoError(t, err)
	own, err := os.ReadFile("../go.mod")
	require.NoError(t, err)
	// The same versions of everything, so that nothing has to be looked up or fetched.
	mod := strings.Replace(string(own), "module "+module+"\n", "module example.com/embedding\n", 1)
	mod += "\nrequire " + module + " v0.0.0\n\nreplace " + module + " => " + root + "\n"
	dir = t.TempDir()
	for name, text := range map[string]string{"main.go": program, "go.mod": mod, "go.sum": string(sums)} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	return dir
}

// Users who embed dagrun do so from their own module, which sees only exported names.
func TestReadmeProgramRunsInAnotherModule(t *testing.T) {
	blocks := readmeBlocks(t)
	at := only(t, blocks, "go")
	dir := embeddingModule(t, blocks[at].text)
	require.Equal(t, blocks[at+1].text, output(t, dir, "go", "run", "."), "the block after the program is what it prints")
	require.Empty(t, output(t, dir, "gofmt", "-l", "."))
	require.Empty(t, output(t, dir, "go", "vet", "."))
}

func TestReadmeShowsWhatTheCommandPrints(t *testing.T) {
	blocks := readmeBlocks(t)
	dir := t.TempDir()
	dagrun := filepath.Join(dir, "dagrun")
	output(t, "..", "go", "build", "-o", dagrun, "./cmd/dagrun")

	output(t, dir, dagrun, "init", "first")
	first, err := os.ReadFile(filepath.Join(dir, "first.yaml"))
	require.NoError(t, err)
	require.Contains(t, string(first), blocks[only(t, blocks, "yaml")].text)

	var printed []string // of a recording of the program that the README shows, and of a schedule
	for _, file := range []string{"internal/recording/order/testdata/recordings/seed.rec", "pipelines/race.yaml"} {
		races := exec.Command(dagrun, "check", file)
		races.Dir = ".."
		out, err := races.Output()
		var status *exec.ExitError
		require.ErrorAs(t, err, &status, "a race is a failure")
		printed = append(printed, string(out))
	}
	shown := 0
	for _, b := range blocks {
		if strings.HasPrefix(b.text, "race on ") {
			require.Less(t, shown, len(printed))
			require.Contains(t, printed[shown], b.text)
			shown++
		}
	}
	require.Equal(t, len(printed), shown)

	// The first thing that a newcomer runs.
	lines := strings.Split(blocks[only(t, blocks, "text")].text, "\n")
	_, ran, _ := strings.Cut(lines[0], "go run ./cmd/dagrun ")
	command, _, _ := strings.Cut(ran, "#")
	want := strings.NewReplacer("130 ms", "TIME", " (no GPU was found)", "").Replace(strings.Join(lines[1:4], "\n") + "\n")
	got := output(t, "..", dagrun, append(strings.Fields(command), "--backend", "cpu", "--cache-dir", t.TempDir())...)
	require.Equal(t, want, regexp.MustCompile(`: [\d.]+ [mu]?s `).ReplaceAllString(got, ": TIME "))
}

// The figures that the page begins with are those of all workloads of the measured suite.
func TestReadmeFiguresAreOfAllWorkloads(t *testing.T) {
	page, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	measured, err := os.ReadFile("bench/README.md")
	require.NoError(t, err)
	_, table, found := strings.Cut(string(measured), "### GrCUDA suite: ratios")
	require.True(t, found)
	logs, gains, ofC := 0.0, []float64{}, []float64{}
	for _, m := range regexp.MustCompile(`(?m)^\| \w+ +\| +([\d.]+) \| +[\d.]+ \| +([\d.]+) \| +([\d.]+) \|`).FindAllStringSubmatch(table[:strings.Index(table, "\nLatency")], -1) {
		number := func(k int) float64 {
			v, err := strconv.ParseFloat(m[k], 64)
			require.NoError(t, err)
			return v
		}
		gains, ofC = append(gains, number(1)), append(ofC, number(2), number(3))
		logs += math.Log(number(1))
	}
	require.Len(t, gains, 6)
	require.Contains(t, string(page), fmt.Sprintf("Six programs of a published suite are %.2f times as fast on an H200 as on one stream (geometric mean; %.2f to %.2f), and take %.2f to\n  %.2f times as long as schedules that were written by hand in C++",
		math.Exp(logs/6), slices.Min(gains), slices.Max(gains), slices.Min(ofC), slices.Max(ofC)))

	networks, err := os.ReadFile("../docs/replan.md")
	require.NoError(t, err)
	logs, gains = 0, nil
	for _, m := range regexp.MustCompile(`(?m)^\| (.+?) \|.* \| (\d\.\d\d) \|$`).FindAllStringSubmatch(string(networks), -1) {
		ratio, err := strconv.ParseFloat(m[2], 64)
		require.NoError(t, err)
		names := strings.Split(m[1], ", ")
		if ratio != 1 { // the last row has several networks; a comma in another is part of a name
			names = names[:1]
		}
		for range names {
			gains = append(gains, ratio)
			logs += math.Log(ratio)
		}
	}
	require.Len(t, gains, 12)
	require.Contains(t, string(page), fmt.Sprintf("twelve networks %.2f times as fast on an H100 (geometric mean; %.2f to %.2f)", math.Exp(logs/12), slices.Min(gains), slices.Max(gains)))
}

// Each promise names the tests that show it, as `folder/TestName`.
func TestPromisesNameTheirTests(t *testing.T) {
	items := strings.Split(strings.TrimSpace(page(t, "docs/promises.md")), "\n- ")[1:] // the first part is before the list
	require.Greater(t, len(items), 3)
	for _, item := range items {
		names := regexp.MustCompile("`([\\w/]+)/(Test\\w+)`").FindAllStringSubmatch(item, -1)
		require.NotEmpty(t, names, "no test is named for: %s", item)
		for _, name := range names {
			require.True(t, hasTest(t, name[1], name[2]), "%s has no %s", name[1], name[2])
		}
	}
}

func hasTest(t *testing.T, dir, name string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", dir, "*_test.go"))
	require.NoError(t, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		if strings.Contains(string(text), "\nfunc "+name+"(") {
			return true
		}
	}
	return false
}
