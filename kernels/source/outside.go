// Files outside of a pipeline's folder: a source may include headers from there, and messages about those say only where they are. What is no
// header is not even read as one, because signatures would quote it.

package source

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/dagrun/dagrun/internal/files"
	"github.com/dagrun/dagrun/kernels/launch"
)

// errNoHeader is the error of an include that leads to something else than a header, such as a password file.
var errNoHeader = errors.New("is outside of the pipeline's folder, and it is no header")

var (
	headerEndings = []string{".h", ".hh", ".hpp", ".hxx", ".h++", ".cuh", ".cu", ".inl", ".inc", ".ipp", ".tcc", ".tpp"}
	// directiveFirst matches a text that begins with a directive, after comments.
	directiveFirst = regexp.MustCompile(`^(?:\s+|//[^\n]*|/\*(?s:.*?)\*/)*#[ \t]*(?:pragma|if|ifdef|ifndef|define|include|error|warning)\b`)
)

// checkOutside returns an error if a path leads out of a folder to a file that is no header. "" stands for no folder.
func checkOutside(folder, path string, text []byte) error {
	if folder == "" || !files.Foreign(folder, path) || slices.Contains(headerEndings, strings.ToLower(filepath.Ext(files.PlaceOf(path).String()))) ||
		directiveFirst.Match(text) {
		return nil
	}
	return errNoHeader
}

// confinement opens the folder that a module's source may include files from: that of the pipeline, or else its own.
func confinement(m *launch.Module) (folder *files.Folder, confined []string, err error) {
	path := cmp.Or(m.Folder, filepath.Dir(m.Path))
	for _, include := range m.Build.Include {
		if files.Outside(path, include) {
			return nil, nil, fmt.Errorf("%s: include: %s is outside of the pipeline's folder, and --confined allows nothing there", m.Name, include)
		}
	}
	if folder, err = files.OpenFolder(path); err != nil {
		return nil, nil, files.CannotRead(path, err)
	}
	return folder, []string{path}, nil
}

// hidden is what messages say of a mistake in a file outside of the pipeline's folder.
const hidden = "there is a mistake here, in a file outside of the pipeline's folder"

// leadingPlace is the line, and the column, that an error begins with.
var leadingPlace = regexp.MustCompile(`^\d+(?::\d+)?: `)

// withoutQuotes returns the error of parsing a file, without what it quotes if the file is outside of a folder.
func withoutQuotes(folder, path string, err error) error {
	if folder == "" || !files.Foreign(folder, path) {
		return err
	}
	return errors.New(leadingPlace.FindString(err.Error()) + hidden + "; dagrun kernels " + path + " shows it")
}
