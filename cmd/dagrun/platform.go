// Platforms: which kind of device a command runs on, and why.

package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/cudart/driver"
	"github.com/dagrun/dagrun/cudart/host"
	"github.com/dagrun/dagrun/dag"
)

// openPlatform opens what --backend names. auto takes the GPU where there is one, else the CPU device, and says why.
func (a *app) openPlatform(devices int) (cudart.Platform, string, error) {
	name := a.flags.backend
	switch {
	case name == "cuda":
		p, err := driver.Open()
		if err != nil {
			return nil, "", err
		}
		return p, p.Devices()[0].Name, nil
	case name == "cpu" || strings.HasPrefix(name, "cpu:"):
		if _, number, ok := strings.Cut(name, ":"); ok {
			n, err := strconv.Atoi(number)
			if err != nil || n < 1 || n > 64 {
				return nil, "", fmt.Errorf("--backend %s: want cpu:1 to cpu:64", name)
			}
			devices = n
		}
		p, err := host.Open(host.Options{Devices: devices})
		return p, "the CPU device", err
	case name != "auto":
		return nil, "", fmt.Errorf("--backend %q: want auto, cuda, cpu or cpu:N", name)
	}
	p, err := driver.Open()
	if err == nil {
		return p, p.Devices()[0].Name, nil
	}
	if !errors.Is(err, cudart.ErrNoDriver) && !errors.Is(err, cudart.ErrNoDevice) {
		return nil, "", err
	}
	fallback, hostErr := host.Open(host.Options{Devices: devices})
	return fallback, "the CPU device (no GPU: " + err.Error() + ")", hostErr
}

// devicesOf is how many devices a graph speaks of.
func devicesOf(g *dag.Graph) int {
	n := int32(0)
	for i := range g.Buffers {
		n = max(n, g.Buffers[i].Device)
	}
	for i := range g.Nodes {
		n = max(n, g.Nodes[i].Device)
	}
	return int(n) + 1
}
