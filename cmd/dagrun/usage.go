// Errors for wrong command lines: those of cobra and pflag reworded, with a suggestion.

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dagrun/dagrun/internal/words"
)

// didYouMean returns the end of a message about an unknown name, or "".
func didYouMean(name string, known []string) string {
	if meant := words.Suggest(name, known); meant != "" {
		return fmt.Sprintf("; did you mean %q?", meant)
	}
	return ""
}

// flagNames lists a command's flags as they are typed.
func flagNames(c *cobra.Command) []string {
	var names []string
	for _, line := range strings.Split(c.Flags().FlagUsages(), "\n") {
		if _, rest, ok := strings.Cut(line, "--"); ok {
			name, _, _ := strings.Cut(rest, " ")
			names = append(names, "--"+strings.TrimSuffix(name, "[=true]"))
		}
	}
	return names
}

// flagError rewrites an error of parsing flags.
func flagError(c *cobra.Command, err error) error {
	var unknown interface{ GetSpecifiedName() string }
	if errors.As(err, &unknown) && strings.HasPrefix(err.Error(), "unknown flag") {
		name := "--" + unknown.GetSpecifiedName()
		return fmt.Errorf("unknown flag %s%s", name, hint(didYouMean(name, flagNames(c)), "; see "+c.CommandPath()+" --help"))
	}
	var wrong interface{ GetValue() string }
	if errors.As(err, &wrong) {
		_, rest, _ := strings.Cut(err.Error(), `" for "`)
		names, _, _ := strings.Cut(rest, `" flag`)
		name := names[strings.Index(names, "--"):]
		want := "a whole number"
		if flag := c.Flags().Lookup(strings.TrimPrefix(name, "--")); flag != nil {
			switch flag.Value.Type() {
			case "duration":
				want = "a duration such as 30s or 5m"
			case "bool":
				want = "true or false"
			}
		}
		if number, err := strconv.ParseFloat(wrong.GetValue(), 64); err == nil && want == "a whole number" && number == math.Trunc(number) && math.Abs(number) < 1e15 {
			want += fmt.Sprintf(", such as %.0f", number)
		}
		return fmt.Errorf("%s %q: want %s", name, wrong.GetValue(), want)
	}
	text := err.Error()
	if letter, ok := strings.CutPrefix(text, "unknown shorthand flag: "); ok {
		return fmt.Errorf("unknown flag -%s; see %s --help", strings.Trim(letter[:strings.Index(letter, " in ")], "'"), c.CommandPath())
	}
	if name, ok := strings.CutPrefix(text, "flag needs an argument: "); ok {
		return fmt.Errorf("%s needs a value", name)
	}
	return err
}

// hint returns the first of two texts that is not empty.
func hint(first, second string) string {
	if first != "" {
		return first
	}
	return second
}

// fileError explains a pipeline file that could not be opened. A name that looks like a command is treated as a mistyped command.
func (a *app) fileError(root *cobra.Command, name string, err error) error {
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
		near := didYouMean(name, commands)
		for _, ending := range []string{".yaml", ".yml"} {
			if found, err := os.Stat(name + ending); err == nil && found.Mode().IsRegular() {
				near = fmt.Sprintf("; did you mean %q?", name+ending)
				break
			}
		}
		return fmt.Errorf("unknown command %q, and no file has that name%s", name, hint(near, "; see dagrun --help"))
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

// missingFile is a pipeline file that could not be read.
type missingFile struct {
	name string
	err  error
}

func (e *missingFile) Error() string { return e.err.Error() }
func (e *missingFile) Unwrap() error { return e.err }

// atMost accepts up to n arguments.
func atMost(n int) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) <= n {
			return nil
		}
		return fmt.Errorf("%q is one argument too many; usage: %s", args[n], c.UseLine())
	}
}

// oneFile accepts exactly one argument.
func oneFile(c *cobra.Command, args []string) error {
	switch len(args) {
	case 1:
		return nil
	case 0:
		return fmt.Errorf("no pipeline file given; usage: %s", c.UseLine())
	}
	return fmt.Errorf("expected one pipeline file; %q is one too many", args[1])
}
