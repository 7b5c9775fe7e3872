// Records: decodes what CUPTI writes for a kernel, a copy or a set, by a table of offsets.

package cupti

import (
	"encoding/binary"
	"unsafe"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/internal/dl"
)

// Numbers of kinds of records (CUpti_ActivityKind).
const (
	activityCopy             = 1
	activitySet              = 2
	activityKernel           = 3
	activityConcurrentKernel = 10 // kernels that may overlap; kind 3 would serialise them
	activityPeerCopy         = 22
)

// recordedKinds are the kinds that are switched on.
var recordedKinds = [...]uint32{activityConcurrentKernel, activityCopy, activitySet, activityPeerCopy}

// fields holds the offsets of a record's fields; 0 for a field that it does not have.
type fields struct {
	kind                                 cudart.ActivityKind
	bytes, start, end                    int
	device, context, stream, correlation int
	name, graphNode                      int
	size                                 int // bytes up to the last field that is read
}

// layout describes the records of a range of versions, by number of kind.
type layout struct {
	from, to uint32 // cuptiGetVersion
	records  map[uint32]fields
}

// Since records contain graph nodes, they have only grown at the end: kernels from version 5 of the structure (CUDA 11.0) to 11 (13.2),
// copies from 3 to 6, peer copies from 2 to 4, sets from 2 to 4. So one set of offsets works for all of these. Versions that are not in the
// table are refused.
var sinceGraphs = map[uint32]fields{
	activityKernel:           kernelFields,
	activityConcurrentKernel: kernelFields,
	activityCopy:             {kind: cudart.CopyActivity, bytes: 8, start: 16, end: 24, device: 32, context: 36, stream: 40, correlation: 44, graphNode: 64, size: 72},
	activityPeerCopy:         {kind: cudart.CopyActivity, bytes: 8, start: 16, end: 24, device: 32, context: 36, stream: 40, correlation: 60, graphNode: 72, size: 80},
	activitySet:              {kind: cudart.SetActivity, bytes: 8, start: 16, end: 24, device: 32, context: 36, stream: 40, correlation: 44, graphNode: 64, size: 72},
}

var kernelFields = fields{kind: cudart.KernelActivity, start: 16, end: 24, device: 40, context: 44, stream: 48, correlation: 92, name: 104, graphNode: 144, size: 152}

// layouts by version. Versions were counted up to CUDA 12; since CUDA 13 they are those of the toolkit.
var layouts = []layout{
	{13, 29, sinceGraphs},         // CUDA 11.0 to 12.9
	{130000, 130299, sinceGraphs}, // CUDA 13.0 to 13.2
}

func layoutOf(version uint32) *layout {
	for i := range layouts {
		if l := &layouts[i]; l.from <= version && version <= l.to {
			return l
		}
	}
	return nil
}

// decode reads a record. ok is false for a kind that was not requested, an incomplete record, and one without times.
func (l *layout) decode(memory []byte) (r cudart.Activity, ok bool) {
	if len(memory) < 4 {
		return r, false
	}
	f, known := l.records[binary.LittleEndian.Uint32(memory)]
	if !known || len(memory) < f.size {
		return r, false
	}
	word := func(at int) uint32 { return binary.LittleEndian.Uint32(memory[at:]) }
	long := func(at int) uint64 { return binary.LittleEndian.Uint64(memory[at:]) }
	r = cudart.Activity{Kind: f.kind, Start: long(f.start), End: long(f.end), Device: word(f.device), Context: word(f.context),
		Stream: word(f.stream), Correlation: word(f.correlation), GraphNode: long(f.graphNode)}
	if f.bytes != 0 {
		r.Bytes = int64(long(f.bytes))
	}
	if f.name != 0 {
		if text := *(**byte)(unsafe.Pointer(&memory[f.name])); text != nil {
			r.Name = dl.Text(text)
		}
	}
	return r, r.Start != 0 && r.End >= r.Start
}
