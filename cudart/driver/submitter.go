// The table of one submitting thread, while rows are added to it.

package driver

// submitter is the table of one submitting thread.
type submitter struct {
	walk     *walk
	rows     []row
	epilogue []row
	calls    []function // by row; functionCount for rows that do not call the driver; above it, those of ncclCall
	owner    []int32    // by row: the command, -1 for rows that belong to none
	ends     []function // by epilogue row
	guards   []int      // by epilogue row that finally added: the row that must have been passed
	device   *device    // the device whose context is current after the rows so far
}

// enter makes a device's context current.
func (l *submitter) enter(p *Platform, d *device) {
	if l.device != d {
		l.add(p, cuCtxSetCurrent, -1, d.context.Load())
		l.device = d
	}
}

func (l *submitter) add(p *Platform, f function, owner int32, args ...uintptr) {
	r := row{fn: p.lib.address[f]}
	copy(r.arg[:], args)
	l.rows = append(l.rows, r)
	l.calls = append(l.calls, f)
	l.owner = append(l.owner, owner)
}

func (l *submitter) builtin(code uintptr, owner int32, args ...uintptr) {
	r := row{fn: code}
	copy(r.arg[:], args)
	l.rows = append(l.rows, r)
	l.calls = append(l.calls, functionCount)
	l.owner = append(l.owner, owner)
}

// finally adds an epilogue row that runs if the row at guard was passed. settle writes the address of that row, once the rows stay where they are.
func (l *submitter) finally(p *Platform, f function, guard int, args ...uintptr) {
	r := row{fn: p.lib.address[f]}
	copy(r.arg[:rowGuard], args)
	l.epilogue = append(l.epilogue, r)
	l.guards = append(l.guards, guard)
	l.ends = append(l.ends, f)
}
