// What all commands share: input and output, the values of their flags, and what is known of the pipeline.

package main

import (
	"github.com/dagrun/dagrun/cmd/dagrun/internal/replan"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/runs"
)

// app is the state that every command has: its input and output, and the shared flags.
type app struct {
	*runs.Runs
	earlier *replan.Kept // what a program found out about that graph; nil if nothing is known
}
