// Machine figures: how fast a device copies, launches and waits, as it was measured once.

package cache

import "context"

const (
	machinesKind     = "machines"
	mostMachineBytes = 64 << 10
)

// Machine returns the machine file kept of a device, nil if there is none. The error says why a file is ignored.
func (f *Folder) Machine(device string) ([]byte, error) { return f.text(machinesKind, device) }

// KeepMachine keeps the machine file of a device, replacing an earlier one.
func (f *Folder) KeepMachine(ctx context.Context, device string, machine []byte) error {
	if f == nil {
		return nil
	}
	if err := checkSize("machine file", machine, mostMachineBytes); err != nil {
		return err
	}
	return f.keepText(ctx, machinesKind, device, machine, mostDevices)
}
