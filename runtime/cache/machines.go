// Machine figures: how fast a device copies, launches and waits, as it was measured once.

package cache

import (
	"context"
	"path/filepath"
)

const (
	machinesKind     = "machines"
	mostMachineBytes = 64 << 10
)

func (f *Folder) machine(device string) string {
	return filepath.Join(f.path, machinesKind, Fingerprint([]byte(device)))
}

// Machine returns the machine file kept of a device, nil if there is none. The error says why a file is ignored.
func (f *Folder) Machine(device string) ([]byte, error) {
	if f == nil {
		return nil, nil
	}
	name := f.machine(device)
	body, err := read(machinesKind, name)
	if err != nil {
		return nil, skipped(name, err)
	}
	touch(name)
	return body, nil
}

// KeepMachine keeps the machine file of a device, replacing an earlier one.
func (f *Folder) KeepMachine(ctx context.Context, device string, machine []byte) error {
	if f == nil {
		return nil
	}
	if err := checkSize("machine file", machine, mostMachineBytes); err != nil {
		return err
	}
	name := f.machine(device)
	if err := write(ctx, machinesKind, name, machine); err != nil {
		return err
	}
	return trim(filepath.Dir(name), mostDevices, mostBytes)
}
