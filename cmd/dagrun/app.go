// The families of commands.

package main

import (
	"github.com/dagrun/dagrun/cmd/dagrun/internal/catalog"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/editing"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/exported"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/measuring"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/planning"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/running"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/session"
)

// app is what the command line leads to.
type app struct {
	*session.Session

	running   *running.Commands
	planning  *planning.Commands
	measuring *measuring.Commands
	exported  *exported.Exported
	catalog   *catalog.Commands
	editing   *editing.Commands
}
