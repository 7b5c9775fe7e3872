// Runs the conformance suite, which the CPU device passes in its own tests, on a GPU.

package gpu

import (
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/cudart/conformance"
	"github.com/dagrun/dagrun/cudart/driver"
)

func TestConformance(t *testing.T) { conformance.Run(t, open(t)) }

func TestConformancePrograms(t *testing.T) {
	p := open(t)
	conformance.Programs(t, func(*rapid.T) (cudart.Platform, func()) { return p, func() {} })
}

// A fault needs a process of its own.
func TestConformanceFault(t *testing.T) {
	if os.Getenv("DAGRUN_CONFORMANCE_FAULT") == "" {
		open(t)
		child := exec.Command(os.Args[0], "-test.run=^TestConformanceFault$", "-test.v")
		child.Env = append(os.Environ(), "DAGRUN_CONFORMANCE_FAULT=1")
		out, err := child.CombinedOutput()
		require.NoError(t, err, "%s", out)
		require.Contains(t, string(out), "FAULT PASSED")
		return
	}
	p, err := driver.Open(driver.Options{})
	require.NoError(t, err)
	conformance.Fault(t, p)
	fmt.Println("FAULT PASSED")
}
