// What is shown of compilers' logs: of files outside of the pipeline's folder, only the places.

package source

import (
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/dagrun/dagrun/internal/files"
)

var (
	// linePlace is the place that a line of a compiler's log begins with: file(3): error, file:3:7: error, file:3: error.
	linePlace = regexp.MustCompile(`^(.+?)(\(\d+\)|:\d+(?::\d+)?): (?:catastrophic |fatal )?(?:[eE]rror|[wW]arning|note|remark|info)\b`)
	// lineCounts is a line that quotes nothing.
	lineCounts = regexp.MustCompile(`^(?:In file included from .*|\d+ (?:error|warning)s?\b.*)$`)
	suggestion = regexp.MustCompile(`;? did you mean [^?\n]*\?`)
)

// shown is a compiler's log without what it says about files outside of the pipeline's folder, apart from their places. Headers of the system
// and of CUDA are shown.
func (j *job) shown(log string) string {
	folder := j.module.Folder
	if folder == "" || log == "" {
		return log
	}
	var out []string
	quoting, left := true, false
	for line := range strings.SplitSeq(log, "\n") {
		m := linePlace.FindStringSubmatch(line)
		switch {
		case m != nil && !j.quotable(folder, m[1]):
			quoting, left = false, true
			out = append(out, m[1]+m[2]+": "+hidden)
		case m != nil:
			quoting = true
			out = append(out, line)
		case quoting || lineCounts.MatchString(line):
			out = append(out, line)
		}
	}
	text := strings.Join(slices.Compact(out), "\n")
	if !left {
		return text
	}
	text = suggestion.ReplaceAllString(text, "") // it may be a name from there
	if j.module.Path != "" && files.Foreign(folder, j.module.Path) {
		text += "\ndagrun kernels " + j.module.Path + " shows it"
	}
	return text
}

// quotable reports whether messages may quote a file, as a compiler names it.
func (j *job) quotable(folder, name string) bool {
	path := name
	for _, h := range j.found {
		if h.name == name {
			path = h.path
			break
		}
	}
	switch {
	case strings.HasPrefix(name, "<"), strings.HasPrefix(name, "kernel "), strings.HasPrefix(name, "dagrun/"): // no files
		return true
	case path == j.module.Name && j.module.Path == "":
		return true
	}
	for _, installed := range []string{"/usr", os.Getenv("CUDA_HOME"), os.Getenv("CUDA_PATH")} {
		if installed != "" && !files.Outside(installed, path) {
			return true
		}
	}
	return !files.Foreign(folder, path)
}
