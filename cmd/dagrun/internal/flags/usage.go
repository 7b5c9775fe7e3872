// Errors for wrong command lines: those of cobra and pflag reworded, with a suggestion.

package flags

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dagrun/dagrun/internal/words"
)

// DidYouMean returns the end of a message about an unknown name, or "".
func DidYouMean(name string, known []string) string {
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

// FlagError rewrites an error of parsing flags.
func FlagError(c *cobra.Command, err error) error {
	var unknown interface{ GetSpecifiedName() string }
	if errors.As(err, &unknown) && strings.HasPrefix(err.Error(), "unknown flag") {
		name := "--" + unknown.GetSpecifiedName()
		return fmt.Errorf("unknown flag %s%s", name, Hint(DidYouMean(name, flagNames(c)), "; see "+c.CommandPath()+" --help"))
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
		if number, err := strconv.ParseFloat(wrong.GetValue(), 64); err == nil && want == "a whole number" && number == math.Trunc(number) &&
			math.Abs(number) < 1e15 {
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

// Hint returns the first of two texts that is not empty.
func Hint(first, second string) string {
	if first != "" {
		return first
	}
	return second
}

// AtMost accepts up to n arguments.
func AtMost(n int) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) <= n {
			return nil
		}
		return fmt.Errorf("%q is one argument too many; usage: %s", args[n], c.UseLine())
	}
}

// OneFile accepts exactly one argument.
func OneFile(c *cobra.Command, args []string) error {
	switch len(args) {
	case 1:
		return nil
	case 0:
		return fmt.Errorf("no pipeline file given; usage: %s", c.UseLine())
	}
	return fmt.Errorf("expected one pipeline file; %q is one too many", args[1])
}
