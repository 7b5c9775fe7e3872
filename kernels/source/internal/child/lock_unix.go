//go:build unix

// Locks of folders: the system drops them when the process ends, however it ends.

package child

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
)

// errTaken is the error of a folder that another process uses, or has removed.
var errTaken = errors.New("the folder is in use")

// sweep removes the folders that killed processes have left: those that match a pattern and that nobody has locked.
func sweep(pattern string) {
	left, _ := filepath.Glob(pattern)
	for _, path := range left {
		if info, err := os.Lstat(path); err != nil || !info.IsDir() {
			continue
		}
		if unlock, err := lock(path); err == nil {
			os.RemoveAll(path)
			unlock()
		}
	}
}

// lock locks a folder, or returns errTaken.
func lock(path string) (unlock func(), err error) {
	folder, err := os.Open(path)
	if err != nil {
		if errors.Is(err, os.ErrNotExist) {
			err = errTaken
		}
		return nil, err
	}
	if err := syscall.Flock(int(folder.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		folder.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			err = errTaken
		}
		return nil, err
	}
	now, err := os.Lstat(path)
	locked, lockedErr := folder.Stat()
	if err != nil || lockedErr != nil || !os.SameFile(now, locked) {
		folder.Close()
		return nil, errTaken
	}
	return func() { folder.Close() }, nil
}
