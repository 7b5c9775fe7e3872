// The state of a GPU: temperature, power, clocks, load, memory, processes. Reads only; changes no setting.

// Package nvml reads a GPU's state through NVIDIA's management library (libnvidia-ml), opened at run time without cgo. A figure that the
// library or the GPU does not support, or that the user may not read, is absent from a [Reading]; that is not an error.
package nvml

import (
	"errors"
	"fmt"
	"strings"

	"github.com/dagrun/dagrun/internal/dl"
	"github.com/dagrun/dagrun/internal/words"
)

// ErrUnavailable is returned by Open if there is no management library.
var ErrUnavailable = errors.New("no NVIDIA management library (libnvidia-ml)")

type function uint8

const (
	nvmlInit function = iota
	nvmlShutdown
	nvmlDeviceGetHandleByUUID
	nvmlDeviceGetTemperature
	nvmlDeviceGetPowerUsage
	nvmlDeviceGetEnforcedPowerLimit
	nvmlDeviceGetClockInfo
	nvmlDeviceGetMaxClockInfo
	nvmlDeviceGetUtilizationRates
	nvmlDeviceGetMemoryInfo
	nvmlDeviceGetComputeRunningProcesses
	functionCount
)

// symbols are the exact names. The library keeps old versions, so newer drivers have all of them. The third version of the function for
// processes came with CUDA 11.5 and has the layout of the second version, which older drivers have.
var symbols = [functionCount][]string{
	nvmlInit:                             {"nvmlInit_v2"},
	nvmlShutdown:                         {"nvmlShutdown"},
	nvmlDeviceGetHandleByUUID:            {"nvmlDeviceGetHandleByUUID"},
	nvmlDeviceGetTemperature:             {"nvmlDeviceGetTemperature"},
	nvmlDeviceGetPowerUsage:              {"nvmlDeviceGetPowerUsage"},
	nvmlDeviceGetEnforcedPowerLimit:      {"nvmlDeviceGetEnforcedPowerLimit"},
	nvmlDeviceGetClockInfo:               {"nvmlDeviceGetClockInfo"},
	nvmlDeviceGetMaxClockInfo:            {"nvmlDeviceGetMaxClockInfo"},
	nvmlDeviceGetUtilizationRates:        {"nvmlDeviceGetUtilizationRates"},
	nvmlDeviceGetMemoryInfo:              {"nvmlDeviceGetMemoryInfo"},
	nvmlDeviceGetComputeRunningProcesses: {"nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetComputeRunningProcesses_v2"},
}

const (
	temperatureGPU       = 0
	clockSM, clockMemory = 1, 2
	codeTooSmall         = 7 // NVML_ERROR_INSUFFICIENT_SIZE
)

// processInfo is nvmlProcessInfo_v2_t.
type processInfo struct {
	pid  uint32
	_    uint32
	used uint64
	_    [2]uint32
}

// noValue is what the library writes if it does not know a figure of a process.
const noValue = ^uint64(0)

// Library is an open management library.
type Library struct {
	address [functionCount]uintptr // 0: missing
}

// Open opens the library.
func Open() (*Library, error) {
	lib, err := dl.Open("libnvidia-ml.so.1", "libnvidia-ml.so")
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return open(lib.Symbol)
}

func open(resolve dl.Resolver) (*Library, error) {
	l := new(Library)
	for f, names := range symbols {
		for _, name := range names {
			if address, err := resolve(name); err == nil && address != 0 {
				l.address[f] = address
				break
			}
		}
	}
	for _, f := range []function{nvmlInit, nvmlShutdown, nvmlDeviceGetHandleByUUID} {
		if l.address[f] == 0 {
			return nil, fmt.Errorf("%w: the library has no %s", ErrUnavailable, symbols[f][0])
		}
	}
	if code := uint32(dl.Call(l.address[nvmlInit])); code != 0 {
		return nil, fmt.Errorf("%w: %s failed with %d", ErrUnavailable, symbols[nvmlInit][0], code)
	}
	return l, nil
}

// Close shuts the library down.
func (l *Library) Close() error {
	if code := uint32(dl.Call(l.address[nvmlShutdown])); code != 0 {
		return fmt.Errorf("nvmlShutdown failed with %d", code)
	}
	return nil
}

// Reading is a GPU's state at one moment. A figure is nil if it could not be read.
type Reading struct {
	Temperature    *int     // degrees Celsius
	Power          *float64 // watts
	PowerLimit     *float64
	ClockSM        *int // MHz
	ClockSMMax     *int
	ClockMemory    *int
	ClockMemoryMax *int
	Load           *int   // percent of the last sampling period during which a kernel ran
	MemoryLoad     *int   // percent during which memory was read or written
	MemoryUsed     *int64 // bytes, by all processes
	MemoryTotal    *int64
	Processes      []Process // those with a context on the GPU; nil if unknown
}

