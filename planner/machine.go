// The machine: every figure the cost model and the simulator use. Measures nothing.

package planner

// Machine is a model of a host with its devices. Rates are bytes or operations per microsecond.
type Machine struct {
	Name                                                   string
	LaunchUS                                               float64 // host: one launch or copy
	SyncUS                                                 float64 // device: one cross-stream wait
	EventUS                                                float64 // host: one record or wait
	GraphNodeUS                                            float64 // device: a node of a graph's chain
	KernelUS                                               float64 // device: the least a kernel takes
	CopyUS                                                 float64 // device: the least a copy takes
	HostToDevice, DeviceToHost, DeviceToDevice, PeerToPeer float64
	Memory                                                 float64 // device memory, reads and writes counted
	Flops                                                  float64
	Multiprocessors, BlocksPerSM, ThreadsPerSM             int
	SharedPerSM                                            int
	CopyEngines                                            int   // per direction
	DeviceBytes                                            int64 // memory of one device
	Unit                                                   bool  // a node takes its cost or 1 us; no syncs, no submission, no contention
}

// Profile holds measured durations by node name.
type Profile struct {
	Machine string
	Nodes   map[string]float64 // microseconds
}
