// Programs: a module's variables in memory, and its compiled entries.

package simt

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"strconv"
	"strings"
	"unsafe"

	"github.com/dagrun/dagrun/internal/ptx"
)

// Generic addresses of memory that is not global have one of these values in their top byte. Real addresses never do.
const (
	windowShift = 56
	inShared    = uint64(1) << windowShift
	inLocal     = uint64(2) << windowShift
	inParam     = uint64(3) << windowShift
	inCode      = uint64(4) << windowShift // of functions
	inWindow    = uint64(1)<<windowShift - 1
)

const (
	symbolAlign  = 256
	mostConstant = 64 << 10
	mostGlobal   = 1 << 30
)

// Load reads PTX, lays out the module's variables and fills in their initial values.
func Load(name, source string) (*Program, error) {
	m, err := ptx.Parse(source)
	if err != nil {
		return nil, err
	}
	p := &Program{Name: name, module: m, places: make([]uint64, len(m.Variables)), kernels: map[ptx.FunctionID]*Kernel{}}
	total := int64(0)
	offsets := make([]int64, len(m.Variables))
	for i := range m.Variables {
		v := &m.Variables[i]
		if v.Space != ptx.Global && v.Space != ptx.Const {
			continue
		}
		align := int64(max(v.Align, 16))
		total = (total + align - 1) / align * align
		offsets[i] = total
		if total += v.Size; total > mostGlobal {
			return nil, fmt.Errorf("%s:%v: the module's variables take more than %d bytes", name, v.Position, mostGlobal)
		}
	}
	room := make([]byte, total+symbolAlign)
	start := uint64(uintptr(unsafe.Pointer(unsafe.SliceData(room))))
	skip := -start & (symbolAlign - 1)
	p.memory = room[skip : skip+uint64(total)]
	for i := range m.Variables {
		if v := &m.Variables[i]; v.Space == ptx.Global || v.Space == ptx.Const {
			p.places[i] = start + skip + uint64(offsets[i])
			p.ranges = append(p.ranges, span{p.places[i], p.places[i] + uint64(v.Size)})
		}
	}
	for i := range m.Variables {
		if v := &m.Variables[i]; v.Space == ptx.Global || v.Space == ptx.Const {
			if err := p.initialise(v, p.memory[offsets[i]:offsets[i]+v.Size]); err != nil {
				return nil, err
			}
		}
	}
	return p, nil
}

// initialise fills a variable's memory. Addresses in it are replaced by those of this program.
func (p *Program) initialise(v *ptx.Variable, to []byte) error {
	copy(to, v.Init)
	for _, r := range v.Relocate {
		address := uint64(r.Addend)
		switch {
		case r.Variable != ptx.NoVariable:
			target := &p.module.Variables[r.Variable]
			if target.Space != ptx.Global && target.Space != ptx.Const {
				return fmt.Errorf("%s:%v: %s is initialised with the address of %s, which is not global", p.Name, v.Position, v.Name, target.Name)
			}
			address += p.places[r.Variable]
		case r.Function != ptx.NoFunction:
			address += inCode | uint64(p.module.Resolve(r.Function))
		}
		var word [8]byte
		binary.LittleEndian.PutUint64(word[:], address>>r.Shift)
		if r.Offset < 0 || r.Offset+int64(r.Size) > int64(len(to)) {
			return fmt.Errorf("%s:%v: an address in the initial value of %s lies outside it", p.Name, v.Position, v.Name)
		}
		copy(to[r.Offset:r.Offset+int64(r.Size)], word[:])
	}
	return nil
}

// Variable returns the memory of a global or constant variable.
func (p *Program) Variable(name string) ([]byte, bool) {
	id, ok := p.module.Variable(name)
	if !ok || p.places[id] == 0 {
		return nil, false
	}
	start := p.places[id] - uint64(uintptr(unsafe.Pointer(unsafe.SliceData(p.memory))))
	return p.memory[start : start+uint64(p.module.Variables[id].Size)], true
}

// sharedName is the variable at a byte of shared memory, and the byte of it.
func (k *Kernel) sharedName(address uint64) (name string, at uint64) {
	name, at = "shared memory", address
	for _, v := range k.names {
		if uint64(v.at) <= address {
			name, at = plainName(v.name)+" in shared memory", address-uint64(v.at)
		}
	}
	return name, at
}

// plainName is the variable's own name in the mangled name of a static variable of a function, _ZZ<function>E<length><name>, or the name
// as it is.
func plainName(name string) string {
	if !strings.HasPrefix(name, "_ZZ") {
		return name
	}
	for i := strings.LastIndexByte(name, 'E'); i > 0; i = strings.LastIndexByte(name[:i], 'E') {
		rest := strings.TrimLeft(name[i+1:], "0123456789")
		if n, err := strconv.Atoi(name[i+1 : len(name)-len(rest)]); err == nil && n > 0 && n <= len(rest) {
			return rest[:n]
		}
	}
	return name
}

// Params is the number of parameters.
func (k *Kernel) Params() int { return len(k.params) }

// ParamSizes returns the size of each parameter in bytes.
func (k *Kernel) ParamSizes() []int {
	sizes := make([]int, len(k.params))
	for i, p := range k.params {
		sizes[i] = int(p.size)
	}
	return sizes
}

// Meets reports whether the kernel asks where the blocks of a cooperative launch meet. Without such a launch it must not wait there.
func (k *Kernel) Meets() bool { return k.meets }

// SharedBytes returns how much shared memory a block needs in addition to the launch's dynamic shared memory.
func (k *Kernel) SharedBytes() int64 { return k.shared }

// MaxThreads returns the most threads per block that the kernel's directives allow; 0 if they set no limit.
func (k *Kernel) MaxThreads() int {
	n := k.limits.MaxThreads
	if k.limits.RequiredThreads[0] > 0 {
		n = k.limits.RequiredThreads
	}
	return int(n[0]) * int(max(n[1], 1)) * int(max(n[2], 1))
}

// UnsupportedError is an instruction that this package cannot run.
type UnsupportedError struct {
	Program     string
	Kernel      string
	Instruction string
	Position    string // line:column
	Reason      string
}

func (e *UnsupportedError) Error() string {
	text := fmt.Sprintf("%s:%s: kernel %q uses %s, which the CPU device cannot run", e.Program, e.Position, e.Kernel, e.Instruction)
	if e.Reason != "" {
		text += ": " + e.Reason
	}
	return text
}

// alignUp rounds up to a power of two.
func alignUp(n, align int64) int64 {
	if align <= 0 || bits.OnesCount64(uint64(align)) != 1 {
		align = 1
	}
	return (n + align - 1) &^ (align - 1)
}
