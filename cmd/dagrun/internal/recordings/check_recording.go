// dagrun check FILE..., where the files are recordings of programs.

package recordings

import (
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dagrun/dagrun/cmd/dagrun/internal/cli"
	"github.com/dagrun/dagrun/internal/recording"
	"github.com/dagrun/dagrun/internal/recording/order"
)

// RecordingFlags are what check takes for recordings only.
type RecordingFlags struct {
	Possible, StrictThreads, Strict, HostAccesses, Merge bool
	Since                                                uint64
}

// mergedWith is another recording, with whose measurements a process is checked.
type mergedWith struct {
	File string `json:"file"`
	recording.Merged
}

// checkedRecording is the JSON document of check for a recording.
type checkedRecording struct {
	Version   int              `json:"version"`
	Command   string           `json:"command"`
	Program   []string         `json:"program"`
	Cut       bool             `json:"cut"`
	Status    int              `json:"status"` // the exit status of this check
	Processes []checkedProcess `json:"processes"`
}

type checkedProcess struct {
	Process uint32 `json:"process"`
	*order.Report
	Notes  []string     `json:"notes"`
	Merged []mergedWith `json:"merged,omitempty"`

	process *recording.Process
}

// recordedFile is the JSON of one of several recordings.
type recordedFile struct {
	File   string            `json:"file"`
	Status int               `json:"status"` // the exit status of a check of this file alone
	Report *checkedRecording `json:"report,omitempty"`
	Error  *cli.Failure      `json:"error,omitempty"`
}

// CheckRecordings checks recordings, each by itself unless they are to be merged.
func (u *Recordings) CheckRecordings(c *cobra.Command, names []string, own *RecordingFlags) error {
	if err := cli.OnlyFlags(c, names[0], "possible", "strict", "strict-threads", "host-copies", "merge", "since", "confined"); err != nil {
		return err
	}
	for _, name := range names[1:] {
		if _, err := os.Stat(name); err == nil && !recording.Recognize(name) {
			return fmt.Errorf("%s is a recording and %s is none: check them apart", cli.ShownName(names[0]), cli.ShownName(name))
		}
	}
	if own.Merge && len(names) == 1 {
		return errors.New("--merge takes two or more recordings of one program")
	}
	u.Progress.BeginUntil(u.Stdout)
	// A recording of a million launches takes 0.8 GB so, instead of 1.1, and no longer.
	defer debug.SetGCPercent(debug.SetGCPercent(40))
	if own.Merge || len(names) == 1 {
		document, err := u.checkRecording(names[0], names[1:], own, func() {})
		if err != nil {
			return err
		}
		if u.Flags.Output == "json" {
			err = u.Answer(document)
		}
		if err == nil && document.Status != cli.StatusOK {
			err = &cli.Reported{Status: document.Status}
		}
		return err
	}
	return u.checkApart(c, names, own)
}

// checkApart checks one recording after another, even if one is wrong. The exit status is the worst of all: a file that is wrong, a
// race, something that is not proved.
func (u *Recordings) checkApart(c *cobra.Command, names []string, own *RecordingFlags) error {
	files := make([]recordedFile, len(names))
	worst, shown := cli.StatusOK, false
	for k, name := range names {
		document, err := u.checkRecording(name, nil, own, func() {
			if shown {
				fmt.Fprintln(u.Stdout)
			}
			shown = true
			_ = u.Stdout.Printf("%s\n", u.Paint(u.Stdout, cli.Bold, cli.ShownName(name)))
		})
		files[k] = recordedFile{File: cli.ShownName(name), Report: document, Status: cli.StatusOf(err)}
		if err != nil {
			err = u.WordError(c, err)
			u.PrintError(err)
			files[k].Error = u.FailureOf(err, files[k].Status)
		} else {
			files[k].Status = document.Status
		}
		if slices.Index(byWeight, files[k].Status) > slices.Index(byWeight, worst) {
			worst = files[k].Status
		}
	}
	return cli.AnswerFiles(u.Console, files, worst)
}

// byWeight are the exit statuses of a check of recordings, the worst last.
var byWeight = []int{cli.StatusOK, cli.StatusUnproved, cli.StatusExpectation, cli.StatusWrong, cli.StatusInternal}

