// Owners and hard links of files on Unix, which a save must keep.

//go:build unix

package files

import (
	"os"
	"syscall"
)

// keepOwner gives a file the owner of another and reports whether that worked.
func keepOwner(file *os.File, of os.FileInfo) bool {
	want, ok := of.Sys().(*syscall.Stat_t)
	if !ok {
		return true
	}
	info, err := file.Stat()
	if err != nil {
		return false
	}
	if have, ok := info.Sys().(*syscall.Stat_t); ok && have.Uid == want.Uid && have.Gid == want.Gid {
		return true
	}
	return file.Chown(int(want.Uid), int(want.Gid)) == nil
}

// otherNames reports whether a file has hard links besides the name that it was found by.
func otherNames(info os.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && stat.Nlink > 1
}
