// The planning model of a machine: what its devices report, and what is measured.

package runtime

import (
	"context"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/runtime/internal/measure"
)

// MachineOf returns a planning model of a platform's devices. It assumes that all devices are like the first. Figures that a device does not
// report, such as the rates of its link to the host, are usual values of its generation; MeasureMachine measures them. Without a device,
// the result is the model of an H200.
func MachineOf(platform cudart.Platform) *planner.Machine { return measure.MachineOf(platform) }

// MeasureMachine returns a planning model of a platform's first device. It measures the copy rates, memory, and the costs of launches, waits
// and gaps, on streams and in graphs. The other figures come from MachineOf: arithmetic, limits and, with only one device, the rate between
// devices. With several devices, it finds those that share their connection to the host. It takes several seconds. report is called before each
// step; it may be nil.
func MeasureMachine(ctx context.Context, platform cudart.Platform, report func(stage string, done, total int)) (*planner.Machine, error) {
	return measure.Machine(ctx, platform, report)
}
