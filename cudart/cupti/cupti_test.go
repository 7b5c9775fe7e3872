// Tests with a fake libcupti made of callbacks: it asks for buffers, fills them with hand-made records and returns them.

//go:build linux && (amd64 || arm64)

package cupti

import (
	"encoding/binary"
	"errors"
	"fmt"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/internal/dl"
)

// stand is the state of the fake. Its records have a stride that only its GetNextRecord knows.
type stand struct {
	version   uint32
	fails     map[string]uint32
	missing   string
	stride    int
	records   [][]byte
	held      [][]byte // until a forced flush
	enabled   map[uint32]bool
	asked     []uint32
	request   uintptr
	given     uintptr
	flushes   []uintptr
	finalized int
	text      map[uint32][]byte
	address   map[string]uintptr
}

func newStand() *stand {
	s := &stand{version: 26, fails: map[string]uint32{}, stride: 224, enabled: map[uint32]bool{}, text: map[uint32][]byte{}}
	result := func(name string, do func()) uintptr {
		if code := s.fails[name]; code != 0 {
			return uintptr(code)
		}
		do()
		return 0
	}
	s.address = map[string]uintptr{
		"cuptiGetVersion": dl.Callback(func(version uintptr) uintptr {
			return result("cuptiGetVersion", func() { *(*uint32)(pointer(version)) = s.version })
		}),
		"cuptiGetResultString": dl.Callback(func(code, text uintptr) uintptr {
			if s.text[uint32(code)] == nil {
				s.text[uint32(code)] = append([]byte(map[uint32]string{39: "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED", 999: "CUPTI_ERROR_UNKNOWN"}[uint32(code)]), 0)
			}
			*(*uintptr)(pointer(text)) = uintptr(unsafe.Pointer(&s.text[uint32(code)][0]))
			return 0
		}),
		"cuptiActivityRegisterCallbacks": dl.Callback(func(request, complete uintptr) uintptr {
			return result("cuptiActivityRegisterCallbacks", func() { s.request, s.given = request, complete })
		}),
		"cuptiActivityEnable": dl.Callback(func(kind uintptr) uintptr {
			return result(fmt.Sprintf("cuptiActivityEnable %d", kind), func() { s.enabled[uint32(kind)] = true; s.asked = append(s.asked, uint32(kind)) })
		}),
		"cuptiActivityDisable": dl.Callback(func(kind uintptr) uintptr {
			return result("cuptiActivityDisable", func() { delete(s.enabled, uint32(kind)) })
		}),
		"cuptiFinalize": dl.Callback(func() uintptr {
			return result("cuptiFinalize", func() { s.finalized++ })
		}),
		"cuptiActivityFlushAll": dl.Callback(func(flag uintptr) uintptr {
			return result("cuptiActivityFlushAll", func() { s.flush(flag) })
		}),
		"cuptiActivityGetNextRecord": dl.Callback(func(buffer, valid, record uintptr) uintptr {
			at := (*uintptr)(pointer(record))
			next := buffer
			if *at != 0 {
				next = *at + uintptr(s.stride)
			}
			if next >= buffer+valid {
				return codeMaxLimitReached
			}
			*at = next
			return 0
		}),
	}
	return s
}

func (s *stand) resolve(symbol string) (uintptr, error) {
	if symbol == s.missing {
		return 0, errors.New("not there")
	}
	return s.address[symbol], nil
}

func (s *stand) flush(flag uintptr) {
	s.flushes = append(s.flushes, flag)
	records := s.records
	if flag == 1 {
		records = append(records, s.held...)
		s.held = nil
	}
	s.records = nil
	if len(records) == 0 {
		return
	}
	out := new([3]uintptr)
	dl.Call(s.request, uintptr(unsafe.Pointer(&out[0])), uintptr(unsafe.Pointer(&out[1])), uintptr(unsafe.Pointer(&out[2])))
	if out[0] == 0 {
		return
	}
	memory := unsafe.Slice((*byte)(pointer(out[0])), out[1])
	for i, r := range records {
		clear(memory[i*s.stride : (i+1)*s.stride])
		copy(memory[i*s.stride:], r)
	}
	dl.Call(s.given, 0, 0, out[0], out[1], uintptr(len(records)*s.stride))
}

// write builds a record from offsets and values of 4 or 8 bytes.
func write(kind uint32, values map[int]any) []byte {
	r := make([]byte, 160)
	binary.LittleEndian.PutUint32(r, kind)
	for at, v := range values {
		switch v := v.(type) {
		case uint32:
			binary.LittleEndian.PutUint32(r[at:], v)
		case uint64:
			binary.LittleEndian.PutUint64(r[at:], v)
		}
	}
	return r
}

