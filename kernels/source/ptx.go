// Entries of a user's PTX: their names and the sizes of their parameters, and the variables that all launches share.

package source

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/dagrun/dagrun/dag"
)

var (
	ptxComment = regexp.MustCompile(`(?s)//[^\n]*|/\*.*?\*/`)
	ptxEntry   = regexp.MustCompile(`(?s)\.entry\s+([A-Za-z_$%][\w$]*)\s*(?:\(([^)]*)\))?`)
	ptxParam   = regexp.MustCompile(`\.param\s+(?:\.align\s+\d+\s+)?\.([a-z]+)(\d+)\s+(?:\.ptr\s*(?:\.\w+\s*)*(?:\.align\s+\d+\s*)?)?([A-Za-z_$%][\w$]*)(?:\s*\[\s*(\d+)\s*\])?`)
	ptxGlobal  = regexp.MustCompile(`(?m)^\s*(?:\.visible\s+|\.weak\s+|\.extern\s+|\.common\s+)*\.global\s+([^;=]*)[;=]`)
)

// parsePTX lists entries in order. PTX does not say what a 64-bit parameter is, nor how a buffer is used: the user must.
func parsePTX(text string) (entries []sourceKernel, globals []string) {
	text = ptxComment.ReplaceAllString(text, " ")
	for _, m := range ptxEntry.FindAllStringSubmatch(text, -1) {
		k := sourceKernel{name: m[1]}
		for _, p := range ptxParam.FindAllStringSubmatch(m[2], -1) {
			bits, _ := strconv.Atoi(p[2])
			param := dag.KernelParam{Size: int32(bits / 8)}
			if p[1] == "f" {
				param.DType = map[int]dag.DType{32: dag.F32, 64: dag.F64}[bits]
			}
			if count, err := strconv.Atoi(p[4]); err == nil {
				param.Size *= int32(count)
			}
			k.params = append(k.params, param)
		}
		entries = append(entries, k)
	}
	for _, m := range ptxGlobal.FindAllStringSubmatch(text, -1) {
		name := m[1]
		if i := strings.IndexByte(name, '['); i >= 0 {
			name = name[:i]
		}
		fields := strings.Fields(name)
		if len(fields) == 0 {
			continue
		}
		// Compilers put the texts of printf and constant tables here as well; nothing stores to those.
		if name = fields[len(fields)-1]; strings.HasPrefix(name, "$str") || neverStored(text, name) {
			continue
		}
		globals = append(globals, name)
	}
	return entries, globals
}

// neverStored reports whether a variable appears, after its declaration, in direct loads only.
func neverStored(text, name string) bool {
	uses := regexp.MustCompile(`(?m)^.*[^\w$]`+regexp.QuoteMeta(name)+`\b.*$`).FindAllString(text, -1)
	loads := 0
	for _, line := range uses {
		switch line = strings.TrimSpace(line); {
		case strings.HasPrefix(line, "ld."):
			loads++
		case strings.Contains(line, ".global "):
		default:
			return false
		}
	}
	return loads > 0
}
