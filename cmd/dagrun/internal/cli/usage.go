// Errors for pipeline files that could not be read, with a suggestion.

package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/dagrun/dagrun/cmd/dagrun/internal/flags"
	"github.com/dagrun/dagrun/internal/words"
)

// ShownName is a pipeline file's name in messages.
func ShownName(name string) string {
	if name == "-" {
		return "<stdin>"
	}
	return name
}

// Verb is the form of a verb for a count.
func Verb(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// fileError explains a pipeline file that could not be opened. A name that looks like a command is treated as a mistyped command.
func (t *Console) fileError(root *cobra.Command, name string, err error) error {
	if !errors.Is(err, fs.ErrNotExist) {
		var path *fs.PathError
		if errors.As(err, &path) {
			err = path.Err
		}
		return fmt.Errorf("cannot read %s: %w", name, err)
	}
	if root != nil && !strings.ContainsAny(name, "./\\") {
		var commands []string
		for _, c := range root.Commands() {
			if !c.Hidden {
				commands = append(commands, c.Name())
			}
		}
		near := flags.DidYouMean(name, commands)
		for _, ending := range []string{".yaml", ".yml"} {
			if found, err := os.Stat(name + ending); err == nil && found.Mode().IsRegular() {
				near = fmt.Sprintf("; did you mean %q?", name+ending)
				break
			}
		}
		return fmt.Errorf("unknown command %q, and no file has that name%s", name, flags.Hint(near, "; see dagrun --help"))
	}
	if meant := nearestPipeline(name); meant != "" {
		return fmt.Errorf("%s: no such file; did you mean %q?", name, meant)
	}
	return fmt.Errorf("%s: no such file; dagrun init NAME writes a first pipeline", name)
}

// nearestPipeline returns the pipeline file that was probably meant by a name that no file has, or "". Extensions do not count: they would
// make short names look alike.
func nearestPipeline(name string) string {
	stem := func(name string) string {
		if ext := filepath.Ext(name); ext == ".yaml" || ext == ".yml" {
			return strings.TrimSuffix(name, ext)
		}
		return name
	}
	entries, _ := os.ReadDir(filepath.Dir(name)) // a folder that cannot be read has no suggestions
	typed := stem(filepath.Base(name))
	var stems []string
	files := map[string]string{}
	for _, e := range entries {
		s := stem(e.Name())
		if e.IsDir() || s == e.Name() {
			continue
		}
		stems, files[s] = append(stems, s), filepath.Join(filepath.Dir(name), e.Name())
	}
	if file := files[typed]; file != "" {
		return file
	}
	return files[words.Suggest(typed, stems)]
}

// MissingFile is a pipeline file that could not be read.
type MissingFile struct {
	Name string
	Err  error
}

func (e *MissingFile) Error() string { return e.Err.Error() }

func (e *MissingFile) Unwrap() error { return e.Err }

// OnlyFlags refuses flags that mean nothing for a recording. Those of every command's output are allowed.
func OnlyFlags(c *cobra.Command, recorded string, allowed ...string) error {
	return OnlyFlagsOf(c, "for a recording, and "+ShownName(recorded)+" is one", allowed...)
}

// OnlyFlagsOf refuses flags that mean nothing for a file, with words that follow "means nothing".
func OnlyFlagsOf(c *cobra.Command, file string, allowed ...string) error {
	allowed = append(allowed, "output", "color", "quiet", "verbose", "help")
	var wrong error
	c.Flags().Visit(func(f *pflag.Flag) {
		if wrong == nil && !slices.Contains(allowed, f.Name) {
			wrong = fmt.Errorf("--%s means nothing %s", f.Name, file)
		}
	})
	return wrong
}