// The structures of cupti_activity.h, field by field, as a C compiler lays them out (CUDA 13.0).
func kernelRecord(kind uint32, start, end uint64, stream, correlation uint32, node uint64, name *byte) []byte {
	return write(kind, map[int]any{16: start, 24: end, 40: uint32(1), 44: uint32(2), 48: stream, 92: correlation, 104: uint64(uintptr(unsafe.Pointer(name))), 144: node})
}

func copyRecord(bytes, start, end uint64, stream, correlation uint32, node uint64) []byte {
	return write(1, map[int]any{8: bytes, 16: start, 24: end, 32: uint32(1), 36: uint32(2), 40: stream, 44: correlation, 64: node})
}

func peerRecord(bytes, start, end uint64, stream, correlation uint32, node uint64) []byte {
	return write(22, map[int]any{8: bytes, 16: start, 24: end, 32: uint32(1), 36: uint32(2), 40: stream, 44: uint32(7), 60: correlation, 72: node})
}

func setRecord(bytes, start, end uint64, stream, correlation uint32, node uint64) []byte {
	return write(2, map[int]any{4: uint32(255), 8: bytes, 16: start, 24: end, 32: uint32(1), 36: uint32(2), 40: stream, 44: correlation, 64: node})
}

func opened(t *testing.T, s *stand) *Library {
	t.Helper()
	l, err := open("libcupti.so.x", s.resolve, newBuffers())
	require.NoError(t, err)
	require.NoError(t, l.Enable())
	return l
}

func TestRecordsComeBackInTheOrderOfTheirCalls(t *testing.T) {
	s := newStand()
	l := opened(t, s)
	require.Equal(t, []uint32{10, 1, 2, 22}, s.asked, "kernels first: they must be asked for before cuInit")
	name := []byte("scale\x00")
	s.records = [][]byte{
		kernelRecord(10, 300, 450, 13, 9, 0, &name[0]),
		copyRecord(4096, 100, 200, 14, 5, 0),
		setRecord(64, 210, 220, 14, 7, 0),
		peerRecord(512, 500, 600, 14, 11, 0),
		write(24, map[int]any{16: uint64(1), 24: uint64(2)}), // a kind that nobody asked for
		kernelRecord(3, 0, 0, 13, 12, 0, nil),                // without times
		kernelRecord(3, 700, 710, 13, 13, 0, nil),
	}
	got, err := l.Flush(5)
	require.NoError(t, err)
	require.Equal(t, []cudart.Activity{
		{Kind: cudart.CopyActivity, Start: 100, End: 200, Device: 1, Context: 2, Stream: 14, Correlation: 5, Bytes: 4096},
		{Kind: cudart.SetActivity, Start: 210, End: 220, Device: 1, Context: 2, Stream: 14, Correlation: 7, Bytes: 64},
		{Kind: cudart.KernelActivity, Start: 300, End: 450, Device: 1, Context: 2, Stream: 13, Correlation: 9, Name: "scale"},
		{Kind: cudart.CopyActivity, Start: 500, End: 600, Device: 1, Context: 2, Stream: 14, Correlation: 11, Bytes: 512},
		{Kind: cudart.KernelActivity, Start: 700, End: 710, Device: 1, Context: 2, Stream: 13, Correlation: 13},
	}, got)
	require.Equal(t, []uintptr{0}, s.flushes)
}

func TestGraphNodesComeBackInTheOrderOfTheirNodes(t *testing.T) {
	s := newStand()
	l := opened(t, s)
	const graph = 3 << 32
	s.records = [][]byte{setRecord(8, 40, 50, 1, 77, graph+2), kernelRecord(10, 60, 70, 2, 77, graph+1, nil), copyRecord(8, 10, 20, 1, 77, graph)}
	got, err := l.Flush(3)
	require.NoError(t, err)
	require.Len(t, got, 3)
	for i, r := range got {
		require.EqualValues(t, graph+i, r.GraphNode)
	}
}

func TestAForcedFlushReturnsAllRecords(t *testing.T) {
	s := newStand()
	l := opened(t, s)
	s.records, s.held = [][]byte{copyRecord(8, 10, 20, 1, 1, 0)}, [][]byte{copyRecord(8, 30, 40, 1, 2, 0)}
	got, err := l.Flush(2)
	require.NoError(t, err)
	require.Len(t, got, 2)
	require.Equal(t, []uintptr{0, 1}, s.flushes)
	got, err = l.Flush(0)
	require.NoError(t, err)
	require.Empty(t, got)
}

func TestBuffersAreUsedAgain(t *testing.T) {
	s := newStand()
	l := opened(t, s)
	for range 20 {
		s.records = [][]byte{copyRecord(8, 10, 20, 1, 1, 0)}
		_, err := l.Flush(1)
		require.NoError(t, err)
	}
	require.Len(t, l.buffers.free, 1)
	require.Empty(t, l.buffers.held)
}

