// Tests of what calls access, where a transcript would show too little.

package order

import (
	"testing"

	"github.com/dagrun/dagrun/internal/happens"
	"github.com/dagrun/dagrun/internal/recording"
	"github.com/stretchr/testify/require"
)

func TestStretches(t *testing.T) {
	write := func(low, high uint64) happens.Access {
		return happens.Access{Low: low, High: high, Mode: happens.Write}
	}
	possible := func(low, high uint64) happens.Access {
		return happens.Access{Low: low, High: high, Mode: happens.PossibleWrite}
	}
	for _, c := range []struct {
		name                                       string
		address, bytes, rows, slices, pitch, slice uint64
		want                                       []happens.Access
	}{
		{name: "nothing", address: 10, rows: 3, pitch: 4},
		{name: "one row", address: 10, bytes: 4, want: []happens.Access{write(10, 14)}},
		{name: "rows", address: 10, bytes: 4, rows: 2, pitch: 8, want: []happens.Access{write(10, 14), write(18, 22)}},
		{name: "rows without gaps", address: 10, bytes: 4, rows: 3, pitch: 4, want: []happens.Access{write(10, 22)}},
		{name: "slices", address: 10, bytes: 4, rows: 2, slices: 2, pitch: 8, slice: 100,
			want: []happens.Access{write(10, 14), write(18, 22), write(110, 114), write(118, 122)}},
		{name: "slices without gaps", address: 10, bytes: 4, rows: 2, slices: 2, pitch: 4, slice: 8, want: []happens.Access{write(10, 26)}},
		{name: "slices of whole rows", address: 10, bytes: 4, rows: 2, slices: 2, pitch: 4, slice: 10, want: []happens.Access{write(10, 18), write(20, 28)}},
		{name: "too many rows", address: 10, bytes: 4, rows: 16385, pitch: 8, want: []happens.Access{possible(10, 10+16384*8+4)}},
		{name: "too many slices", address: 10, bytes: 4, rows: 2, slices: 8193, pitch: 8, slice: 100, want: []happens.Access{possible(10, 10+8192*100+8+4)}},
	} {
		require.Equal(t, c.want, stretches(nil, happens.Write, c.address, c.bytes, c.rows, c.slices, c.pitch, c.slice), c.name)
	}
	require.Len(t, stretches(nil, happens.Write, 10, 4, 2, 8192, 8, 100), 16384)
	require.Len(t, stretches(nil, happens.Write, 10, 4, 16384, 1, 8, 0), 16384)
}

// Two rows of the copy lie between the rows of the other, so they do not meet; the bytes of an array are not known.
func TestCopiesOfRowsAndArrays(t *testing.T) {
	m := emptyMachine(&recording.Process{}, nil, pass{})
	m.allocations.put(1000, 2000, &memory{Memory: Memory{Address: 1000, Bytes: 1000}, kind: 1})
	copy := make([]uint64, copyWords)
	copy[copyTo], copy[copyFrom], copy[copyBytes], copy[copyRows], copy[copySlices] = 1000, 7, 4, 2, 2
	copy[copyToPitch], copy[copyToSlice], copy[copyToKind], copy[copyFromKind] = 10, 100, memoryDevice, memoryArray
	require.Equal(t, []happens.Access{{Low: 7, High: 8, Mode: happens.PossibleRead}, {Low: 1000, High: 1004, Mode: happens.Write}, {Low: 1010, High: 1014, Mode: happens.Write},
		{Low: 1100, High: 1104, Mode: happens.Write}, {Low: 1110, High: 1114, Mode: happens.Write}}, m.copyAccesses(nil, copy))
	copy[copyTo], copy[copyFrom], copy[copyFromPitch], copy[copyFromSlice], copy[copyToKind], copy[copyFromKind] = 7, 1000, 20, 200, memoryHost, 4
	require.Equal(t, []happens.Access{{Low: 1000, High: 1004, Mode: happens.Read}, {Low: 1020, High: 1024, Mode: happens.Read},
		{Low: 1200, High: 1204, Mode: happens.Read}, {Low: 1220, High: 1224, Mode: happens.Read}}, m.copyAccesses(nil, copy))
	set := []uint64{1000, 4, 2, 10}
	require.Equal(t, []happens.Access{{Low: 1000, High: 1004, Mode: happens.Write}, {Low: 1010, High: 1014, Mode: happens.Write}}, setAccesses(nil, set))
}

