// A runnable example of reading a GPU's state.

package nvml_test

import (
	"fmt"
	"testing"

	"github.com/dagrun/dagrun/cudart/driver"
	"github.com/dagrun/dagrun/cudart/nvml"
)

// What it prints depends on the machine, so it has no output to compare; running it must be possible everywhere.
func TestTheExampleRuns(*testing.T) { Example() }

func Example() {
	platform, err := driver.Open(driver.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer platform.Close()
	library, err := nvml.Open()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer library.Close()
	for i, device := range platform.Devices() {
		if reading, err := library.Read(device.UUID); err == nil {
			fmt.Printf("%d %s: %s\n", i, device.Name, reading)
		}
	}
}
