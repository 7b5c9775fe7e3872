// Package exported has dagrun export, and what other commands do with the files that it writes.
package exported

import (
	"github.com/dagrun/dagrun/cmd/dagrun/internal/pictures"
)

// Exported is a command on a file that dagrun export writes.
type Exported struct {
	*pictures.Pictures
}