// What a thread itself reads and writes has the rows and slices of its side of the copy.
func TestHostSidesOfCopies(t *testing.T) {
	m := ran(t, &recording.Process{}, pass{})
	m.hostAccesses = true
	at := moment{thread: m.thread(1)}
	copy := make([]uint64, copyWords)
	copy[copyTo], copy[copyFrom], copy[copyBytes], copy[copyRows], copy[copySlices] = 1000, 5000, 4, 2, 2
	copy[copyToPitch], copy[copyFromPitch], copy[copyToSlice], copy[copyFromSlice] = 10, 20, 100, 200
	m.hostAccess(at, copy, true, happens.Read)
	require.Equal(t, stretches(nil, happens.Read, 5000, 4, 2, 2, 20, 200), m.buffer)
	m.hostAccess(at, copy, true, happens.Write)
	require.Equal(t, stretches(nil, happens.Write, 1000, 4, 2, 2, 10, 100), m.buffer)
	require.Len(t, m.acts, 2)
	m.hostAccess(at, copy, false, happens.Write)
	require.Len(t, m.acts, 2, "memory that is not pageable")
}

func TestPlaceOfMemory(t *testing.T) {
	m := emptyMachine(&recording.Process{}, nil, pass{})
	for i, kind := range []uint64{1, allocPinned, allocManaged, allocAsync, allocRegistered} {
		low := uint64(i+1) * 1000
		m.allocations.put(low, low+100, &memory{kind: kind})
	}
	m.allocations.put(6000, 6100, &memory{kind: allocPinned, dead: true})
	m.allocations.put(7000, 7100, &memory{kind: allocManaged, dead: true})
	for _, c := range []struct {
		kind, address uint64
		want          place
	}{
		{memoryHost, 10, pageable}, {4, 10, pageable}, {0, 10, pageable}, {memoryDevice, 10, device}, {memoryArray, 2000, device},
		{4, 1000, device}, {memoryDevice, 1000, device}, {memoryHost, 2000, pinned}, {4, 2099, pinned}, {4, 2100, pageable}, {4, 3000, managed}, {4, 4000, device},
		{memoryHost, 5000, pinned}, {memoryHost, 6000, pageable}, {4, 7000, pageable}, {memoryDevice, 7000, device},
	} {
		require.Equal(t, c.want, m.place(c.kind, c.address), "kind %d at %d", c.kind, c.address)
	}
}

// Whether the host waits, by function and memory, as the driver documents it.
func TestCopiesTheHostWaitsFor(t *testing.T) {
	type waits struct{ before, copy bool }
	for _, c := range []struct {
		sync     bool
		from, to place
		want     waits
	}{
		{true, pageable, device, waits{true, false}},
		{true, pinned, device, waits{true, true}},
		{true, device, pageable, waits{true, true}},
		{true, device, pinned, waits{true, true}},
		{true, device, device, waits{}},
		{true, managed, device, waits{}},
		{true, pageable, pageable, waits{true, true}},
		{true, pageable, pinned, waits{true, false}},
		{true, pinned, pinned, waits{true, true}},
		{false, pageable, device, waits{}},
		{false, pinned, device, waits{}},
		{false, device, pageable, waits{true, true}},
		{false, device, pinned, waits{}},
		{false, device, device, waits{}},
		{false, pageable, pageable, waits{true, true}},
		{false, pinned, pinned, waits{}},
	} {
		before, copy := copied(c.sync, c.from, c.to)
		require.Equal(t, c.want, waits{before, copy}, "synchronous %v, from %d to %d", c.sync, c.from, c.to)
	}
}

// A handle means another kernel after its module was unloaded and another loaded.
func TestFunctionOfAHandle(t *testing.T) {
	m := emptyMachine(&recording.Process{Functions: map[uint64][]recording.FunctionInfo{5: {{Sequence: 10, Name: "one"}, {Sequence: 20, Name: "two", Opaque: true}}}}, nil, pass{})
	for sequence, name := range map[uint64]string{1: "one", 10: "one", 19: "one", 20: "two", 30: "two"} {
		require.Equal(t, name, m.function(5, sequence).name)
	}
	require.True(t, m.function(5, 20).opaque)
	require.Empty(t, m.function(6, 1).name)
}

func TestArgumentsOfAFunction(t *testing.T) {
	m := emptyMachine(&recording.Process{}, nil, pass{})
	for i := range uint64(4) {
		low := (i + 1) * 1000
		m.allocations.put(low, low+100, &memory{Memory: Memory{Address: low, Bytes: 100}})
	}
	m.allocations.at(4000).dead = true
	f := &function{parameters: []recording.Parameter{{Offset: 0, Bytes: 8}, {Offset: 8, Bytes: 16}, {Offset: 24, Bytes: 8}}, reads: []bool{true, false, true}}
	const both = happens.PossibleRead | happens.PossibleWrite
	require.Equal(t, []happens.Access{{Low: 1000, High: 1100, Mode: happens.PossibleRead}, {Low: 2000, High: 2100, Mode: both}, {Low: 3000, High: 3100, Mode: happens.PossibleRead}},
		m.argumentAccesses(nil, f, body(1050, 5, 2099, 3000)))
	require.Empty(t, m.argumentAccesses(nil, f, body(999, 1100, 4000)))
	require.Empty(t, m.argumentAccesses(nil, f, body(1000)[:7]))
}
