// Owners and hard links on systems other than Unix: a rename keeps what there is to keep.

//go:build !unix

package files

import "os"

func keepOwner(*os.File, os.FileInfo) bool { return true }

func otherNames(os.FileInfo) bool { return false }
