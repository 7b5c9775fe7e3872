// Connecting the GPUs of several ranks with NCCL: communicators, their errors, and how they end.

package driver

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/dagrun/dagrun/cudart/driver/internal/nccl"
	"github.com/dagrun/dagrun/cudart/world"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/internal/dl"
)

// watchEvery is how often errors of communication that is running are looked for.
const watchEvery = 250 * time.Millisecond

// Connect makes communication go to the other ranks of a world, over NCCL, from this platform's first device. All ranks must call it. groups are the
// groups of ranks that this rank communicates in, besides all ranks. It must come before the first command is encoded.
func (p *Platform) Connect(ctx context.Context, w *world.World, groups []dag.Among) error {
	if ctx == nil || w == nil {
		return errors.New("connect needs a context and a world; make one with world.Join")
	}
	if p.comms != nil {
		return errors.New("the platform is connected already")
	}
	lib, err := nccl.Open(os.Getenv)
	if err != nil {
		return fmt.Errorf("%w; --backend cpu needs none", err)
	}
	if err := p.connect(ctx, w, groups, lib); err != nil {
		return err
	}
	return p.comms.openDirect(ctx)
}

func (p *Platform) connect(ctx context.Context, w *world.World, groups []dag.Among, lib *nccl.Library) error {
	d, err := p.device(0)
	if err != nil {
		return err
	}
	if err := p.prepare(d); err != nil {
		return err
	}
	c := &communicators{lib: lib, p: p, world: w, d: d, group: map[dag.Among]nccl.Comm{}, end: make(chan struct{})}
	id, err := c.shareID(ctx)
	if err != nil {
		return err
	}
	all, err := c.everyGroup(ctx, groups)
	if err != nil {
		return err
	}
	p.comms = c
	place := w.Place()
	if err := c.call(ctx, func() error { return c.make(place, id, all) }); err != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.broken = true
		return err
	}
	c.watched.Add(1)
	go c.watch()
	return nil
}

// shareID brings the ID that rank 0 makes to all ranks.
func (c *communicators) shareID(ctx context.Context) (*nccl.ID, error) {
	own := ""
	if c.world.Place().Rank == 0 {
		id, err := c.lib.UniqueID()
		if err != nil {
			return nil, err
		}
		own = hex.EncodeToString(id[:])
	}
	texts, err := c.world.Barrier(ctx, "nccl id", own)
	if err != nil {
		return nil, err
	}
	id := new(nccl.ID)
	if n, err := hex.Decode(id[:], []byte(texts[0])); err != nil || n != len(id) {
		return nil, errors.New("rank 0 sent an id that is not NCCL's")
	}
	return id, nil
}

// everyGroup returns the groups of all ranks, in the same order on all.
func (c *communicators) everyGroup(ctx context.Context, own []dag.Among) ([]dag.Among, error) {
	text, err := json.Marshal(own)
	if err != nil {
		return nil, err
	}
	texts, err := c.world.Barrier(ctx, "nccl groups", string(text))
	if err != nil {
		return nil, err
	}
	var all []dag.Among
	for rank, t := range texts {
		var list []dag.Among
		if err := json.Unmarshal([]byte(t), &list); err != nil {
			return nil, fmt.Errorf("the groups of rank %d: %w", rank, err)
		}
		for _, g := range list {
			if !slices.Contains(all, g) {
				all = append(all, g)
			}
		}
	}
	return all, nil
}

// make makes the communicator of all ranks, and those of the groups. Groups without a common rank are made together.
func (c *communicators) make(place world.Place, id *nccl.ID, groups []dag.Among) error {
	comm, err := c.lib.Init(place.Ranks, place.Rank, id)
	if err != nil {
		return err
	}
	whole := dag.Among{First: 0, Count: int32(place.Ranks), Step: 1}
	c.add(whole, comm)
	for _, together := range disjoint(groups, whole) {
		color, own := -1, dag.Among{}
		for k, g := range together {
			if g.Index(int32(place.Rank)) >= 0 {
				color, own = k, g
			}
		}
		sub, err := c.lib.Split(comm, color, place.Rank)
		if err != nil {
			return err
		}
		if color >= 0 {
			c.add(own, sub)
		}
	}
	return nil
}

func (c *communicators) add(g dag.Among, comm nccl.Comm) {
	c.group[g] = comm
	c.order = append(c.order, comm)
}

// disjoint sorts groups into lists of groups without a common rank, without the group of all ranks.
func disjoint(groups []dag.Among, whole dag.Among) [][]dag.Among {
	var lists [][]dag.Among
	var taken []map[int32]bool
next:
	for _, g := range groups {
		if g == whole || g.Count < 1 || g.Step < 1 {
			continue
		}
	lists:
		for k := range lists {
			for m := range g.Count {
				if taken[k][g.First+m*g.Step] {
					continue lists
				}
			}
			lists[k] = append(lists[k], g)
			take(taken[k], g)
			continue next
		}
		lists, taken = append(lists, []dag.Among{g}), append(taken, map[int32]bool{})
		take(taken[len(taken)-1], g)
	}
	return lists
}

