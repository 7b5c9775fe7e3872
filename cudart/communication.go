// Communication between ranks, as a command has it.

package cudart

import "github.com/dagrun/dagrun/dag"

// Communication is what a command does together with other ranks. All ranks of the group have the same one but for addresses, and the
// sends and receives of an exchange.
type Communication struct {
	Verb      dag.Verb
	Reduction dag.Reduction
	DType     dag.DType
	Root      int32     // a rank
	Rank      int32     // this one
	Group     dag.Among // never the zero value
	Src, Dst  Ptr       // not for an exchange
	SrcBytes  int64
	DstBytes  int64
	Transfers []Transfer // of an exchange; all have another side
}

// Transfer is a send or a receive of an exchange.
type Transfer struct {
	Receive bool
	Rank    int32
	Ptr     Ptr
	Bytes   int64
	Device  int32
}

// Call is the name of what does the communication, for errors.
func (c *Communication) Call() string {
	if c == nil {
		return ""
	}
	return c.Verb.String()
}
