// What a command costs before it does anything large: a process of its own each time, on the CPU device. Tests nothing else.

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
