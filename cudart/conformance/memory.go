// Tests of memory: allocating, copying, setting, and refusals.

package conformance

import (
	"context"
	"math"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart"
)

func memory(r *rig) {
	for i, d := range r.p.Devices() {
		require.NotEmpty(r, d.Name)
		free, total, err := r.p.MemoryInfo(int32(i))
		require.NoError(r, err)
		require.Positive(r, free)
		require.LessOrEqual(r, free, total)
		require.Len(r, d.Peers, len(r.p.Devices()))
		require.False(r, d.Peers[i])
	}
	const large = 64 << 20
	before, _, err := r.p.MemoryInfo(0)
	require.NoError(r, err)
	p, err := r.p.Alloc(0, large)
	require.NoError(r, err)
	after, _, err := r.p.MemoryInfo(0)
	require.NoError(r, err)
	require.LessOrEqual(r, after, before-large)
	require.NoError(r, r.p.Free(p))
	again, _, err := r.p.MemoryInfo(0)
	require.NoError(r, err)
	require.GreaterOrEqual(r, again, after+large)

	seen := map[cudart.Ptr]bool{}
	for _, n := range []int64{0, 0, 1, 255, 257, 4096} {
		p := r.alloc(n)
		require.NotZero(r, p)
		require.Zero(r, p%256, "%d bytes", n)
		require.False(r, seen[p])
		seen[p] = true
		for _, pageable := range []bool{false, true} {
			h, err := r.p.AllocHost(n, pageable)
			require.NoError(r, err)
			require.Len(r, r.p.HostBytes(h, n), int(n))
			require.NoError(r, r.p.Free(h))
		}
	}
}

func misusedMemory(r *rig) {
	_, total, err := r.p.MemoryInfo(0)
	require.NoError(r, err)
	_, err = r.p.Alloc(0, 2*total)
	require.ErrorIs(r, err, cudart.ErrOutOfMemory)
	r.named(err, "CUDA_ERROR_OUT_OF_MEMORY")
	_, err = r.p.AllocHost(math.MaxInt64/2, true)
	require.ErrorIs(r, err, cudart.ErrOutOfMemory)
	for _, device := range []int32{-1, int32(len(r.p.Devices()))} {
		_, err = r.p.Alloc(device, 1)
		require.ErrorIs(r, err, cudart.ErrNoDevice)
		_, err = r.p.NewStream(device, 0)
		require.ErrorIs(r, err, cudart.ErrNoDevice)
		_, _, err = r.p.MemoryInfo(device)
		require.ErrorIs(r, err, cudart.ErrNoDevice)
		require.ErrorIs(r, r.p.EnablePeer(0, device), cudart.ErrNoDevice)
	}
	_, err = r.p.Alloc(0, -1)
	require.Error(r, err)
	p, err := r.p.Alloc(0, 64)
	require.NoError(r, err)
	require.NoError(r, r.p.Free(p))
	require.Error(r, r.p.Free(p), "twice")
	require.Error(r, r.p.UnregisterHost(r.h), "not registered")
	require.Nil(r, r.p.HostBytes(r.d, 1), "not the host's")
	require.Nil(r, r.p.HostBytes(r.h, 1<<40), "too long")
	require.NoError(r, r.p.EnablePeer(0, 0))
}

func copies(r *rig) {
	for i := range r.host {
		r.host[i] = uint32(i) * 2654435761
	}
	// Odd lengths at odd offsets, through both device buffers.
	const at, n = 13, bytes - 100
	r.submit(
		cudart.Command{Kind: cudart.CopyMemory, Stream: r.s[0], Dst: r.d + 5, Src: r.h + at, SrcDevice: -1, Bytes: n},
		cudart.Command{Kind: cudart.CopyMemory, Stream: r.s[0], Dst: r.e + 77, Src: r.d + 5, Bytes: n},
		cudart.Command{Kind: cudart.CopyMemory, Stream: r.s[0], Dst: r.g + 3, DstDevice: -1, Src: r.e + 77, Bytes: n},
	)
	r.sync()
	require.Equal(r, r.p.HostBytes(r.h+at, n), r.p.HostBytes(r.g+3, n))
	require.Equal(r, []byte{0, 0, 0}, r.p.HostBytes(r.g, 3))
	r.submit(cudart.Command{Kind: cudart.CopyMemory, Stream: r.s[0], Dst: r.g, DstDevice: -1, Src: r.h, SrcDevice: -1, Bytes: bytes})
	r.sync()
	require.Equal(r, r.host, r.back)
}

