// What the commands that take recordings share: which process of one they show, and which flags mean something.

package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/dagrun/dagrun/cmd/dagrun/internal/cli"
	"github.com/dagrun/dagrun/internal/recording"
	"github.com/dagrun/dagrun/internal/recording/order"
)

// onlyFlags refuses flags that mean nothing for a recording. Those of every command's output are allowed.
func onlyFlags(c *cobra.Command, recorded string, allowed ...string) error {
	return onlyFlagsOf(c, "for a recording, and "+cli.ShownName(recorded)+" is one", allowed...)
}

// onlyFlagsOf refuses flags that mean nothing for a file, with words that follow "means nothing".
func onlyFlagsOf(c *cobra.Command, file string, allowed ...string) error {
	allowed = append(allowed, "output", "color", "quiet", "verbose", "help")
	var wrong error
	c.Flags().Visit(func(f *pflag.Flag) {
		if wrong == nil && !slices.Contains(allowed, f.Name) {
			wrong = fmt.Errorf("--%s means nothing %s", f.Name, file)
		}
	})
	return wrong
}

// openRecording opens a recording. With --confined, nothing else is read to name its places.
func (a *app) openRecording(name string) (*recording.Archive, error) {
	archive, err := recording.Open(name)
	if err != nil {
		return nil, cli.WithStatus(cli.StatusWrong, err)
	}
	archive.Confined = a.Flags.Confined
	return archive, nil
}

// shownProcess is a process of a recording, with what check finds in it.
type shownProcess struct {
	*recording.Process
	report *order.Report
	others int // how many more processes the recording has
}

// heading is the program, and which of its processes is shown if there are several.
func (s *shownProcess) heading() string {
	title := strings.Join(s.Command, " ")
	if s.others > 0 {
		title += fmt.Sprintf(", process %d of %d", s.ID, s.others+1)
	}
	return title
}

// showProcess chooses the process that a picture shows: the one with the most races, and of these the one with the most calls. The archive must stay open.
func showProcess(archive *recording.Archive, name string) (*shownProcess, error) {
	var shown *shownProcess
	for k := range archive.Processes() {
		p, err := archive.Process(k)
		if err != nil {
			return nil, cli.WithStatus(cli.StatusWrong, err)
		}
		r, err := order.Check(p, order.Options{Strict: true}) // waits that nothing needs are grey
		if err != nil {
			return nil, cli.WithStatus(cli.StatusWrong, fmt.Errorf("%s: process %d: %w", cli.ShownName(name), p.ID, err))
		}
		if shown == nil || len(r.Races) > len(shown.report.Races) || len(r.Races) == len(shown.report.Races) && len(p.Calls) > len(shown.Calls) {
			shown = &shownProcess{Process: p, report: r}
		}
	}
	if shown == nil {
		return nil, cli.WithStatus(cli.StatusWrong, fmt.Errorf("%s holds no process", cli.ShownName(name)))
	}
	shown.others = archive.Processes() - 1
	return shown, nil
}
