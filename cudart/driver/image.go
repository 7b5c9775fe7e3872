// What can be read off code without loading it: PTX entries, its target, writable globals. Asks no driver.

package driver

import (
	"bytes"
	"debug/elf"
	"fmt"
	"regexp"
	"strings"
)

var (
	entryPattern  = regexp.MustCompile(`(?m)^[^/\n]*\.entry\s+([A-Za-z_$%][A-Za-z0-9_$]*)`)
	targetPattern = regexp.MustCompile(`(?m)^\s*\.target\s+(sm_[0-9]+[a-z]?)`)
	globalPattern = regexp.MustCompile(`(?m)^\s*(?:\.visible\s+|\.weak\s+|\.common\s+)*\.global\s+(?:\.attribute\([^)]*\)\s*)?(?:\.align\s+\d+\s+)?(?:\.v[24]\s+)?\.[a-z]\w*\s+([A-Za-z_$%][A-Za-z0-9_$]*)`)
)

func isPTX(code []byte) bool { return !bytes.HasPrefix(code, []byte("\x7fELF")) }

// ptxEntries lists kernels in the order of the file.
func ptxEntries(ptx string) []string {
	var names []string
	for _, m := range entryPattern.FindAllStringSubmatch(ptx, -1) {
		names = append(names, m[1])
	}
	return names
}

func ptxTarget(ptx string) string {
	if m := targetPattern.FindStringSubmatch(ptx); m != nil {
		return m[1]
	}
	return ""
}

// writableGlobalsOfPTX warns of __device__ variables: what they hold is shared by all launches, which no declaration shows.
func writableGlobalsOfPTX(module, ptx string) []string {
	var names []string
	for _, m := range globalPattern.FindAllStringSubmatch(ptx, -1) {
		names = append(names, m[1])
	}
	if names == nil {
		return nil
	}
	return []string{fmt.Sprintf("module %s has writable globals (%s); kernels that use them depend on each other in ways that no buffer shows",
		module, strings.Join(names, ", "))}
}

// writableGlobalsOfCubin warns of the sections that hold __device__ variables.
func writableGlobalsOfCubin(module string, cubin []byte) []string {
	file, err := elf.NewFile(bytes.NewReader(cubin))
	if err != nil {
		return nil
	}
	for _, section := range file.Sections {
		if (section.Name == ".nv.global" || section.Name == ".nv.global.init") && section.Size > 0 {
			return []string{fmt.Sprintf("module %s has writable globals (%d bytes); kernels that use them depend on each other in ways that no buffer shows",
				module, section.Size)}
		}
	}
	return nil
}