// Process is one user of a GPU.
type Process struct {
	PID    int
	Memory int64 // bytes, -1 if unknown
}

// Read reads the state of a GPU, given by its UUID ("GPU-...") as in cudart.Info. It fails only if the library knows no such GPU.
func (l *Library) Read(uuid string) (Reading, error) {
	var r Reading
	device := new(uintptr)
	text := append([]byte(uuid), 0)
	if code := l.call(nvmlDeviceGetHandleByUUID, dl.Pointer(&text[0]), dl.Pointer(device)); code != 0 {
		return r, fmt.Errorf("%s: nvmlDeviceGetHandleByUUID failed with %d", uuid, code)
	}
	d := dl.Number(*device)
	r.Temperature = l.number(nvmlDeviceGetTemperature, d, dl.Number(temperatureGPU))
	r.Power = watts(l.number(nvmlDeviceGetPowerUsage, d))
	r.PowerLimit = watts(l.number(nvmlDeviceGetEnforcedPowerLimit, d))
	r.ClockSM = l.number(nvmlDeviceGetClockInfo, d, dl.Number(clockSM))
	r.ClockSMMax = l.number(nvmlDeviceGetMaxClockInfo, d, dl.Number(clockSM))
	r.ClockMemory = l.number(nvmlDeviceGetClockInfo, d, dl.Number(clockMemory))
	r.ClockMemoryMax = l.number(nvmlDeviceGetMaxClockInfo, d, dl.Number(clockMemory))
	if rates := new([2]uint32); l.call(nvmlDeviceGetUtilizationRates, d, dl.Pointer(&rates[0])) == 0 {
		load, memoryLoad := int(rates[0]), int(rates[1])
		r.Load, r.MemoryLoad = &load, &memoryLoad
	}
	if bytes := new([3]uint64); l.call(nvmlDeviceGetMemoryInfo, d, dl.Pointer(&bytes[0])) == 0 { // total, free, used
		used, total := int64(bytes[2]), int64(bytes[0])
		r.MemoryUsed, r.MemoryTotal = &used, &total
	}
	r.Processes = l.processes(d)
	return r, nil
}

// processes retries with a larger buffer, because processes may start between two calls.
func (l *Library) processes(device dl.Argument) []Process {
	for room := uint32(16); room <= 1<<16; room *= 4 {
		infos := make([]processInfo, room)
		count := new(uint32)
		*count = room
		switch l.call(nvmlDeviceGetComputeRunningProcesses, device, dl.Pointer(count), dl.Pointer(&infos[0])) {
		case 0:
			processes := make([]Process, *count)
			for i := range processes {
				processes[i] = Process{PID: int(infos[i].pid), Memory: int64(infos[i].used)}
				if infos[i].used == noValue {
					processes[i].Memory = -1
				}
			}
			return processes
		case codeTooSmall:
		default:
			return nil
		}
	}
	return nil
}

// number reads one unsigned number.
func (l *Library) number(f function, args ...dl.Argument) *int {
	result := new(uint32)
	if l.call(f, append(args, dl.Pointer(result))...) != 0 {
		return nil
	}
	n := int(*result)
	return &n
}

func watts(milliwatts *int) *float64 {
	if milliwatts == nil {
		return nil
	}
	w := float64(*milliwatts) / 1000
	return &w
}

// notFound is NVML_ERROR_FUNCTION_NOT_FOUND.
const notFound = 13

func (l *Library) call(f function, args ...dl.Argument) uint32 {
	if l.address[f] == 0 {
		return notFound
	}
	return dl.CallWith(l.address[f], args...)
}

// String returns the reading on one line, without absent figures.
func (r Reading) String() string {
	var parts []string
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	if r.Temperature != nil {
		add("%d °C", *r.Temperature)
	}
	if r.Power != nil && r.PowerLimit != nil {
		add("%.0f of %.0f W", *r.Power, *r.PowerLimit)
	} else if r.Power != nil {
		add("%.0f W", *r.Power)
	}
	if r.ClockSM != nil {
		add("SM %d MHz", *r.ClockSM)
	}
	if r.ClockMemory != nil {
		add("memory %d MHz", *r.ClockMemory)
	}
	if r.Load != nil {
		add("load %d%%", *r.Load)
	}
	if r.MemoryUsed != nil && r.MemoryTotal != nil {
		add("%s of %s used", words.Bytes(*r.MemoryUsed), words.Bytes(*r.MemoryTotal))
	}
	if r.Processes != nil {
		add("%s", words.Count(len(r.Processes), "process", "processes"))
	}
	return strings.Join(parts, ", ")
}
