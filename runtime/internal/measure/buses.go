// Measures which devices share their connection to the host, such as two behind one PCIe switch.

package measure

import (
	"fmt"
	"strings"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/model"
)

// uploads declares one upload to each of some devices.
func uploads(b *dag.Builder, list []int32, elements int64) {
	for _, d := range list {
		from, to := b.Host(fmt.Sprintf("from%d", d), dag.F32, elements), b.Device(fmt.Sprintf("to%d", d), dag.F32, elements)
		b.OnDevice(to, d)
		b.Copy(fmt.Sprintf("up%d", d), b.Whole(to), b.Whole(from))
	}
}

// findBuses groups devices whose uploads slow each other. together returns how long uploads of some bytes to a list of devices take, if all begin
// at once. Less than slowed is the noise of such measurements, or what the host's memory cannot deliver to all.
func findBuses(devices int, bytes float64, together func(list []int32) (us float64, err error)) ([]model.Bus, error) {
	const slowed = 1.25
	alone := make([]float64, devices)
	group := make([]int32, devices) // the least device that it shares a bus with
	for d := range int32(devices) {
		us, err := together([]int32{d})
		if err != nil {
			return nil, err
		}
		alone[d], group[d] = us, d
		for other := range d {
			if group[other] != other { // one of a group stands for all
				continue
			}
			both, err := together([]int32{other, d})
			if err != nil {
				return nil, err
			}
			if both > slowed*max(alone[d], alone[other]) {
				group[d] = other
				break
			}
		}
	}
	var list []model.Bus
	for first := range int32(devices) {
		var members []int32
		for d := range int32(devices) {
			if group[d] == first {
				members = append(members, d)
			}
		}
		if len(members) < 2 {
			continue
		}
		us, err := together(members)
		if err != nil {
			return nil, err
		}
		name := "host" + strings.ReplaceAll(fmt.Sprint(members), " ", ",")
		list = append(list, model.Bus{Name: name, Devices: members, Carries: model.CarriesHost, Rate: float64(len(members)) * bytes / max(us, 1e-3)})
	}
	return list, nil
}
