// Tests with a fake library made of callbacks; no GPU is needed.

//go:build linux && (amd64 || arm64)

package nvml

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"unsafe"

	"github.com/ebitengine/purego"
	"github.com/stretchr/testify/require"
)

var (
	fakeOnce      sync.Once
	fakeAddresses [functionCount]uintptr
	fakeFailing   map[function]uint32
	fakeProcesses int
)

func poke[T any](at uintptr, v T) { **(**T)(unsafe.Pointer(&at)) = v }

func peek[T any](at uintptr) T { return **(**T)(unsafe.Pointer(&at)) }

func resolve(name string) (uintptr, error) {
	fakeOnce.Do(func() {
		for f := range functionCount {
			fakeAddresses[f] = purego.NewCallback(func(a, b, c uintptr) uintptr { return serve(f, a, b, c) })
		}
	})
	for f, names := range symbols {
		if names[len(names)-1] == name {
			return fakeAddresses[f], nil
		}
	}
	return 0, errors.New("no such symbol")
}

func serve(f function, a, b, c uintptr) uintptr {
	if code, ok := fakeFailing[f]; ok {
		return uintptr(code)
	}
	switch f {
	case nvmlDeviceGetHandleByUUID:
		if peek[[4]byte](a) != [4]byte([]byte("GPU-")) {
			return 6
		}
		poke(b, uintptr(77))
	case nvmlDeviceGetTemperature:
		poke(c, uint32(41))
	case nvmlDeviceGetPowerUsage:
		poke(b, uint32(123456))
	case nvmlDeviceGetEnforcedPowerLimit:
		poke(b, uint32(700000))
	case nvmlDeviceGetClockInfo:
		poke(c, uint32(1000+b))
	case nvmlDeviceGetMaxClockInfo:
		poke(c, uint32(2000+b))
	case nvmlDeviceGetUtilizationRates:
		poke(b, [2]uint32{55, 6})
	case nvmlDeviceGetMemoryInfo:
		poke(b, [3]uint64{140 << 30, 100 << 30, 40 << 30})
	case nvmlDeviceGetComputeRunningProcesses:
		if peek[uint32](b) < uint32(fakeProcesses) {
			return codeTooSmall
		}
		poke(b, uint32(fakeProcesses))
		for i := range fakeProcesses {
			used := uint64(i) << 20
			if i == 1 {
				used = noValue
			}
			poke(c+uintptr(i)*unsafe.Sizeof(processInfo{}), processInfo{pid: uint32(100 + i), used: used})
		}
	}
	return 0
}

func TestRead(t *testing.T) {
	fakeFailing, fakeProcesses = nil, 40
	require.EqualValues(t, 24, unsafe.Sizeof(processInfo{}))
	l, err := open(resolve)
	require.NoError(t, err)
	r, err := l.Read("GPU-1")
	require.NoError(t, err)
	require.Equal(t, "41 °C, 123 of 700 W, SM 1001 MHz, memory 1002 MHz, load 55%, 40 GiB of 140 GiB used, 40 processes", r.String())
	require.Equal(t, 2001, *r.ClockSMMax)
	require.Equal(t, 6, *r.MemoryLoad)
	require.Equal(t, []Process{{100, 0}, {101, -1}, {102, 2 << 20}}, r.Processes[:3])
	_, err = l.Read("MIG-1")
	require.EqualError(t, err, "MIG-1: nvmlDeviceGetHandleByUUID failed with 6")
	require.NoError(t, l.Close())
}

func TestWhatIsAbsentIsNotAnError(t *testing.T) {
	fakeProcesses = 1
	for f := nvmlDeviceGetTemperature; f < functionCount; f++ {
		fakeFailing = map[function]uint32{f: 3}
		l, err := open(resolve)
		require.NoError(t, err)
		r, err := l.Read("GPU-1")
		require.NoError(t, err, symbols[f][0])
		require.NotContains(t, fmt.Sprint(r), "%!")
	}
	fakeFailing = map[function]uint32{}
	for f := nvmlDeviceGetTemperature; f < functionCount; f++ {
		fakeFailing[f] = 3
	}
	l, err := open(resolve)
	require.NoError(t, err)
	r, err := l.Read("GPU-1")
	require.NoError(t, err)
	require.Equal(t, Reading{}, r)
	require.Empty(t, r.String())
}

func TestOpenFailures(t *testing.T) {
	fakeFailing = map[function]uint32{nvmlInit: 9}
	_, err := open(resolve)
	require.ErrorIs(t, err, ErrUnavailable)
	require.EqualError(t, err, "no NVIDIA management library (libnvidia-ml): nvmlInit_v2 failed with 9")
	_, err = open(func(string) (uintptr, error) { return 0, errors.New("no such symbol") })
	require.EqualError(t, err, "no NVIDIA management library (libnvidia-ml): the library has no nvmlInit_v2")
	fakeFailing = nil
	l, err := open(func(name string) (uintptr, error) {
		if name == "nvmlDeviceGetPowerUsage" {
			return 0, errors.New("no such symbol")
		}
		return resolve(name)
	})
	require.NoError(t, err)
	r, err := l.Read("GPU-1")
	require.NoError(t, err)
	require.Nil(t, r.Power)
}
