// Instructions and registers, as text.

package conditions

import (
	"fmt"
	"strings"
)

// writer writes instructions.
type writer struct {
	strings.Builder
	registers strings.Builder
	temps     int
}

func (w *writer) line(format string, a ...any) { fmt.Fprintf(w, "\t"+format+";\n", a...) }

// temp declares a register.
func (w *writer) temp(kind string) string {
	w.temps++
	fmt.Fprintf(&w.registers, "\t.reg .%s %%t%d;\n", kind, w.temps)
	return fmt.Sprintf("%%t%d", w.temps)
}

// count loads or stores a count.
func (w *writer) count(how, register string, count int) {
	if how == "ld" {
		w.line("ld.global.b64 %%%s, [%%counts+%d]", register, 8*count)
		return
	}
	w.line("st.global.b64 [%%counts+%d], %%%s", 8*count, register)
}
