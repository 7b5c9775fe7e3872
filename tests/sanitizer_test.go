// Tests of the kernels that tests/gpu/sanitizer compares with compute-sanitizer: dagrun finds every fault in them, and reports no clean one.

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

func TestPlantedFaultsOfTheSanitizerScript(t *testing.T) {
	if !haveCompiler() {
		t.Skip("needs a compiler for CUDA C: install clang 14 or newer")
	}
	command := filepath.Join(t.TempDir(), "dagrun")
	out, err := exec.Command("go", "build", "-o", command, "../cmd/dagrun").CombinedOutput()
	require.NoError(t, err, "%s", out)
	script := exec.Command("gpu/sanitizer/run", command)
	script.Env = append(os.Environ(), "TOOLS=") // dagrun alone
	table, err := script.CombinedOutput()
	require.NoError(t, err, "%s", table)
	counts := map[string]int{}
	for _, line := range strings.Split(strings.TrimSpace(string(table)), "\n")[1:] {
		row := regexp.MustCompile(`^([a-z-]+) +[a-z]+ +\d+  ([a-z-]+)$`).FindStringSubmatch(line)
		require.NotNil(t, row, line)
		counts[row[1]+": "+row[2]]++
	}
	require.Equal(t, map[string]int{"clean: -": 5, "bounds: bounds": 5, "alignment: alignment": 5, "unwritten: unwritten": 5, "shared-race: race": 5, "global-race: race": 5,
		"barrier: barrier": 4, "barrier: race": 1}, counts, "%s", table)
}
