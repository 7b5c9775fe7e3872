// Tests of the page on finding bugs in kernels: each mistake on it is made, and the command prints what the page shows.

package tests

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestKernelBugsPage(t *testing.T) {
	if !haveCompiler() {
		t.Skip("needs a compiler for CUDA C: install clang 14 or newer")
	}
	text := page(t, "docs/kernel-bugs.md")
	fences := regexp.MustCompile("(?s)```(\\w+)\n(.*?)```").FindAllStringSubmatch(text, -1)
	folder := t.TempDir()
	command := filepath.Join(folder, "dagrun")
	out, err := exec.Command("go", "build", "-o", command, "../cmd/dagrun").CombinedOutput()
	require.NoError(t, err, "%s", out)
	write := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644))
	}
	run := func() (string, error) {
		c := exec.Command(command, "run", "smooth.yaml", "--backend", "cpu", "--kernel-steps", "10000000", "--sanitize", "fast", "-q")
		c.Dir = folder
		out, err := c.CombinedOutput()
		return string(out), err
	}
	// Another version of the compiler puts the same instructions on other lines.
	places := regexp.MustCompile(`[a-z0-9.]+, PTX line \d+`)
	kernel, broken, faults := "", "", 0
	for _, fence := range fences {
		kind, body := fence[1], fence[2]
		switch kind {
		case "cuda":
			kernel = body
			write("smooth.cu", kernel)
		case "yaml":
			write("smooth.yaml", body)
			out, err := run()
			require.NoError(t, err, out)
			require.Empty(t, out)
		case "diff":
			lines := strings.Split(body, "\n")
			require.Equal(t, [2]byte{'-', '+'}, [2]byte{lines[0][0], lines[1][0]}, body)
			require.Contains(t, kernel, lines[0][1:])
			broken = strings.Replace(kernel, lines[0][1:], lines[1][1:], 1)
		case "text":
			write("smooth.cu", broken)
			out, err := run()
			require.Error(t, err, broken)
			require.Equal(t, places.ReplaceAllString(body, "PLACE"), places.ReplaceAllString(out, "PLACE"), broken)
			faults++
		}
	}
	require.Equal(t, 9, faults)
}
