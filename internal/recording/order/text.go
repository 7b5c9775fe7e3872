// Text: a report in words.

package order

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dagrun/dagrun/internal/recording"
	"github.com/dagrun/dagrun/internal/words"
)

// Text returns a report in words, for people. The last line is the verdict.
func (r *Report) Text(p *recording.Process) string {
	var out strings.Builder
	for _, race := range r.Races {
		out.WriteString(race.text(p, "race", "nothing orders these two"))
	}
	for _, race := range r.Possible {
		out.WriteString(race.text(p, "possible race", because[race.Because]))
	}
	for _, race := range r.Assumed {
		out.WriteString(race.text(p, "assumed order", because[race.Because]))
	}
	launches := func(n int, text string) {
		if n > 0 {
			fmt.Fprintf(&out, "%d %s: %s\n", n, plural(n, "launch", "launches"), text)
		}
	}
	launches(r.Arguments, "accesses assumed from the arguments")
	launches(r.Opaque, "some accesses of the code cannot be measured, or were too many; what the arguments point into is assumed too")
	launches(r.Together, "of graphs that were launched again before the program waited, so that only what they all touched together is known; it counts for each, for all but the first as possible")
	launches(r.Unmeasured, "not measured; accesses assumed from the arguments")
	launches(r.Lost, "the measurement is not in the recording; accesses assumed from the arguments")
	for _, name := range slices.Sorted(maps.Keys(r.Uncovered)) {
		fmt.Fprintf(&out, "not covered: %s, %d %s\n", name, r.Uncovered[name], plural(r.Uncovered[name], "call", "calls"))
	}
	if r.OrderDependent > 0 {
		fmt.Fprintf(&out, "%d %s of atomic updates without an order: no race, but the result may depend on it\n", r.OrderDependent,
			plural(r.OrderDependent, "pair", "pairs"))
	}
	if r.Cut {
		out.WriteString("the recording is not whole\n")
	}
	if r.Strict != nil {
		r.Strict.text(&out, p)
	}
	fmt.Fprintln(&out, r.Verdict())
	return out.String()
}

func (s *Strict) text(out *strings.Builder, p *recording.Process) {
	list := func(calls []Needless, why string) {
		for _, n := range calls {
			fmt.Fprintf(out, "%s, %s: %s (%s)\n", n.What, n.Where, why, n.Cost)
		}
	}
	list(s.Waits, "no conflict needs it")
	list(s.Synchronizations, "no conflict needs it, and it waits for nothing that the host could read")
	list(s.Copies, "the memory is pinned, so the copy could be asynchronous")
	if s.Waited.Nanoseconds > 0 {
		fmt.Fprintf(out, "the host synchronized in %s\n", s.Waited)
	}
	for _, e := range s.Edges {
		fmt.Fprintf(out, "edge of a graph, from node %d to node %d: no conflict needs it\n", e.From, e.To)
	}
	for _, u := range s.Unwritten {
		more := ""
		if u.Count > 1 {
			more = fmt.Sprintf(" and %d more %s", u.Count-1, plural(u.Count-1, "stretch", "stretches"))
		}
		fmt.Fprintf(out, "%s read before anything wrote them: %s, in %s of %s, bytes %d to %d%s\n", bytesText(u.Bytes),
			u.Reader.text(p), u.Memory.What, bytesText(u.Memory.Bytes), u.Low-u.Memory.Address, u.High-u.Memory.Address, more)
	}
}

// String is the cost in words: 3 calls, 1.2 ms at most.
func (c Cost) String() string {
	text := fmt.Sprintf("%d %s", c.Count, plural(c.Count, "call", "calls"))
	if c.Nanoseconds > 0 {
		text += ", " + words.Time(float64(c.Nanoseconds)/1000) + " at most"
	}
	return text
}

// Verdict is the last line of Text.
func (r *Report) Verdict() string {
	switch {
	case len(r.Races) > 0:
		return fmt.Sprintf("%d %s", len(r.Races), plural(len(r.Races), "race", "races"))
	case len(r.Possible) > 0:
		return fmt.Sprintf("no race found; %d possible", len(r.Possible))
	case r.Proved():
		return fmt.Sprintf("all conflicting accesses are ordered (%d %s measured)", r.Measured, plural(r.Measured, "launch", "launches"))
	}
	return "no race found"
}

