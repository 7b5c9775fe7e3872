// Tests of profiler ranges with a fake tool made of callbacks.

//go:build linux && (amd64 || arm64)

package driver

import (
	"errors"
	"testing"
	"unsafe"

	"github.com/ebitengine/purego"
	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/internal/dl"
)

func TestRangesReachATool(t *testing.T) {
	var marks []string
	push := purego.NewCallback(func(text uintptr) uintptr {
		marks = append(marks, "push "+dl.Text(*(**byte)(unsafe.Pointer(&text))))
		return uintptr(len(marks)) // the depth, which is no error
	})
	pop := purego.NewCallback(func() uintptr {
		marks = append(marks, "pop")
		return 7
	})
	var version uint32
	tool := purego.NewCallback(func(export uintptr) uintptr {
		at, _, _ := purego.SyscallN(export, tableVersion)
		version = peek[uint32](at + 8)
		if at, _, _ := purego.SyscallN(export, 2); at != 0 {
			return 0
		}
		at, _, _ = purego.SyscallN(export, tableCallbacks)
		table, size := new(uintptr), new(uint32)
		if ok, _, _ := purego.SyscallN(peek[uintptr](at+8), 9, uintptr(unsafe.Pointer(table)), uintptr(unsafe.Pointer(size))); ok != 0 {
			return 0
		}
		purego.SyscallN(peek[uintptr](at+8), moduleCore, uintptr(unsafe.Pointer(table)), uintptr(unsafe.Pointer(size)))
		if *size <= functionPop {
			return 0
		}
		poke(peek[uintptr](*table+8*functionPushA), push)
		poke(peek[uintptr](*table+8*functionPop), pop)
		return 1
	})
	d := newFakeDriver(t)
	p := d.open(t)
	p.ranges = inject(tool)
	require.EqualValues(t, nvtxVersion, version)
	require.Equal(t, ranges{push, pop}, p.ranges)

	s, err := p.NewStream(0, dag.Normal)
	require.NoError(t, err)
	block, err := p.Alloc(0, 16)
	require.NoError(t, err)
	l, err := p.Encode([]cudart.Command{
		{Kind: cudart.RangePush, Label: "outer"},
		{Kind: cudart.SetMemory, Stream: s, Dst: block, Width: 1, Bytes: 16},
		{Kind: cudart.RangePush, Label: "inner"},
		{Kind: cudart.RangePop},
		{Kind: cudart.RangePop},
	}, cudart.ListOptions{Origin: s})
	require.NoError(t, err)
	require.Equal(t, 5, l.Len())
	require.NoError(t, l.Submit())
	require.Equal(t, []string{"push outer", "push inner", "pop", "pop"}, marks)
	require.NoError(t, errors.Join(l.Close(), p.Free(block), s.Close()))
	d.clean(t)

	require.Zero(t, inject(purego.NewCallback(func(uintptr) uintptr { return 0 })), "a tool that refuses")
	require.Zero(t, inject(purego.NewCallback(func(uintptr) uintptr { return 1 })), "a tool that fills in nothing")
}
