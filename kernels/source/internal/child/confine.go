// What a confined compiler may read beside the folders that it is given: its own, and those of the system.

package child

import (
	"errors"
	"path/filepath"
)

// errCannotConfine is the error where the system cannot confine a compiler.
var errCannotConfine = errors.New("--confined compiles CUDA C only where Linux can confine the compiler, with Landlock (since 6.2) and seccomp, on amd64 or arm64; compile the source to PTX beforehand")

// systemFolders hold programs, libraries and headers, nobody's data.
var systemFolders = []string{"/usr", "/bin", "/lib", "/lib32", "/lib64", "/nix/store", "/etc/ld.so.cache", "/etc/ld.so.conf",
	"/etc/ld.so.conf.d", "/etc/alternatives"}

// ownFolders are those that belong to a program, wherever it is installed.
func ownFolders(program string) []string {
	path, err := filepath.EvalSymlinks(program)
	if err != nil {
		return nil
	}
	list := []string{path}
	above := filepath.Dir(filepath.Dir(path))
	if filepath.Base(filepath.Dir(path)) != "bin" {
		return list
	}
	for _, name := range []string{"bin", "lib", "lib64", "libexec", "include", "nvvm", "targets"} {
		list = append(list, filepath.Join(above, name))
	}
	return list
}
