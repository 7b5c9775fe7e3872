// What all commands share.

package main

import (
	"github.com/dagrun/dagrun/cmd/dagrun/internal/catalog"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/editing"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/exported"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/measuring"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/pictures"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/planning"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/recordings"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/running"
)

// app is the state that every command has.
type app struct {
	*pictures.Pictures
	Exported   *exported.Exported
	Recordings *recordings.Recordings
	running    *running.Commands
	planning   *planning.Commands
	measuring  *measuring.Commands
	editing    *editing.Commands
	catalog    *catalog.Commands
}
