// How long a copy is on its way over simulated links.

package host

import "time"

// travel waits as long as a copy takes on its link. src and dst are devices, or -1 for the host.
func (p *Platform) travel(src, dst int32, bytes int64) {
	l := p.options.Links
	if l == nil || src == dst || bytes == 0 {
		return
	}
	rate, on := l.DeviceToDevice, [2]int32{src, wayToDevice}
	switch {
	case src < 0:
		rate, on = l.HostToDevice, [2]int32{dst, wayFromHost}
	case dst < 0:
		rate, on[1] = l.DeviceToHost, wayToHost
	}
	var buses []int32
	if l.Between != nil {
		buses = l.Between(src, dst)
	}
	time.Sleep(time.Until(p.roads.reserve(l, on, rate, buses, bytes)))
}
