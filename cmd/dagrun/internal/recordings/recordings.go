// What the commands that take recordings share: which process of one they show, and which flags mean something.

package recordings

import (
	"fmt"
	"strings"

	"github.com/dagrun/dagrun/cmd/dagrun/internal/cli"
	"github.com/dagrun/dagrun/internal/recording"
	"github.com/dagrun/dagrun/internal/recording/order"
)

// OpenRecording opens a recording. With --confined, nothing else is read to name its places.
func (u *Recordings) OpenRecording(name string) (*recording.Archive, error) {
	archive, err := recording.Open(name)
	if err != nil {
		return nil, cli.WithStatus(cli.StatusWrong, err)
	}
	archive.Confined = u.Flags.Confined
	return archive, nil
}

// shownProcess is a process of a recording, with what check finds in it.
type shownProcess struct {
	*recording.Process
	Report *order.Report
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

// ShowProcess chooses the process that a picture shows: the one with the most races, and of these the one with the most calls. The archive must stay open.
func ShowProcess(archive *recording.Archive, name string) (*shownProcess, error) {
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
		if shown == nil || len(r.Races) > len(shown.Report.Races) || len(r.Races) == len(shown.Report.Races) && len(p.Calls) > len(shown.Calls) {
			shown = &shownProcess{Process: p, Report: r}
		}
	}
	if shown == nil {
		return nil, cli.WithStatus(cli.StatusWrong, fmt.Errorf("%s holds no process", cli.ShownName(name)))
	}
	shown.others = archive.Processes() - 1
	return shown, nil
}
