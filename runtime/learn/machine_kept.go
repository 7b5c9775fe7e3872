// Machine figures that were measured once and kept: they are used for planning from then on.

package learn

import (
	"bytes"
	"context"
	"fmt"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/runtime/cache"
	"github.com/dagrun/dagrun/runtime/internal/engine"
)

// machineKey identifies the first device of a platform: a machine is a model of one device.
func machineKey(platform cudart.Platform) string {
	if platform == nil || len(platform.Devices()) == 0 {
		return ""
	}
	return devicesKey(platform, platform.Devices()[:1])
}

// KeepMachine keeps the machine that was measured on a platform, so that KeptMachine finds it. A nil folder keeps nothing.
func KeepMachine(ctx context.Context, platform cudart.Platform, folder *cache.Folder, m *planner.Machine) error {
	key := machineKey(platform)
	if folder.Path() == "" || key == "" {
		return nil
	}
	if ctx == nil {
		return engine.ErrNoContext
	}
	if err := m.ValidateMeasured(); err != nil {
		return err
	}
	var text bytes.Buffer
	if err := m.Encode(&text); err != nil {
		return err
	}
	return folder.KeepMachine(ctx, key, text.Bytes())
}

// KeptMachine returns the machine kept for a platform's first device, nil if there is none. The error says why a kept one is ignored.
func KeptMachine(platform cudart.Platform, folder *cache.Folder) (*planner.Machine, error) {
	key := machineKey(platform)
	if folder.Path() == "" || key == "" {
		return nil, nil
	}
	text, err := folder.Machine(key)
	if text == nil || err != nil {
		return nil, err
	}
	m, err := decodeMeasured(text)
	if err != nil {
		return nil, fmt.Errorf("the measurements kept for %s are ignored: %w", platform.Devices()[0].Name, err)
	}
	return m, nil
}

// decodeMeasured reads a machine file of the cache. It may be damaged or hostile, so its figures must be ones that can be measured.
func decodeMeasured(text []byte) (*planner.Machine, error) {
	m, err := planner.DecodeMachine(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	return m, m.ValidateMeasured()
}