// checkRecording checks what each process of a recording did, with what others measured of it too, and prints that as text, below a heading.
func (u *Recordings) checkRecording(name string, others []string, own *RecordingFlags, heading func()) (*checkedRecording, error) {
	archive, err := u.OpenRecording(name)
	if err != nil {
		return nil, err
	}
	defer archive.Close()
	u.Progress.Report("check "+cli.ShownName(name), 0, 0)
	document := &checkedRecording{Version: cli.JSONVersion, Command: "check", Program: archive.Command, Cut: archive.Cut}
	for k := range archive.Processes() {
		process, err := archive.Process(k)
		if err != nil {
			return nil, cli.WithStatus(cli.StatusWrong, err)
		}
		merged, err := u.merge(process, k, name, archive.Processes(), others)
		if err != nil {
			return nil, err
		}
		report, err := order.Check(process, order.Options{StrictThreads: own.StrictThreads, Strict: own.Strict, HostAccesses: own.HostAccesses, Since: own.Since})
		if err != nil {
			return nil, cli.WithStatus(cli.StatusWrong, fmt.Errorf("%s: process %d: %w", cli.ShownName(name), process.ID, err))
		}
		report.Cut = report.Cut || archive.Cut
		if own.Since > 0 { // the process is still writing
			report.Cut = process.Lost > 0
		}
		entry := checkedProcess{Process: process.ID, Report: report, Notes: []string{}, Merged: merged, process: process}
		for _, note := range process.Notes {
			if note.Text != "" {
				entry.Notes = append(entry.Notes, note.Text)
			}
			report.Cut = report.Cut || note.Code == recording.NoteRefused
		}
		document.Processes = append(document.Processes, entry)
	}
	document.Status = document.verdict(own)
	if u.Flags.Output != "json" && (!u.Flags.Quiet || document.Status == cli.StatusExpectation) {
		heading()
		u.printRecordingChecked(name, document)
	}
	return document, nil
}

func (u *Recordings) printRecordingChecked(name string, document *checkedRecording) {
	for _, p := range document.Processes {
		if len(document.Processes) > 1 {
			fmt.Fprintf(u.Stdout, "process %d: %s\n", p.Process, strings.Join(p.process.Command, " "))
		}
		for _, m := range p.Merged {
			fmt.Fprintf(u.Stdout, "merged with %s: %s measured in both, of which %d touched more there, or otherwise; %d only in %s\n", m.File, launchCount(m.Both),
				m.Widened, m.Alone, cli.ShownName(name))
			if m.Opaque > 0 {
				fmt.Fprintf(u.Stdout, "of %s, what %s touched there cannot be found here; what the arguments point into is assumed too\n", launchCount(m.Opaque),
					cli.ShownName(m.File))
			}
		}
		fmt.Fprint(u.Stdout, p.Text(p.process))
		for _, note := range p.process.Notes {
			// the report has the last
			if !slices.Contains([]uint64{recording.NoteAllocator, recording.NoteGraph, recording.NoteTable, recording.NoteUncovered}, note.Code) {
				fmt.Fprintf(u.Stdout, "the recorder says: %s\n", note.Text)
			}
		}
	}
}

// merge widens what a process was measured to touch by what the same process of other recordings was.
func (u *Recordings) merge(process *recording.Process, k int, name string, processes int, others []string) ([]mergedWith, error) {
	var merged []mergedWith
	for _, other := range others {
		archive, err := u.OpenRecording(other)
		if err != nil {
			return nil, err
		}
		defer archive.Close()
		if archive.Processes() != processes {
			return nil, cli.WithStatus(cli.StatusWrong, fmt.Errorf("%s has %s and %s has %d: --merge takes recordings of one program", cli.ShownName(name),
				processCount(processes), cli.ShownName(other), archive.Processes()))
		}
		q, err := archive.Process(k)
		if err != nil {
			return nil, cli.WithStatus(cli.StatusWrong, err)
		}
		m := mergedWith{cli.ShownName(other), process.Merge(q)}
		if m.Both == 0 && m.Alone > 0 {
			return nil, cli.WithStatus(cli.StatusWrong, fmt.Errorf("no launch that %s measured is in %s: --merge takes recordings of one program", cli.ShownName(name),
				cli.ShownName(other)))
		}
		merged = append(merged, m)
	}
	return merged, nil
}

func processCount(n int) string {
	if n == 1 {
		return "1 process"
	}
	return fmt.Sprintf("%d processes", n)
}

// verdict is the exit status: 0 proved, 1 a race, 3 no race, but something is assumed or not covered.
func (d *checkedRecording) verdict(own *RecordingFlags) int {
	status := cli.StatusOK
	if len(d.Processes) == 0 {
		status = cli.StatusUnproved
	}
	for _, p := range d.Processes {
		switch {
		case len(p.Races) > 0, own.Possible && len(p.Possible) > 0:
			return cli.StatusExpectation
		case !p.Proved():
			status = cli.StatusUnproved
		}
	}
	return status
}
