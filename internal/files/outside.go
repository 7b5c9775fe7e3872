// Which files lie outside of a pipeline's folder, or of the repository that it is in: messages name them, but quote nothing of what is in them.

package files

import (
	"cmp"
	"os"
	"path/filepath"
	"strings"
)

// Outside reports whether a name leads out of a folder, by itself or through links. "" is the working directory. A name whose links cannot
// be followed counts as outside.
func Outside(folder, name string) bool {
	return outside(folder, name, func(folder string) string { return folder })
}

// Foreign reports whether a name leads out of a folder, and also out of the Git repository that the folder is in: nothing of it is quoted.
func Foreign(folder, name string) bool { return outside(folder, name, repository) }

// outside is Outside of what a folder stands for.
func outside(folder, name string, bounds func(folder string) string) bool {
	inner, err := filepath.Abs(cmp.Or(folder, "."))
	if err != nil {
		return true
	}
	if resolved, err := filepath.EvalSymlinks(inner); err == nil {
		inner = resolved
	}
	place := PlaceOf(name)
	if place.path == "" {
		return true
	}
	between, err := filepath.Rel(bounds(inner), place.path)
	return err != nil || between == ".." || strings.HasPrefix(between, ".."+string(filepath.Separator))
}

// repository returns the root of the Git repository that a folder is in, or the folder itself. A repository of a home directory does not count: everything
// of the user's would be in it.
func repository(folder string) string {
	home, _ := os.UserHomeDir()
	if resolved, err := filepath.EvalSymlinks(home); err == nil {
		home = resolved
	}
	for at := folder; at != home; at = filepath.Dir(at) {
		if _, err := os.Lstat(filepath.Join(at, ".git")); err == nil {
			return at
		}
		if at == filepath.Dir(at) {
			break
		}
	}
	return folder
}

// Full is the file that a path from a folder names, in one spelling. Links are not followed.
func Full(dir, path string) string {
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	if full, err := filepath.Abs(path); err == nil {
		return full
	}
	return filepath.Clean(path) // there is no working directory
}
