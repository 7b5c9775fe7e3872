// Tests that the device is closed before the process that looks for a fault starts. A shell script stands in for that process.

//go:build unix

package main

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart/host"
)

// closes is a platform that leaves a file behind when it is closed.
type closes struct {
	*host.Platform
	file string
}

func (c closes) Close() error {
	return errors.Join(os.WriteFile(c.file, nil, 0o644), c.Platform.Close())
}

// A device that faulted holds its memory until it is closed, and the new process needs as much: it must find the device closed.
func TestTheDeviceIsClosedBeforeTheNewProcessStarts(t *testing.T) {
	folder := t.TempDir()
	closed, self := filepath.Join(folder, "closed"), filepath.Join(folder, "dagrun")
	require.NoError(t, os.WriteFile(self, []byte("#!/bin/sh\ntest -e "+closed+" && echo '"+`{"version": 1, "error": {"status": 3, "message": "node \"it\"", "node": "it"}}`+"'\n"), 0o755))
	_, found := pinned(t, "any.yaml", self, closes{openCPU(t), closed})
	require.EqualError(t, found, `node "it"`)
}
