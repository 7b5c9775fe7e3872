// What all commands share.

package main

import (
	"github.com/dagrun/dagrun/cmd/dagrun/internal/catalog"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/editing"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/exported"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/pictures"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/recordings"
)

// app is the state that every command has.
type app struct {
	*pictures.Pictures
	Exported   *exported.Exported
	Recordings *recordings.Recordings
	editing    *editing.Commands
	catalog    *catalog.Commands
}
