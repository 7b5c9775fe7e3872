// A runnable example of reading a GPU's state.

package nvml_test

import (
	"fmt"

	"github.com/dagrun/dagrun/cudart/driver"
	"github.com/dagrun/dagrun/cudart/nvml"
)

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