func TestRecordingEndsAndBeginsAgain(t *testing.T) {
	s := newStand()
	l := opened(t, s)
	require.NoError(t, l.Disable())
	require.NoError(t, l.Disable())
	require.Empty(t, s.enabled)
	require.NoError(t, l.Enable())
	require.Len(t, s.enabled, 4)
}

func TestEveryVersionOfTheTableAndNoOther(t *testing.T) {
	for _, version := range []uint32{13, 15, 16, 17, 18, 26, 28, 130000, 130001, 130200} {
		s := newStand()
		s.version = version
		l := opened(t, s)
		require.Equal(t, version, l.Version())
	}
	for _, version := range []uint32{0, 12, 130300, 140000} {
		s := newStand()
		s.version = version
		_, err := open("libcupti.so.x", s.resolve, newBuffers())
		require.ErrorIs(t, err, ErrUnavailable)
		require.EqualError(t, err, fmt.Sprintf("CUPTI cannot be used: the records of libcupti.so.x (interface %d) are unknown; those of CUDA 11.4 to 13.2 are known", version))
	}
}

func TestFailuresQuoteCUPTI(t *testing.T) {
	s := newStand()
	s.missing = "cuptiActivityFlushAll"
	_, err := open("libcupti.so.x", s.resolve, newBuffers())
	require.EqualError(t, err, "CUPTI cannot be used: libcupti.so.x has no cuptiActivityFlushAll")

	s = newStand()
	s.fails["cuptiActivityEnable 1"] = 39
	l, err := open("libcupti.so.x", s.resolve, newBuffers())
	require.NoError(t, err)
	err = l.Enable()
	require.ErrorIs(t, err, ErrBusy)
	require.EqualError(t, err, "another tool uses CUPTI in this process (a profiler, or another tracer): cuptiActivityEnable: CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED (39)")
	require.Empty(t, s.enabled, "what was switched on is off again")

	s = newStand()
	l = opened(t, s)
	s.fails["cuptiActivityFlushAll"] = 999
	_, err = l.Flush(0)
	require.EqualError(t, err, "CUPTI cannot be used: cuptiActivityFlushAll: CUPTI_ERROR_UNKNOWN (999)")
}

func TestNoLibraryIsSaidClearly(t *testing.T) {
	if prepared.library != nil {
		t.Fatal("the process has a library")
	}
	l, err := Prepare()
	if err == nil { // a machine with a toolkit
		require.NotZero(t, l.Version())
		require.NoError(t, l.Disable())
		return
	}
	require.True(t, errors.Is(err, ErrUnavailable) || errors.Is(err, ErrBusy), "%v", err)
}

func TestClosingTakesCUPTIOutOfTheProcess(t *testing.T) {
	s := newStand()
	l := opened(t, s)
	require.NoError(t, l.Close())
	require.Empty(t, s.enabled, "recording is off before")
	require.Equal(t, 1, s.finalized)
	require.NoError(t, l.Close())
	require.Equal(t, 1, s.finalized, "a second time does nothing")
	require.ErrorIs(t, l.Enable(), ErrUnavailable)
	require.EqualError(t, l.Enable(), "CUPTI cannot be used: it has been closed")

	s = newStand()
	l = opened(t, s)
	s.fails["cuptiFinalize"] = 999
	require.EqualError(t, l.Close(), "CUPTI cannot be used: cuptiFinalize: CUPTI_ERROR_UNKNOWN (999)")
	require.NoError(t, l.Close())

	s = newStand()
	l = opened(t, s)
	s.fails["cuptiActivityDisable"] = 999
	require.EqualError(t, l.Close(), "CUPTI cannot be used: cuptiActivityDisable: CUPTI_ERROR_UNKNOWN (999)")
	require.Equal(t, 1, s.finalized, "it goes all the same")
}

func TestRecordingLate(t *testing.T) {
	s := newStand()
	l := opened(t, s)
	prepared.Lock()
	prepared.library = l
	prepared.Unlock()
	var r Late
	_, err := r.Flush(1)
	require.EqualError(t, err, "nothing is recorded: recording is off")
	require.NoError(t, r.Disable(), "it was never on")
	require.NoError(t, r.Enable())
	s.records = [][]byte{setRecord(64, 210, 220, 14, 7, 0)}
	records, err := r.Flush(1)
	require.NoError(t, err)
	require.Len(t, records, 1)
	require.NoError(t, r.Disable())
	require.Equal(t, 1, s.finalized, "CUPTI is out of the process")
	prepared.Lock()
	require.Nil(t, prepared.library, "the next Prepare opens it again")
	prepared.Unlock()
	_, err = r.Flush(1)
	require.EqualError(t, err, "nothing is recorded: recording is off")
}
