// Which build this is, as the Go tool recorded it.

package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// build is the JSON document of version: what this command was built from.
type build struct {
	Document int    `json:"version"`
	Command  string `json:"command"`
	Release  string `json:"release"`            // "v1.2.0", or "(devel)" where the Go tool knew of no version
	Commit   string `json:"commit,omitempty"`   // of the repository, "" if unknown
	Time     string `json:"time,omitempty"`     // of the commit
	Modified bool   `json:"modified,omitempty"` // there were changes after the commit
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func ThisBuild() build {
	b := build{Document: JSONVersion, Command: "version", Release: "(devel)", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	if info.Main.Version != "" {
		b.Release = info.Main.Version
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value
		case "vcs.time":
			b.Time = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}

// String is one line: what people paste into a report.
func (b build) String() string {
	commit := ""
	if b.Commit != "" {
		commit = ", commit " + b.Commit[:min(12, len(b.Commit))]
		if b.Modified {
			commit += " with changes"
		}
		if b.Time != "" {
			commit += " of " + b.Time
		}
	}
	return fmt.Sprintf("dagrun %s%s, %s, %s", b.Release, commit, b.Go, b.Platform)
}