func take(ranks map[int32]bool, g dag.Among) {
	for m := range g.Count {
		ranks[g.First+m*g.Step] = true
	}
}

// call makes calls into NCCL on a thread on which the device's context is current. It gives up waiting when the context ends or another rank
// fails: the thread is then left behind, and the process must end.
func (c *communicators) call(ctx context.Context, do func() error) error {
	done := make(chan error, 1)
	go func() { done <- c.run(do) }()
	var err error
	select {
	case err = <-done:
		if err == nil {
			return nil
		}
		// Another rank that failed is a better cause than the connection to it.
		select {
		case <-c.world.Failed():
			return c.world.Cause()
		default:
			return err
		}
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-c.world.Failed():
		err = c.world.Cause()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.abandoned = true
	return err
}

// run makes calls into NCCL with the device's context.
func (c *communicators) run(do func() error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if code := uint32(dl.Call(c.p.lib.address[cuCtxPushCurrent], c.d.context.Load())); code != 0 {
		return c.d.fail(c.p.lib, cuCtxPushCurrent, uint64(code))
	}
	popped := new(uintptr)
	defer func() { dl.CallWith(c.p.lib.address[cuCtxPopCurrent], dl.Pointer(popped)) }()
	return do()
}

// remoteCause is how long this rank waits to be told of another rank's failure, which is the better cause of an error of NCCL.
const remoteCause = 2 * time.Second

// watch looks for errors of communication that is running, and ends it when a rank fails.
func (c *communicators) watch() {
	defer c.watched.Done()
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		select {
		case <-c.end:
			return
		case <-c.world.Failed():
			c.abort()
			return
		case <-tick.C:
		}
		for _, comm := range c.order {
			err := c.lib.AsyncError(comm)
			if err == nil {
				continue
			}
			select {
			case <-c.world.Failed():
			case <-time.After(remoteCause):
				c.world.Fail(err)
			}
			break
		}
	}
}

// abort ends all communication of this rank. Graphs that communicate must be destroyed meanwhile, because NCCL waits for that.
func (c *communicators) abort() {
	c.mu.Lock()
	done := c.aborted || c.abandoned
	c.aborted = true
	c.direct.end()
	c.mu.Unlock()
	if done {
		return
	}
	var all sync.WaitGroup
	for _, comm := range c.order {
		all.Go(func() { _ = c.run(func() error { return c.lib.Abort(comm) }) }) // the cause is known
	}
	all.Wait()
}

// closeDirect gives back what direct all-reduces need, unless something of it may still be running.
func (c *communicators) closeDirect() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.broken || c.aborted || c.abandoned {
		return nil
	}
	x := c.direct
	c.direct = nil
	return x.close()
}

// close destroys the communicators. It reports false if a thread is still inside NCCL, so that the device must not be taken away from it.
func (c *communicators) close() (bool, error) {
	close(c.end)
	c.watched.Wait()
	c.mu.Lock()
	broken := c.broken
	c.mu.Unlock()
	if broken {
		c.abort()
	}
	var err error
	c.mu.Lock()
	ended := c.aborted || c.abandoned
	c.mu.Unlock()
	if !ended {
		err = c.call(context.Background(), func() error {
			var first error
			for _, comm := range slices.Backward(c.order) {
				if err := c.lib.Destroy(comm); err != nil && first == nil {
					first = err
				}
			}
			return first
		})
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.abandoned, err
}

// Close releases the primary contexts, including those that had a fault, whose memory stays allocated until then. Everything that was made
// on the platform must be closed first.
func (p *Platform) Close() error {
	if p.closed.Load() {
		return nil
	}
	first := p.dropTextures(0)
	if p.comms != nil {
		first = errors.Join(first, p.comms.closeDirect())
	}
	if p.closed.Swap(true) {
		return nil
	}
	if p.comms != nil {
		var ended bool
		if ended, first = p.comms.close(); !ended {
			return first
		}
	}
	for _, d := range p.devices {
		d.mu.Lock()
		if d.retained {
			// A context that had a fault may return it once more, but is released all the same.
			if code := uint32(dl.Call(p.lib.address[cuDevicePrimaryCtxRelease], uintptr(d.handle))); code != 0 && d.fault.Load() == nil && first == nil {
				first = onDevice(p.lib.failure(cuDevicePrimaryCtxRelease, uint64(code)), d)
			}
		}
		d.retained = false
		d.context.Store(0)
		d.mu.Unlock()
	}
	return first
}
