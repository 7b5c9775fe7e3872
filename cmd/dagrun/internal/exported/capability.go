// What check says of launches that a device's compute capability does not allow. No device is asked.

package exported

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dagrun/dagrun/cmd/dagrun/internal/cli"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner"
)

// TargetFlags say which device a pipeline is checked for.
type TargetFlags struct {
	arch       string
	capability int  // of arch; 0: none was given
	machine    bool // the machine was named
}

func (t *TargetFlags) Flags(c *cobra.Command) {
	c.Flags().StringVar(&t.arch, "arch", "", "refuse what a GPU of this `architecture`, such as sm_80, cannot run, and compile for it (default: that of --machine, if given)")
}

// Apply reads the flags. Sources are compiled for the architecture.
func (t *TargetFlags) Apply(a *Exported, c *cobra.Command) error {
	t.machine = c.Flags().Changed("machine")
	if t.arch == "" {
		return nil
	}
	digits := strings.TrimPrefix(t.arch, "sm_")
	number, err := strconv.Atoi(digits)
	if err != nil || number < 50 || number > 999 || strconv.Itoa(number) != digits {
		return fmt.Errorf("--arch %s: want the name of an architecture from sm_50 on, such as sm_80", t.arch)
	}
	t.capability = number
	if a.Compilers != nil {
		a.Compilers.Capability = [2]int{number / 10, number % 10}
	}
	return nil
}

// Beyond is a launch that a device cannot run, in JSON.
type Beyond struct {
	Node string `json:"node"`
	Line int32  `json:"line,omitempty"`
	Why  string `json:"why"`
	Fix  string `json:"fix"`
}

func (t *TargetFlags) Beyond(g *dag.Graph, machine *planner.Machine) []Beyond {
	capability := t.capability
	if capability == 0 && t.machine {
		capability = machine.Capability
	}
	var list []Beyond
	for _, b := range g.Beyond(capability) {
		list = append(list, Beyond{b.Node.Name, b.Node.Pos.Line, b.Why, b.Fix})
	}
	return list
}

func (u *Exported) PrintBeyond(list []Beyond) {
	for _, b := range list {
		_ = u.Stdout.Printf("%s %s %s; %s\n", u.Paint(u.Stdout, cli.Red, "cannot run:"), onLine(b.Node, b.Line), b.Why, b.Fix)
	}
}
