// The files that a shell offers while the user types a command's arguments.

package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// inputExtensions are those of the files that a command takes: pipelines, and of some commands recordings and planned graphs.
func inputExtensions(c *cobra.Command) []string {
	extensions := []string{".yaml", ".yml"}
	if slices.Contains([]string{"check", "dot", "plan", "trace"}, c.Name()) {
		extensions = append(extensions, ".rec")
	}
	if slices.Contains([]string{"dagrun", "run", "check", "dot", "plan"}, c.Name()) {
		extensions = append(extensions, ".dagrun")
	}
	return extensions
}

// OnePipeline completes the name of a pipeline file if none is given yet.
func OnePipeline(c *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return PathsWith(typed, inputExtensions(c)...)
}

// ManyPipelines completes the names of pipeline files for a command that takes several.
func ManyPipelines(c *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	paths, directive := PathsWith(typed, inputExtensions(c)...)
	return slices.DeleteFunc(paths, func(path string) bool { return slices.Contains(args, path) }), directive
}

// PathsWith lists the folders, and the files with one of the extensions, whose paths begin with what was typed. Cobra's own directive
// for extensions cannot be used: for the root command it would take the names of commands for extensions.
func PathsWith(typed string, extensions ...string) ([]string, cobra.ShellCompDirective) {
	folder, begun := filepath.Split(typed)
	looked := folder
	if rest, ok := strings.CutPrefix(folder, "~/"); ok { // the shell has not replaced it yet
		if home, err := os.UserHomeDir(); err == nil {
			looked = filepath.Join(home, rest)
		}
	}
	if looked == "" {
		looked = "."
	}
	entries, _ := os.ReadDir(looked) // a folder that cannot be read has nothing to offer
	var paths []string
	folders := 0
	for _, e := range entries {
		name := e.Name()
		if !strings.HasPrefix(name, begun) || strings.HasPrefix(name, ".") && begun == "" {
			continue
		}
		info, err := os.Stat(filepath.Join(looked, name)) // through links
		switch {
		case err != nil:
		case info.IsDir():
			paths = append(paths, folder+name+"/")
			folders++
		case slices.Contains(extensions, strings.ToLower(filepath.Ext(name))):
			paths = append(paths, folder+name)
		}
	}
	directive := cobra.ShellCompDirectiveNoFileComp
	if folders > 0 && folders == len(paths) { // the path goes on behind a folder
		directive |= cobra.ShellCompDirectiveNoSpace
	}
	return paths, directive
}
