// Saves that a process may leave unfinished: their temporary files, and the files that are being overwritten. A process that ends at once
// removes the former and waits for the latter.

package files

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// unfinished are the temporary files of all saves. They have no other use.
var unfinished = struct {
	mu          sync.Mutex
	names       map[string]bool
	overwriting map[string]string // by temporary file: the file that its contents are being copied to
	copied      chan struct{}     // gets a value after each copy, if Abandon waits
	ended       bool
}{names: map[string]bool{}, overwriting: map[string]string{}, copied: make(chan struct{}, 1)}

// Abandon removes the temporary files of all running saves, and prevents new ones. It waits for files that are being overwritten, because
// stopping would leave them incomplete; after the given time it returns a sentence about each that is still being overwritten, and leaves
// its complete contents in the temporary file. Call it only just before the process ends.
func Abandon(patience time.Duration) (incomplete []string) {
	unfinished.mu.Lock()
	unfinished.ended = true
	late := time.After(patience)
	for waiting := true; waiting && len(unfinished.overwriting) > 0; {
		unfinished.mu.Unlock()
		select {
		case <-unfinished.copied:
		case <-late:
			waiting = false
		}
		unfinished.mu.Lock()
	}
	defer unfinished.mu.Unlock()
	for name := range unfinished.names {
		if target, ok := unfinished.overwriting[name]; ok {
			incomplete = append(incomplete, incompleteText(name, target))
			continue
		}
		_ = os.Remove(name) // the process ends, so the error cannot be reported
	}
	return incomplete
}

func incompleteText(file, target string) string {
	return fmt.Sprintf("%s is incomplete; its complete contents are in %s", target, filepath.Join(filepath.Dir(target), filepath.Base(file)))
}

// errEnded is the error of a save that begins while the process ends.
var errEnded = context.Canceled
