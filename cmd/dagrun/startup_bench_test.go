// Benchmarks the start of a command: a new process each time, with a small pipeline on the CPU device.

package main

import (
	"os/exec"
	"testing"
)

func BenchmarkStartup(b *testing.B) {
	dagrun := selfAsCommand(b)
	for _, c := range []struct {
		name string
		args []string
	}{
		{"version", []string{"--version"}},
		{"check", []string{"check", "../../pipelines/saxpy.yaml"}},
		{"plan", []string{"plan", "../../pipelines/saxpy.yaml"}},
		{"run", []string{"run", "../../pipelines/saxpy.yaml", "--backend", "cpu"}},
	} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				if out, err := exec.Command(dagrun, c.args...).CombinedOutput(); err != nil {
					b.Fatalf("%v: %s", err, out)
				}
			}
		})
	}
}
