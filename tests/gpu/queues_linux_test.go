// Tests of hardware queues: streams that share one wait for each other, Open asks for the maximum, and the environment is unchanged.

package gpu

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/cudart/conformance"
	"github.com/dagrun/dagrun/cudart/driver"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/internal/dl"
)

const queuesVariable = "CUDA_DEVICE_MAX_CONNECTIONS"

// The number of queues is the process's, so each is tried in a process of its own.
func TestQueues(t *testing.T) {
	if asked := os.Getenv("DAGRUN_QUEUES"); asked != "" {
		n, err := strconv.Atoi(asked)
		require.NoError(t, err)
		fmt.Println("QUEUES LEFT WAITING", leftWaiting(t, n))
		return
	}
	open(t)
	waiting := func(queues string) string {
		child := exec.Command(os.Args[0], "-test.run=^TestQueues$", "-test.v")
		child.Env = slices.DeleteFunc(os.Environ(), func(s string) bool { return strings.HasPrefix(s, queuesVariable+"=") })
		child.Env = append(child.Env, "DAGRUN_QUEUES="+queues)
		out, err := child.CombinedOutput()
		require.NoError(t, err, "%s", out)
		_, rest, found := strings.Cut(string(out), "QUEUES LEFT WAITING ")
		require.True(t, found, "%s", out)
		count, _, _ := strings.Cut(rest, "\n")
		return count
	}
	require.Equal(t, "0", waiting("0"), "by default, 24 streams have a queue each")
	require.NotEqual(t, "0", waiting("1"), "behind one queue, streams wait for each other")
}

// leftWaiting blocks one of 24 streams with a kernel, with work behind it, and counts the other streams that cannot finish.
func leftWaiting(t *testing.T, queues int) int {
	ctx := context.Background()
	p, err := driver.Open(driver.Options{Queues: queues})
	require.NoError(t, err)
	module, err := p.Load(ctx, 0, conformance.Module())
	require.NoError(t, err)
	kernels := map[string]cudart.Kernel{}
	for _, entry := range []string{"hold", "noop"} {
		kernels[entry], err = module.Kernel(entry)
		require.NoError(t, err)
	}
	flagAt, err := p.AllocHost(4, false)
	require.NoError(t, err)
	flag := (*uint32)(unsafe.Pointer(unsafe.SliceData(p.HostBytes(flagAt, 4))))
	release := func() { atomic.StoreUint32(flag, 1) }
	defer func() {
		if flag != nil { // a check failed while a kernel is held
			release()
		}
	}()
	streams := make([]cudart.Stream, 24)
	for i := range streams {
		streams[i], err = p.NewStream(0, dag.Normal)
		require.NoError(t, err)
	}
	submit := func(on cudart.Stream, entry string, args ...cudart.Value) {
		one := [3]uint32{1, 1, 1}
		l, err := p.Encode([]cudart.Command{{Kind: cudart.LaunchKernel, Stream: on, Kernel: kernels[entry], Grid: one, Block: one, Args: args}}, cudart.ListOptions{})
		require.NoError(t, err)
		require.NoError(t, l.Submit())
		require.NoError(t, l.Close())
	}
	pointer := cudart.Value{Pointer: true, Ptr: flagAt, Bytes: 4, Size: 8}
	// A driver may be unable to load while a kernel is blocked, so load everything that it loads at first use now.
	release()
	for _, s := range streams {
		submit(s, "hold", pointer)
		submit(s, "noop")
	}
	require.NoError(t, p.Synchronize(ctx, 0))
	atomic.StoreUint32(flag, 0)
	submit(streams[0], "hold", pointer)
	submit(streams[0], "noop")
	for _, s := range streams[1:] {
		submit(s, "noop")
	}
	left := 0
	for began := time.Now(); ; time.Sleep(time.Millisecond) {
		left = 0
		for _, s := range streams[1:] {
			done, err := s.Query()
			require.NoError(t, err)
			if !done {
				left++
			}
		}
		if left == 0 || time.Since(began) > 2*time.Second {
			break
		}
	}
	libc, err := dl.Open("libc.so.6")
	require.NoError(t, err)
	getenv, err := libc.Symbol("getenv")
	require.NoError(t, err)
	name := append([]byte(queuesVariable), 0)
	require.Zero(t, dl.CallAddress(getenv, dl.Pointer(&name[0])), "the driver's variable is gone from C's environment")
	release()
	require.NoError(t, p.Synchronize(ctx, 0))
	for _, s := range streams {
		require.NoError(t, s.Close())
	}
	flag = nil
	require.NoError(t, p.Free(flagAt))
	require.NoError(t, module.Close())
	require.NoError(t, p.Close())
	return left
}
