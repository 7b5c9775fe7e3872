// Temporary folders of compilers. A process that is killed leaves its folder behind; the next one that compiles removes it.

package child

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
)

// folderPrefix begins the names of all temporary folders of compilers.
const folderPrefix = "dagrun-compile-"

var sweptOnce sync.Once

// NewFolder makes a temporary folder, and returns how to remove it.
func NewFolder() (path string, remove func(), err error) {
	sweptOnce.Do(func() { sweep(filepath.Join(os.TempDir(), folderPrefix+"*")) })
	for {
		path, err := os.MkdirTemp("", folderPrefix+"*")
		if err != nil {
			return "", nil, err
		}
		unlock, err := lock(path)
		if errors.Is(err, errTaken) { // another process took it for one that was left behind
			continue
		}
		if err != nil {
			return "", nil, errors.Join(err, os.RemoveAll(path))
		}
		return path, func() {
			os.RemoveAll(path)
			unlock()
		}, nil
	}
}
