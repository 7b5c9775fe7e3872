// Files are read whole where they are not mapped.

//go:build !unix

package recording

import (
	"errors"
	"os"
)

func mapFile(*os.File, int) ([]byte, func([]byte) error, error) {
	return nil, nil, errors.ErrUnsupported
}
