// The part of a comparison that is about the policies that choose devices.

package planner

import (
	"bufio"
	"fmt"

	"github.com/dagrun/dagrun/internal/words"
)

type tryFile struct {
	Policy     string  `json:"policy"`
	Copies     int     `json:"copies"`
	Bytes      int64   `json:"copied_bytes"`
	MakespanUS float64 `json:"makespan_us"`
	PeakBytes  int64   `json:"peak_device_bytes"`
	Refused    string  `json:"refused,omitempty"`
}

// writeSpreads writes a table of policies. The fastest has a star.
func (c *Comparison) writeSpreads(out *bufio.Writer) {
	if len(c.Spreads) == 0 {
		return
	}
	best := -1
	for k := range c.Spreads {
		if t := &c.Spreads[k]; t.Refused == "" && (best < 0 || t.MakespanUS < c.Spreads[best].MakespanUS) {
			best = k
		}
	}
	fmt.Fprintf(out, "\n  %-12s %7s %12s %12s %12s\n", "spread", "copies", "copied", "makespan us", "most memory")
	for k := range c.Spreads {
		t := &c.Spreads[k]
		star := " "
		if k == best {
			star = "*"
		}
		if t.Refused != "" {
			fmt.Fprintf(out, "%s %-12s %7s %12s %12s %12s  %s\n", star, t.Policy, "-", "-", "-", "-", t.Refused)
			continue
		}
		fmt.Fprintf(out, "%s %-12s %7d %12s %12.2f %12s\n", star, t.Policy, t.Copies, words.Bytes(t.Bytes), t.MakespanUS, words.Bytes(t.PeakBytes))
	}
}
