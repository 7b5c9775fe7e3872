// The flag --overlap: whether launches may begin before the launch before them has ended.

package main

import (
	"github.com/dagrun/dagrun/cmd/dagrun/internal/flags"
	"github.com/dagrun/dagrun/runtime"
)

// overlap is what --overlap asks for; commands without the flag do not overlap launches.
func (a *app) overlap() runtime.Overlap {
	switch a.Flags.Overlap {
	case flags.GraphOn:
		return runtime.OverlapOn
	case flags.GraphAuto:
		return runtime.OverlapAuto
	}
	return runtime.OverlapOff
}
