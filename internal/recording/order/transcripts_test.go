// Transcripts: each has a program above and the verdict below, for each rule of order and for what is said of a race. -rewrite rewrites the verdicts.

package order

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var rewrite = flag.Bool("rewrite", false, "write golden files anew instead of comparing with them")

// A transcript has several programs. Each begins with a line "== what it shows", and its verdict with a line "--".
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			data, err := os.ReadFile(file)
			require.NoError(t, err)
			head, programs, _ := strings.Cut(string(data), "\n== ")
			var out strings.Builder
			out.WriteString(strings.TrimSpace(head) + "\n")
			for _, program := range strings.Split(programs, "\n== ") {
				title, body, _ := strings.Cut(program, "\n")
				body, _, _ = strings.Cut(body, "\n--\n")
				options := Options{StrictThreads: strings.Contains(title, "--strict-threads"), HostAccesses: strings.HasSuffix(title, "--host-accesses"), Strict: strings.HasSuffix(title, "--strict")}
				p := read(body)
				report, err := Check(p, options)
				require.NoError(t, err, title)
				out.WriteString("\n== " + title + "\n" + strings.Trim(body, "\n") + "\n--\n" + report.Text(p))
			}
			if *rewrite {
				require.NoError(t, os.WriteFile(file, []byte(out.String()), 0o666))
				return
			}
			require.Equal(t, string(data), out.String(), "if the change is meant: go test ./internal/recording/order -run Transcripts -rewrite, and review the diff")
		})
	}
}
