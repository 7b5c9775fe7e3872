// The conformance suite: the list of its tests. They assert only through the interface, and nothing about time.

// Package conformance tests what every [cudart.Platform] must do, which shows that the CPU device and the driver behave the same. A
// platform's tests call [Run], [Programs] and, with a platform that nothing else needs, [Fault].
package conformance

import (
	"testing"

	"github.com/dagrun/dagrun/cudart"
	"github.com/stretchr/testify/require"
)

// Run runs every test but the random programs and the fault. Nothing is left behind on the platform.
func Run(t *testing.T, p cudart.Platform) {
	before := p.Live()
	for _, test := range []struct {
		name string
		run  func(*rig)
	}{
		{"memory", memory}, {"misused memory", misusedMemory}, {"copies", copies}, {"sets", sets}, {"pageable memory", pageable},
		{"registered memory", registered}, {"peers", peers},
		{"copies of tiles", tileCopies}, {"sets of tiles", tileSets}, {"tiles between peers", tilePeers}, {"changes of tiles", tileChanges},
		{"misused tiles", misusedTiles},
		{"stream order", streamOrder}, {"queries", queries}, {"cancelled wait", cancelledWait}, {"adopted streams", adoptedStreams},
		{"closed streams", closedStreams}, {"many launches", manyLaunches}, {"several goroutines", severalGoroutines},
		{"wait takes the record before it", waitTakesRecord}, {"record moves an event", recordMovesEvent},
		{"event never recorded", neverRecorded}, {"closed event", closedEvent}, {"times", times},
		{"list changes", listChanges}, {"threads", threads}, {"nothing to do", nothingToDo}, {"misused lists", misusedLists},
		{"launch limits", launchLimits}, {"clusters", clusters}, {"structures", structures},
		{"capture", captured}, {"capture rules", captureRules}, {"time stamps in graphs", graphTimes},
		{"built graph", builtGraph}, {"graph changes", graphChanges}, {"graph update", graphUpdate}, {"graph against itself", graphAgainstItself},
		{"misused graphs", misusedGraphs}, {"loops and branches", conditionals}, {"stamps", stamps},
		{"host functions", hostFunctions}, {"host functions wait", hostFunctionWaits}, {"misused host functions", misusedHostFunctions},
		{"library calls", libraryCalls},
		{"bad arguments", badArguments}, {"closed things", closedThings},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := newRig(t, p)
			test.run(r)
		})
	}
	require.Equal(t, before, p.Live(), "something was not given back")
}
