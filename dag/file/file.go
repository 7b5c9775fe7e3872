// Package file reads, writes and formats pipeline files.
package file

import (
	"context"

	"github.com/dagrun/dagrun/dag"
)

// What package dag still has of reading files.
type (
	Options        = dag.Options
	Override       = dag.Override
	Binding        = dag.FileBinding
	Family         = dag.Family
	ParseError     = dag.ParseError
	RankParseError = dag.RankParseError
)

// MaxBytes is how large a file may be.
const MaxBytes = dag.MaxFile

// Parse is dag.Parse.
func Parse(source []byte, options Options) (*dag.Graph, error) { return dag.Parse(source, options) }

// ParseContext is dag.ParseContext.
func ParseContext(ctx context.Context, source []byte, options Options) (*dag.Graph, error) {
	return dag.ParseContext(ctx, source, options)
}

// ParseFamily is dag.ParseFamily.
func ParseFamily(source []byte, options Options, ranks int) (*Family, error) {
	return dag.ParseFamily(source, options, ranks)
}

// ParseFamilyContext is dag.ParseFamilyContext.
func ParseFamilyContext(ctx context.Context, source []byte, options Options, ranks int) (*Family, error) {
	return dag.ParseFamilyContext(ctx, source, options, ranks)
}

// Params is dag.FileParams.
func Params(source []byte, name string) ([]dag.Param, error) { return dag.FileParams(source, name) }

// Buffers is dag.FileBuffers.
func Buffers(source []byte, options Options) ([]dag.Buffer, error) { return dag.FileBuffers(source, options) }

// Format is dag.Format.
func Format(source []byte, name string) ([]byte, error) { return dag.Format(source, name) }
