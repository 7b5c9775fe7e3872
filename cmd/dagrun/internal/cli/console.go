// Package cli is what all commands share: input and output, messages, tables and JSON, files, interruptions and exit statuses.
package cli

import (
	"io"
	"log/slog"
	"os"
	"sync/atomic"

	"github.com/dagrun/dagrun/cmd/dagrun/internal/flags"
	"github.com/dagrun/dagrun/cudart/world"
	"github.com/dagrun/dagrun/internal/files"
)

// Console is what every command has: its input and output, the values of its flags, and what is known for the message that ends it.
type Console struct {
	*flags.Sets

	Stdin          io.Reader
	Stdout, Stderr *Sink
	Log            *slog.Logger // decisions, for -v
	Progress       *Progress
	Self           func() (string, error)          // the path of this command
	Inputs         []Input                         // files that were read
	Unfinished     func() []string                 // with --debug-progress: the nodes that a hang left
	Running        func() []string                 // while nodes are measured: those that have begun and not ended
	Hung           func() (text, node string)      // while plans are compared: what is known of a hang; nil before that
	Place          world.Place                     // which rank this is; the zero value is the only one
	Answered       bool                            // a JSON document has been written
	Signals        atomic.Pointer[func(os.Signal)] // what a signal is given to while another program runs
	Patience       atomic.Int64                    // how many nanoseconds the command has to end once it is interrupted
}

// NamedFile is a file and its role in the command: "the pipeline", "--save-plan".
type NamedFile struct {
	Role   string
	Name   string // "" and - do not name a file
	Saving bool   // a buffer's contents, which may replace the initial contents of the next run
}

// Input is a file that a command reads.
type Input struct {
	NamedFile
	Place   files.Place
	Initial bool // initial contents: a buffer may be saved to where the next run starts from
}
