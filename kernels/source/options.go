// What may be said to a compiler: include folders, definitions, and options from a list. Checking a stranger's file must not run
// code, read response files or write elsewhere, so everything else is refused.

package source

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/dagrun/dagrun/kernels/launch"
)

// compilers are the values of compiler:.
var compilers = []string{"auto", "nvrtc", "nvcc", "clang"}

// allowedOptions are the options that may be given, in the spelling of nvcc: language, precision, registers, line information.
var allowedOptions = []*regexp.Regexp{
	regexp.MustCompile(`^(--std=|-std=)(c\+\+)(11|14|17|20)$`),
	regexp.MustCompile(`^(--use_fast_math|-use_fast_math)$`),
	regexp.MustCompile(`^--?(fmad|ftz|prec-div|prec-sqrt)=(true|false)$`),
	regexp.MustCompile(`^(--maxrregcount=|-maxrregcount=)[0-9]{1,3}$`),
	regexp.MustCompile(`^(--generate-line-info|-lineinfo|--expt-relaxed-constexpr|-expt-relaxed-constexpr|--extended-lambda|-extended-lambda|--extra-device-vectorization|-extra-device-vectorization)$`),
	regexp.MustCompile(`^(--restrict|-restrict|--disable-warnings|-w)$`),
}

var macroName = regexp.MustCompile(`^[A-Za-z_][A-Za-z_0-9]*$`)

// checkBuild refuses what a pipeline may not ask of a compiler.
func checkBuild(b *launch.Build) error {
	if b.Compiler != "" && !slices.Contains(compilers, b.Compiler) {
		return fmt.Errorf("unknown compiler %q; it may be auto, nvrtc, nvcc or clang", b.Compiler)
	}
	for _, d := range b.Define {
		if !macroName.MatchString(d.Name) {
			return fmt.Errorf("define: %q is no name of a macro", d.Name)
		}
		if strings.ContainsAny(d.Value, "\n\r\x00") {
			return fmt.Errorf("define: the value of %s has more than one line", d.Name)
		}
	}
	for _, folder := range b.Include {
		if folder == "" || strings.HasPrefix(folder, "-") || strings.ContainsAny(folder, "\n\r\x00") {
			return fmt.Errorf("include: %q is no folder", folder)
		}
	}
	for _, option := range b.Options {
		if !slices.ContainsFunc(allowedOptions, func(r *regexp.Regexp) bool { return r.MatchString(option) }) {
			return fmt.Errorf("options: %q is not allowed; those that are: --std=c++17, --use_fast_math, --fmad=false, --ftz=, --prec-div=, --prec-sqrt=, "+
				"--maxrregcount=, --generate-line-info, --expt-relaxed-constexpr, --extended-lambda, --extra-device-vectorization, --restrict, -w; use include: for -I and define: for -D", option)
		}
	}
	return nil
}
