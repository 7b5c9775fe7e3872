// Simulated links: copies between the host and CPU devices, and between CPU devices, take as long as over real links.

package host

import (
	"fmt"
	"math"
	"sync"
	"time"
)

// Links makes copies take time. Rates are bytes per microsecond; a rate of 0 is unlimited. Each device has a link of its own in each direction to
// the host, and one to the other devices, and a link makes one copy at a time.
type Links struct {
	LatencyUS      float64 // of each copy
	HostToDevice   float64
	DeviceToHost   float64
	DeviceToDevice float64 // between two devices; within a device, copies are not slowed
}

func (l *Links) check() error {
	for _, v := range []float64{l.LatencyUS, l.HostToDevice, l.DeviceToHost, l.DeviceToDevice} {
		if math.IsNaN(v) || v < 0 || math.IsInf(v, 0) {
			return fmt.Errorf("CPU device: links with %v; rates and latency must not be negative", v)
		}
	}
	return nil
}

// link is a connection in one direction.
type link struct {
	mu   sync.Mutex
	free time.Time // when it has made all copies so far
}

// links are those of one device: from the host, to the host, to other devices.
type links [3]link

// travel waits as long as a copy takes on its link. src and dst are devices, or -1 for the host.
func (p *Platform) travel(src, dst int32, bytes int64) {
	l := p.options.Links
	if l == nil || src == dst || bytes == 0 {
		return
	}
	rate, on := l.DeviceToDevice, max(src, 0)
	way := 2
	switch {
	case src < 0:
		rate, on, way = l.HostToDevice, dst, 0
	case dst < 0:
		rate, way = l.DeviceToHost, 1
	}
	us := l.LatencyUS
	if rate > 0 {
		us += float64(bytes) / rate
	}
	took := time.Duration(min(us, 1e12) * float64(time.Microsecond))
	at := &p.devices[on].links[way]
	at.mu.Lock()
	if now := time.Now(); at.free.Before(now) {
		at.free = now
	}
	at.free = at.free.Add(took)
	end := at.free
	at.mu.Unlock()
	time.Sleep(time.Until(end))
}
