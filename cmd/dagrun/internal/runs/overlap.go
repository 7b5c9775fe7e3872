// The flag --overlap: whether launches may begin before the launch before them has ended.

package runs

import (
	"github.com/dagrun/dagrun/cmd/dagrun/internal/flags"
	"github.com/dagrun/dagrun/runtime"
)

// overlap is what --overlap asks for; commands without the flag do not overlap launches.
func (u *Runs) overlap() runtime.Overlap {
	switch u.Flags.Overlap {
	case flags.GraphOn:
		return runtime.OverlapOn
	case flags.GraphAuto:
		return runtime.OverlapAuto
	}
	return runtime.OverlapOff
}
