// What a launch of a library kernel accesses and costs, and the checks of its arguments.

package library

import (
	"math"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/kernels/internal/describe"
)

// Describe implements [dag.LaunchKernel]. Of a kernel that has forms, it describes a launch of the form for these arguments.
func (k *libraryKernel) Describe(args []dag.Arg) (dag.LaunchInfo, error) {
	if f := k.form(args); f != k {
		return f.Describe(f.withScratch(args))
	}
	info := dag.LaunchInfo{HasHint: true, Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{1, 1, 1}}
	if err := describe.CheckKinds(k.params, args); err != nil {
		return info, err
	}
	v := k.scalarsOf(args)
	for i, p := range k.parameters {
		if p.mode != 0 {
			continue
		}
		if k.params[i].DType.Float() {
			continue
		}
		switch {
		case v.v[i] < p.min:
			return info, describe.Wrong(p.name, "is %d; it must be at least %d", v.v[i], p.min)
		case v.v[i] > p.max:
			return info, describe.Wrong(p.name, "is %d; it must be at most %d", v.v[i], p.max)
		}
	}
	if k.row.check != nil {
		if err := k.row.check(v); err != nil {
			return info, err
		}
	}
	info.Extents = make([]int64, len(args))
	writes, writesNothing := false, true
	for i, p := range k.parameters {
		if p.mode == 0 {
			continue
		}
		n, err := p.extent.eval(append(v.v, k.types.T.Size(), k.types.X.Size()))
		if err != nil {
			return info, describe.Wrong(p.name, "has a size that %v", err)
		}
		if p.scratch {
			info.Extents[i], info.Scratch = n, n
			continue
		}
		size := k.params[i].DType.Size()
		if args[i].Range.Tile() {
			if err := k.checkTile(i, v); err != nil {
				return info, err
			}
		} else if have := args[i].Range.Bytes() / size; n > have {
			return info, describe.Wrong(p.name, "needs %s (%s), but its slice has only %d", describe.CountElements(n), p.extent.text, have)
		}
		if info.Extents[i] = n; args[i].Range.Tile() {
			info.Extents[i] = -1
		}
		info.Work.Bytes += n * size
		if p.mode&dag.Write != 0 {
			writes, writesNothing = true, writesNothing && n == 0
		}
		if p.mode == dag.ReadWrite {
			info.Work.Bytes += n * size
		}
	}
	if err := k.checkOverlap(args, info.Extents); err != nil {
		return info, err
	}
	if k.flops != nil {
		n, err := k.flops.eval(v.v)
		if err != nil {
			n = math.MaxInt64
		}
		info.Work.Flops = n
	}
	if k.row.us != nil {
		info.Work.US = k.row.us(v)
	}
	if info.Work.Steps = fewSteps; k.row.steps != nil {
		info.Work.Steps = k.row.steps(k, v)
	}
	k.row.launch(k, v, &info)
	if writes && writesNothing { // there may be 2^62 rows without columns: looping over them would not end
		info.Grid[0] = 0
	}
	info.Work.Blocks = int64(info.Grid[0]) * int64(info.Grid[1]) * int64(info.Grid[2])
	info.Work.Threads = int32(info.Block[0] * info.Block[1] * info.Block[2])
	info.Work.Shared = int32(info.Shared)
	return info, nil
}

// checkOverlap refuses a launch that writes memory that another argument also reads or writes, because the result would depend on the order
// of the threads. Kernels that work in place may have exactly the same range twice.
func (k *libraryKernel) checkOverlap(args []dag.Arg, extents []int64) error {
	for i, p := range k.parameters {
		if p.mode&dag.Write == 0 || p.scratch {
			continue
		}
		for j, q := range k.parameters {
			if i == j || q.mode == 0 || q.scratch || q.mode&dag.Write != 0 && j < i {
				continue
			}
			a, b := args[i].Range, args[j].Range
			if extents[i] >= 0 {
				a.Hi = a.Lo + extents[i]*k.params[i].DType.Size()
			}
			if extents[j] >= 0 {
				b.Hi = b.Lo + extents[j]*k.params[j].DType.Size()
			}
			if !a.Overlaps(b) {
				continue
			}
			if k.row.inPlace && q.mode == dag.Read && a == b {
				continue
			}
			return describe.Wrong(k.params[max(i, j)].Name, "overlaps %s in memory, and %s is written", k.params[min(i, j)].Name, p.name)
		}
	}
	return nil
}
