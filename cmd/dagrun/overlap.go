// The flag --overlap: whether launches may begin before the launch before them has ended.

package main

import (
	"github.com/dagrun/dagrun/runtime"
)

// overlap is what --overlap asks for; commands without the flag do not overlap launches.
func (a *app) overlap() runtime.Overlap {
	switch a.flags.overlap {
	case graphOn:
		return runtime.OverlapOn
	case graphAuto:
		return runtime.OverlapAuto
	}
	return runtime.OverlapOff
}
