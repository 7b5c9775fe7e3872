// The list of equivalent mutants: those that no test can kill, because they change no result. Each is named with the reason.

package main

import (
	"fmt"
	"os"
	"strings"
)

// readEquivalent reads a list of mutants, one a line, each followed by indented lines with the reason. Lines that begin with # and empty
// lines are ignored.
func readEquivalent(file string) (map[string]string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	reasons := map[string]string{}
	last := ""
	for k, line := range strings.Split(string(text), "\n") {
		content := strings.TrimSpace(line)
		switch {
		case content == "" || strings.HasPrefix(line, "#"):
		case content == strings.TrimRight(line, " \r"):
			if _, twice := reasons[content]; twice {
				return nil, fmt.Errorf("%s:%d: this mutant is named twice: %s", file, k+1, content)
			}
			last = content
			reasons[last] = ""
		case last == "":
			return nil, fmt.Errorf("%s:%d: a reason without a mutant before it", file, k+1)
		default:
			reasons[last] = strings.TrimSpace(reasons[last] + " " + content)
		}
	}
	for name, reason := range reasons {
		if reason == "" {
			return nil, fmt.Errorf("%s: no reason is given for %s", file, name)
		}
	}
	return reasons, nil
}

// checkEquivalent returns an error for the first name that is no mutant any more: its code has changed, so its reason may be wrong.
func checkEquivalent(root string, reasons map[string]string) error {
	known := map[string]bool{}
	read := map[string]bool{}
	for name := range reasons {
		file, _, _ := strings.Cut(name, " ")
		if read[file] {
			continue
		}
		read[file] = true
		mutants, err := readMutants(root, file)
		if err != nil {
			return err
		}
		for k := range mutants {
			known[mutants[k].name()] = true
		}
	}
	gone := ""
	for name := range reasons {
		if !known[name] && (gone == "" || name < gone) {
			gone = name
		}
	}
	if gone != "" {
		return fmt.Errorf("there is no such mutant any more: %s; remove it from the list of equivalent mutants, or name the one that it has become", gone)
	}
	return nil
}

func readMutants(root, file string) ([]mutant, error) {
	source, err := os.ReadFile(root + "/" + file)
	if err != nil {
		return nil, err
	}
	return mutantsOf(file, source)
}
