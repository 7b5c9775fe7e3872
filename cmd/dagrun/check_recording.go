// dagrun check FILE, where the file is a recording of a program.

package main

import (
	"fmt"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/dagrun/dagrun/internal/recording"
	"github.com/dagrun/dagrun/internal/recording/order"
)

// recordingFlags are what check takes for recordings only.
type recordingFlags struct {
	possible, strictThreads, strict, hostAccesses bool
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
	Notes []string `json:"notes"`

	process *recording.Process
}

// checkRecording checks what each process of a recording did.
func (a *app) checkRecording(name string, own *recordingFlags) error {
	// A recording of a million launches takes 0.8 GB so, instead of 1.1, and no longer.
	defer debug.SetGCPercent(debug.SetGCPercent(40))
	archive, err := a.openRecording(name)
	if err != nil {
		return err
	}
	defer archive.Close()
	document := checkedRecording{Version: jsonVersion, Command: "check", Program: archive.Command, Cut: archive.Cut}
	for k := range archive.Processes() {
		process, err := archive.Process(k)
		if err != nil {
			return withStatus(statusWrong, err)
		}
		report, err := order.Check(process, order.Options{StrictThreads: own.strictThreads, Strict: own.strict, HostAccesses: own.hostAccesses})
		if err != nil {
			return withStatus(statusWrong, fmt.Errorf("%s: process %d: %w", shownName(name), process.ID, err))
		}
		report.Cut = report.Cut || archive.Cut
		entry := checkedProcess{Process: process.ID, Report: report, Notes: []string{}, process: process}
		for _, note := range process.Notes {
			if note.Text != "" {
				entry.Notes = append(entry.Notes, note.Text)
			}
			report.Cut = report.Cut || note.Code == recording.NoteRefused
		}
		document.Processes = append(document.Processes, entry)
	}
	document.Status = document.verdict(own)
	if a.flags.output == "json" {
		if err := a.answer(document); err != nil {
			return err
		}
	} else if !a.flags.quiet || document.Status == statusExpectation {
		for _, p := range document.Processes {
			if len(document.Processes) > 1 {
				fmt.Fprintf(a.stdout, "process %d: %s\n", p.Process, strings.Join(p.process.Command, " "))
			}
			fmt.Fprint(a.stdout, p.Text(p.process))
			for _, note := range p.process.Notes {
				if !slices.Contains([]uint64{recording.NoteAllocator, recording.NoteGraph, recording.NoteTable, recording.NoteUncovered}, note.Code) { // the report has the last
					fmt.Fprintf(a.stdout, "the recorder says: %s\n", note.Text)
				}
			}
		}
	}
	if document.Status != statusOK {
		return &reported{status: document.Status}
	}
	return nil
}

// verdict is the exit status: 0 proved, 1 a race, 3 no race, but something is assumed or not covered.
func (d *checkedRecording) verdict(own *recordingFlags) int {
	status := statusOK
	if len(d.Processes) == 0 {
		status = statusUnproved
	}
	for _, p := range d.Processes {
		switch {
		case len(p.Races) > 0, own.possible && len(p.Possible) > 0:
			return statusExpectation
		case !p.Proved():
			status = statusUnproved
		}
	}
	return status
}
