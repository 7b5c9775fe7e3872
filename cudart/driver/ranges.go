// Ranges for profilers (NVTX): a tool that was injected into the process provides the functions that mark them. Without a tool there are no
// functions, and ranges need no rows.

package driver

import (
	"os"
	"sync"
	"unsafe"

	"github.com/dagrun/dagrun/internal/dl"
)

// ranges holds the tool's functions; 0 without a tool.
type ranges struct{ push, pop uintptr }

// Tables that an application offers to a tool (NvtxExportTableID), and the entries that are used here.
const (
	tableCallbacks   = 1
	tableVersion     = 3
	nvtxVersion      = 3
	moduleCore       = 1
	moduleLast       = 6
	moduleFunctions  = 16 // the most functions of any module; index 0 is unused
	functionPushA    = 9
	functionPop      = 11
	injectionVar     = "NVTX_INJECTION64_PATH"
	injectionSymbol  = "InitializeInjectionNvtx2"
	injectionSuccess = 1
)

// exports is what the tool gets to see. It stays outside Go's heap until the process ends, because tools keep addresses.
type exports struct {
	callbacks struct {
		bytes    uint64
		getTable uintptr
	}
	version struct {
		bytes      uint64
		version    uint32
		_          uint32
		setVersion uintptr
	}
	sizes [moduleLast + 1]uint32
	table [moduleLast + 1][moduleFunctions + 1]uintptr // addresses of the slots
	slot  [moduleLast + 1][moduleFunctions]uintptr     // where a tool writes its functions
}

// moduleSizes is how many functions NVTX 3 has in each module, including the unused first one.
var moduleSizes = [moduleLast + 1]uint32{0, 16, 9, 15, 7, 16, 7}

// injectedRanges asks the process's tool once. Its callbacks are never freed.
var injectedRanges = sync.OnceValue(func() ranges {
	path := os.Getenv(injectionVar)
	if path == "" {
		return ranges{}
	}
	tool, err := dl.Open(path)
	if err != nil {
		return ranges{}
	}
	initialize, err := tool.Symbol(injectionSymbol)
	if err != nil {
		return ranges{}
	}
	return inject(initialize)
})

// inject lets a tool fill in its functions.
func inject(initialize uintptr) ranges {
	memory, err := mapMemory(int64(unsafe.Sizeof(exports{})))
	if err != nil {
		return ranges{}
	}
	e := (*exports)(unsafe.Pointer(&memory[0]))
	for module := range e.slot {
		e.sizes[module] = moduleSizes[module]
		for f := range e.slot[module] {
			e.table[module][f] = uintptr(unsafe.Pointer(&e.slot[module][f]))
		}
	}
	e.callbacks.bytes = uint64(unsafe.Sizeof(e.callbacks))
	e.callbacks.getTable = dl.Callback(func(module, table, size uintptr) uintptr {
		if module < moduleCore || module > moduleLast {
			return 0
		}
		**(**uintptr)(unsafe.Pointer(&table)) = uintptr(unsafe.Pointer(&e.table[module]))
		if size != 0 {
			**(**uint32)(unsafe.Pointer(&size)) = e.sizes[module]
		}
		return 1
	})
	e.version.bytes = uint64(unsafe.Sizeof(e.version))
	e.version.version = nvtxVersion
	e.version.setVersion = dl.Callback(func(uintptr) uintptr { return 0 })
	export := dl.Callback(func(id uintptr) uintptr {
		switch id {
		case tableCallbacks:
			return uintptr(unsafe.Pointer(&e.callbacks))
		case tableVersion:
			return uintptr(unsafe.Pointer(&e.version))
		}
		return 0
	})
	if uint32(dl.Call(initialize, export)) != injectionSuccess {
		return ranges{}
	}
	r := ranges{push: e.slot[moduleCore][functionPushA], pop: e.slot[moduleCore][functionPop]}
	if r.push == 0 || r.pop == 0 {
		return ranges{}
	}
	return r
}
