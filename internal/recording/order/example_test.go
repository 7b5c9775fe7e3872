package order_test

import (
	"fmt"

	"github.com/dagrun/dagrun/internal/recording"
	"github.com/dagrun/dagrun/internal/recording/order"
)

// A memset on the default stream and a copy on a non-blocking stream that does not wait for it.
func Example() {
	p := &recording.Process{Calls: []recording.Call{
		{Record: recording.Record{Kind: recording.StreamCreate}, Begin: 1, End: 2, Args: []uint64{0x10, 1, 0}},
		{Record: recording.Record{Kind: recording.Alloc}, Begin: 3, End: 4, Args: []uint64{0x1000, 64, 1, 0, 0, 0, 0}},
		{Record: recording.Record{Kind: recording.Set}, Begin: 5, End: 6, Args: []uint64{0, 0, 0, 0x1000, 64, 1, 0, 0, 1}},
		{Record: recording.Record{Kind: recording.Copy}, Begin: 7, End: 8, Args: []uint64{0x10, 0, 0, 0, 0x1000, 64, 1, 1, 0, 0, 0, 0, 1, 2, 0, 0}},
	}}
	report, err := order.Check(p, order.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(report.Text(p))
	// Output:
	// race on 64 bytes (RAW): nothing orders these two
	//   in    allocation of 64 bytes, bytes 0 to 64
	//   first memset writes on the default stream
	//   then  copy reads on stream 1
	//   mend  make stream 1 wait for the default stream
	// 1 race
}
