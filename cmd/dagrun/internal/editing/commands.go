// Package editing has the commands for who writes a pipeline file.
package editing

import (
	"github.com/dagrun/dagrun/cmd/dagrun/internal/session"
)

// Commands are fmt, init, schema and lsp.
type Commands struct {
	*session.Session
}
