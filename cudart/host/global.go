// Variables of modules on the CPU device: memory that copies and sets reach like an allocation, as long as the module is open.

package host

import (
	"strings"
	"unsafe"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/kernels/launch"
)

// Global implements [cudart.Module].
func (m *module) Global(name string) (cudart.Ptr, int64, error) {
	const call = "cuModuleGetGlobal"
	switch {
	case m.closed.Load():
		return 0, 0, fail(call, invalidHandle, m.device.id, "module %q is closed", m.source.Name)
	case m.source.Kind != launch.PTX && m.source.Kind != launch.Source || len(m.source.Code) == 0:
		return 0, 0, fail(call, notSupported, m.device.id, "variables of module %q cannot be used on the CPU device: that needs its source or PTX", m.source.Name)
	}
	if err := m.code.load(m.source, m.platform.compile); err != nil {
		return 0, 0, m.notRunnable(call, err)
	}
	symbol := strings.TrimPrefix(name, "&")
	if s := m.code.symbols[name]; s != "" {
		symbol = s
	}
	bytes, ok := m.code.program.Variable(symbol)
	if !ok {
		return 0, 0, fail(call, notFound, m.device.id, "module %q has no variable %q", m.source.Name, symbol)
	}
	m.globals.mu.Lock()
	defer m.globals.mu.Unlock()
	at := m.globals.known[symbol]
	if at == nil {
		at = &memory{place: variable, device: m.device.id, bytes: int64(len(bytes)), data: unsafe.Pointer(unsafe.SliceData(bytes)), owned: bytes}
		at.base = cudart.Ptr(uintptr(at.data))
		if m.globals.known == nil {
			m.globals.known = map[string]*memory{}
		}
		m.globals.known[symbol] = at
		m.platform.memory.mu.Lock()
		m.platform.memory.insert(at)
		m.platform.memory.mu.Unlock()
	}
	return at.base, at.bytes, nil
}

// remove ends the use of the variables.
func (g *globals) remove(a *addresses) {
	g.mu.Lock()
	defer g.mu.Unlock()
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, m := range g.known {
		if m.live.Load() {
			a.remove(m)
		}
	}
	g.known = nil
}