func bytesText(n uint64) string {
	return fmt.Sprintf("%d %s", n, plural(int(min(n, 2)), "byte", "bytes"))
}

func plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

var because = map[string]string{
	"arguments":    "nothing orders these two, but one of the accesses is assumed",
	"programmatic": "only a programmatic launch or event is between them, which may come before the kernel has ended",
	"wait":         "nothing that is known orders these two, but one of them comes after a wait of which it is not known what ends it",
	"assumed":      "only a call of one thread that was over before another's began, a value that a stream waited for, or memory that was given out again orders these two",
}

func (r *Race) text(p *recording.Process, what, why string) string {
	var out strings.Builder
	fmt.Fprintf(&out, "%s on %s (%s): %s\n", what, bytesText(r.Bytes), r.Kinds, why)
	if r.Memory.What != "" {
		at := ""
		if r.Memory.Where != "" {
			at = " from " + r.Memory.Where
		}
		fmt.Fprintf(&out, "  in    %s of %s%s, bytes %d to %d\n", r.Memory.What, bytesText(r.Memory.Bytes), at, r.Low-r.Memory.Address, r.High-r.Memory.Address)
	}
	fmt.Fprintf(&out, "  first %s\n  then  %s\n", r.First.text(p), r.Second.text(p))
	if r.Count > 1 {
		fmt.Fprintf(&out, "  and %d more %s at these places\n", r.Count-1, plural(r.Count-1, "pair", "pairs"))
	}
	before := ""
	if r.Fix.Where != "" {
		before = "before " + r.Fix.Where + ": "
	}
	fmt.Fprintf(&out, "  mend  %s%s\n", before, r.Fix.Text)
	if r.Fix.Code != "" {
		fmt.Fprintf(&out, "        %s\n", r.Fix.Code)
	}
	return out.String()
}

// locate puts places in words.
func (s *Strict) locate(p *recording.Process) {
	for _, list := range [][]Needless{s.Waits, s.Synchronizations, s.Copies} {
		for k := range list {
			list[k].Where = placeText(p, list[k].Calls[0].Place)
		}
	}
	for k := range s.Unwritten {
		if u := &s.Unwritten[k]; u.Reader.Place != 0 {
			u.Reader.Where = placeText(p, u.Reader.Place)
		}
	}
}

func (r *Race) locate(p *recording.Process) {
	for place, where := range map[*uint64]*string{&r.Memory.Place: &r.Memory.Where, &r.First.Place: &r.First.Where, &r.Second.Place: &r.Second.Where,
		&r.Fix.Before: &r.Fix.Where} {
		if *place != 0 {
			*where = placeText(p, *place)
		}
	}
}

func (s *Side) text(p *recording.Process) string {
	at := ""
	if s.Where != "" {
		at = ", " + s.Where
	}
	if s.Node >= 0 {
		node := fmt.Sprintf("node %d of a graph", s.Node)
		if s.Child >= 0 {
			node = fmt.Sprintf("node %d of the child graph that is node %d", s.Child, s.Node)
		}
		at = " (" + node + ")" + at
		if s.Call.Place != s.Place {
			verb := "launched"
			if s.Call.Kind != recording.GraphLaunch {
				verb = "never launched, made"
			}
			at += ", " + verb + " at " + placeText(p, s.Call.Place)
		}
	}
	if s.Call != nil && s.Call.Kind == recording.HostAccess {
		return fmt.Sprintf("the host touched page 0x%x (%s)%s", s.Call.Args[3], s.Mode, at)
	}
	return fmt.Sprintf("%s on %s%s", strings.TrimSpace(recording.PlainName(s.Name)+" "+s.Mode), s.Stream, at)
}

func placeText(p *recording.Process, place uint64) string {
	return cmp.Or(p.PlaceText(place), "an unknown place")
}
