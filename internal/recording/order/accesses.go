// Accesses: the bytes that copies, memsets and launches touch, from the words of their calls, from measurement or from their arguments.

package order

import (
	"encoding/binary"
	"sort"

	"github.com/dagrun/dagrun/internal/happens"
	"github.com/dagrun/dagrun/internal/recording"
)

// mostRows is how many rows of a copy or a memset are told apart. With more, all between the first and the last byte counts as possible.
const mostRows = 1 << 14

// stretches appends the bytes of rows.
func stretches(into []happens.Access, mode happens.Mode, address, bytes, rows, slices, pitch, slice uint64) []happens.Access {
	rows, slices = max(rows, 1), max(slices, 1)
	if rows > 1 && pitch == bytes {
		bytes, rows = bytes*rows, 1
	}
	if rows == 1 && slices > 1 && slice == bytes {
		bytes, slices = bytes*slices, 1
	}
	if bytes == 0 {
		return into
	}
	if rows > mostRows || slices > mostRows/rows {
		return append(into, happens.Access{Low: address, High: address + (slices-1)*slice + (rows-1)*pitch + bytes, Mode: mode << 3})
	}
	for z := range slices {
		for y := range rows {
			low := address + z*slice + y*pitch
			into = append(into, happens.Access{Low: low, High: low + bytes, Mode: mode})
		}
	}
	return into
}

// sides returns what kinds of memory a copy reads and writes.
func (m *machine) sides(words []uint64) (from, to place) {
	return m.place(words[copyFromKind], words[copyFrom]), m.place(words[copyToKind], words[copyTo])
}

func (m *machine) place(kind, address uint64) place {
	if kind == memoryArray {
		return device
	}
	is := m.allocations.at(address)
	switch {
	case is != nil && !is.dead && (is.kind == allocPinned || is.kind == allocRegistered):
		return pinned
	case is != nil && !is.dead && is.kind == allocManaged:
		return managed
	case kind == memoryHost || kind != memoryDevice && (is == nil || is.dead):
		return pageable
	}
	return device
}

// copyAccesses appends what a copy touches. Pageable memory is left out, see hostAccess.
func (m *machine) copyAccesses(into []happens.Access, words []uint64) []happens.Access {
	from, to := m.sides(words)
	side := func(mode happens.Mode, kind, address, pitch, slice uint64, where place) {
		switch {
		case kind == memoryArray: // which bytes of the array are touched is not known
			into = append(into, happens.Access{Low: address, High: address + 1, Mode: mode << 3})
		case where != pageable:
			into = stretches(into, mode, address, words[copyBytes], words[copyRows], words[copySlices], pitch, slice)
		}
	}
	side(happens.Read, words[copyFromKind], words[copyFrom], words[copyFromPitch], words[copyFromSlice], from)
	side(happens.Write, words[copyToKind], words[copyTo], words[copyToPitch], words[copyToSlice], to)
	return into
}

func setAccesses(into []happens.Access, words []uint64) []happens.Access {
	return stretches(into, happens.Write, words[setAddress], words[setBytes], words[setRows], 1, words[setPitch], 0)
}

// function returns what a handle meant at a moment.
func (m *machine) function(handle, sequence uint64) *function {
	infos := m.process.Functions[handle]
	if len(infos) == 0 {
		return &function{}
	}
	at := max(sort.Search(len(infos), func(i int) bool { return infos[i].Sequence > sequence })-1, 0)
	known := m.functions[handle]
	for len(known) <= at {
		info := infos[len(known)]
		known = append(known, &function{name: info.Name, opaque: info.Opaque, parameters: info.Parameters,
			reads: recording.ConstParameters(info.Name, len(info.Parameters))})
		m.functions[handle] = known
	}
	return known[at]
}

// launchAccesses appends what a kernel touches, and counts what that rests on. arguments appends what its arguments point into.
func (m *machine) launchAccesses(into []happens.Access, f *function, number uint64, arguments func([]happens.Access) []happens.Access) []happens.Access {
	info, report := m.process.Accesses[number], m.report
	if m.earlier {
		report = &Report{}
	}
	switch {
	case number == 0 && !m.process.Measured:
		report.Arguments++
	case number == 0 || info != nil && info.Unmeasured:
		report.Unmeasured++
	case info == nil:
		report.Lost++
	default:
		possible := 0
		if info.Again {
			possible = 3 // another of the launches may have touched it
		}
		for _, run := range info.Runs {
			into = append(into, happens.Access{Low: run.Address, High: run.Address + uint64(run.Bytes), Mode: happens.Mode(run.Modes) << possible})
		}
		switch {
		case f.opaque || info.Opaque || info.Lost:
			report.Opaque++
		case info.Together:
			report.Together++
			return into
		default:
			report.Measured++
			return into
		}
	}
	return arguments(into)
}

// argumentAccesses appends all that the words of a kernel's parameters point into, and what its descriptors of tensor copies reach.
func (m *machine) argumentAccesses(into []happens.Access, f *function, parameters []byte) []happens.Access {
	if len(m.maps) > 0 {
		for offset := 0; offset+mapBytes <= len(parameters); offset += 8 {
			if reached, found := m.maps[[mapBytes]byte(parameters[offset:])]; found {
				into = append(into, reached)
			}
		}
	}
	parameter := 0
	for offset := 0; offset+8 <= len(parameters); offset += 8 {
		is := m.pointedAt(binary.LittleEndian.Uint64(parameters[offset:]))
		if is == nil {
			continue
		}
		for parameter < len(f.parameters) && int(f.parameters[parameter].Offset+f.parameters[parameter].Bytes) <= offset {
			parameter++
		}
		mode := happens.PossibleRead | happens.PossibleWrite
		if parameter < len(f.reads) && f.reads[parameter] {
			mode = happens.PossibleRead
		}
		into = append(into, happens.Access{Low: is.Address, High: is.Address + is.Bytes, Mode: mode})
	}
	return into
}

// pointedAt returns the tensor that lies at an address, or that did last; where no tensors are known, the allocation.
func (m *machine) pointedAt(address uint64) *memory {
	if is := m.tensors.at(address); is != nil {
		return is
	}
	is := m.allocations.at(address)
	if is == nil || is.dead || is.traced || is.kind == allocArray {
		return nil
	}
	return is
}

// memoryAt returns what a report says of an address.
func (m *machine) memoryAt(address uint64) Memory {
	if is := m.tensors.at(address); is != nil {
		return is.Memory
	}
	if is := m.allocations.at(address); is != nil {
		return is.Memory
	}
	return Memory{}
}
