// A runnable example of recording activity for a trace.

package cupti_test

import (
	"fmt"
	"testing"

	"github.com/dagrun/dagrun/cudart/cupti"
	"github.com/dagrun/dagrun/cudart/driver"
)

// What it prints depends on the machine, so it has no output to compare; running it must be possible everywhere.
func TestTheExampleRuns(*testing.T) { Example() }

func Example() {
	recorder, err := cupti.Prepare() // before the driver
	if err != nil {
		fmt.Println(err)
		return
	}
	platform, err := driver.Open(driver.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer platform.Close()
	records, err := recorder.Flush(0)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, r := range records {
		fmt.Printf("%s: %d ns\n", r.Name, r.End-r.Start)
	}
}
