// Traffic: copies that share buses, each of which slows down as much as the busiest of its buses.

package model

import "math"

// transit is a copy on its way.
type transit struct {
	node, stream, position int32
	at, left, speed        float64 // at the time at, left is what remains of the time that it takes alone
	rate                   float64
	uses                   []int32 // directions of buses
}

// when returns the time at which the copy ends, at its present speed.
func (t *transit) when() float64 { return t.at + t.left/t.speed }

// traffic is all copies on buses.
type traffic struct {
	buses   *Buses
	active  []transit
	demand  []float64 // by direction of a bus: the sum of the rates of its copies alone
	version int32
}

func (t *traffic) reset(b *Buses) {
	*t = traffic{buses: b, active: t.active[:0], demand: make([]float64, len(b.Rates()))}
}

// start adds a copy that uses buses. Call pace afterwards to update the speeds.
func (t *traffic) start(now, us, rate float64, node, stream, position int32, uses []int32) {
	t.active = append(t.active, transit{node, stream, position, now, us, 1, rate, uses})
}

// take removes the copy that has ended, the first submitted of several.
func (t *traffic) take(now float64) (transit, bool) {
	first := -1
	for k := range t.active {
		if t.active[k].when() <= now && (first < 0 || t.active[k].position < t.active[first].position) {
			first = k
		}
	}
	if first < 0 {
		return transit{}, false
	}
	ended := t.active[first]
	t.active[first] = t.active[len(t.active)-1]
	t.active = t.active[:len(t.active)-1]
	return ended, true
}

// pace updates the speeds and returns the time of the next end. slow is what copies run at for other reasons.
func (t *traffic) pace(now float64, slow func(node int32) float64) float64 {
	t.version++
	clear(t.demand)
	for k := range t.active {
		for _, b := range t.active[k].uses {
			t.demand[b] += t.active[k].rate
		}
	}
	next := math.Inf(1)
	for k := range t.active {
		c := &t.active[k]
		speed := slow(c.node)
		for _, b := range c.uses {
			if d := t.demand[b]; d > t.buses.rates[b]*(1+1e-9) {
				speed = min(speed, t.buses.rates[b]/d)
			}
		}
		if speed != c.speed {
			c.left = max(0, c.left-float64((now-c.at)*c.speed))
			c.at, c.speed = now, speed
		}
		next = min(next, c.when())
	}
	return next
}
