// Which files lie outside of a pipeline's folder: messages name them, but quote nothing of what is in them.

package files

import (
	"cmp"
	"path/filepath"
	"strings"
)

// Outside reports whether a name leads out of a folder, by itself or through links. "" is the working directory. A name whose links cannot
// be followed counts as outside.
func Outside(folder, name string) bool {
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
	between, err := filepath.Rel(inner, place.path)
	return err != nil || between == ".." || strings.HasPrefix(between, ".."+string(filepath.Separator))
}
