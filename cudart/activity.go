// Activity: what a device was seen to do, as CUPTI records it.

package cudart

// ActivityKind is the kind of work that an Activity is.
type ActivityKind uint8

const (
	KernelActivity ActivityKind = iota + 1
	CopyActivity
	SetActivity
)

// Activity is one piece of work that ran on a device. Times are nanoseconds of one clock for all devices.
type Activity struct {
	Kind        ActivityKind
	Start, End  uint64
	Device      uint32
	Context     uint32
	Stream      uint32 // CUPTI's number for the stream
	Correlation uint32 // the number of the call: later calls of the process have larger numbers. All of a graph launch have the same
	GraphNode   uint64 // 0: not part of a graph. Within a graph, later nodes have larger numbers
	Bytes       int64  // of a copy or a set
	Name        string // of a kernel, as in its module
}