func sets(r *rig) {
	for i, want := range []uint32{0x78787878, 0x56785678, 0x12345678} {
		width := uint8(1) << i
		all, part := r.set(0, r.d, width), r.set(0, r.d+8, width)
		all.Pattern, part.Bytes = 0x12345678, 16
		if width < 4 {
			all.Pattern = 0x12345678 & (1<<(8*width) - 1)
		}
		r.submit(all, part, r.down(0, r.g, r.d))
		r.sync()
		require.Equal(r, []uint32{want, want, 0, 0, 0, 0, want}, r.back[:7])
		require.Equal(r, want, r.back[words-1])
	}
}

func pageable(r *rig) {
	p, err := r.p.AllocHost(bytes, true)
	require.NoError(r, err)
	r.Cleanup(func() { require.NoError(r, r.p.Free(p)) })
	w := wordsOf(r.p.HostBytes(p, bytes))
	for i := range w {
		w[i] = uint32(i)
	}
	up, down := r.up(0, r.d, p), r.down(0, p, r.d)
	up.SrcPageable, down.DstPageable = true, true
	r.submit(up, r.mix(0, r.d, r.d, 7), down)
	for i := range w {
		require.Equal(r, mixed(uint32(i), uint32(i), 7), w[i], "a copy to pageable memory has ended when the submission has")
	}
	// Such a copy blocks the host until its stream's earlier work is done; one from pinned memory does not.
	l := r.list(nil, r.hold(0), r.down(0, r.g, r.d))
	held := r.list(nil, down)
	require.NoError(r, l.Submit())
	require.False(r, r.idle(r.s[0]), "submitted behind a held kernel, without waiting for it")
	released := make(chan struct{})
	go func() {
		yield()
		close(released)
		r.release()
	}()
	require.NoError(r, held.Submit())
	select {
	case <-released:
	default:
		require.Fail(r, "the copy did not wait for its stream")
	}
}

func registered(r *rig) {
	// Whole pages are pinned, so the memory consists of its own pages.
	own := make([]byte, 16<<10)
	_, err := r.p.RegisterHost(nil)
	require.Error(r, err)
	p, err := r.p.RegisterHost(own)
	require.NoError(r, err)
	_, err = r.p.RegisterHost(own)
	r.named(err, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED")
	w := wordsOf(r.p.HostBytes(p, bytes))
	w[3] = 41
	r.submit(r.up(0, r.d, p), r.mix(0, r.d, r.d, 1), r.down(0, p, r.d))
	r.sync()
	require.Equal(r, mixed(41, 41, 1), wordsOf(own)[3])
	require.Error(r, r.p.Free(p), "it was not allocated")
	require.NoError(r, r.p.UnregisterHost(p))
	require.Error(r, r.p.UnregisterHost(p))
}

func peers(r *rig) {
	far := r.far("copies between devices")
	if far == 0 {
		return
	}
	for i := range r.host {
		r.host[i] = uint32(i) * 3
	}
	r.submit(r.up(0, r.d, r.h),
		cudart.Command{Kind: cudart.CopyMemory, Stream: r.s[0], Dst: far, DstDevice: 1, Src: r.d, SrcDevice: 0, Bytes: bytes},
		cudart.Command{Kind: cudart.CopyMemory, Stream: r.s[0], Dst: r.e, DstDevice: 0, Src: far, SrcDevice: 1, Bytes: bytes},
		r.down(0, r.g, r.e))
	r.sync()
	require.Equal(r, r.host, r.back)
	require.NoError(r, r.p.EnablePeer(0, 1))
	require.NoError(r, r.p.EnablePeer(0, 1), "already enabled is success")
	r.submit(r.mix(0, far, r.d, 9), r.mix(0, r.e, far, 5), r.down(0, r.g, r.e))
	r.sync()
	for i := range r.back {
		x := uint32(i) * 3
		require.Equal(r, mixed(mixed(x, x, 9), x, 5), r.back[i])
	}
	s, err := r.p.NewStream(1, 0)
	require.NoError(r, err)
	defer func() { require.NoError(r, s.Close()) }()
	e := r.event(false)
	wait := r.wait(0, e)
	wait.Stream = s
	r.submit(r.record(0, e), wait)
	require.NoError(r, s.Synchronize(context.Background()), "waits cross devices")
	record := r.record(0, e)
	record.Stream = s
	require.Error(r, r.try(record), "records do not")
}
