// A runnable example of recording activity for a trace.

package cupti_test

import (
	"fmt"

	"github.com/dagrun/dagrun/cudart/cupti"
	"github.com/dagrun/dagrun/cudart/driver"
)

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
