// Why a file is not well: causes that the table groups files by.

package main

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/dagrun/dagrun/kernels/launch"
)

// outcome is what became of one file.
type outcome struct {
	path    string
	cause   string // "" if all is well
	said    string // by the compiler first
	kernels int
}

// fragment is the cause of files that are meant to be included by others.
const fragment = "a fragment: another file includes it"

// ofNVIDIA recognises what comes from headers of NVIDIA's that dagrun does not have: those of CCCL, cuRAND, tensor cores.
var ofNVIDIA = []struct {
	what string
	sign *regexp.Regexp
}{
	{"needs CUB, Thrust or libcu++ (CCCL)", regexp.MustCompile(`['<](?:thrust|cub|cuda/(?:std/)?)[/'\w]|\b(?:cub|thrust)::|identifier 'cuda'|'cuda::`)},
	{"needs curand_kernel.h", regexp.MustCompile(`curand`)},
	{"needs tensor cores or cuda_fp8.h", regexp.MustCompile(`'nvcuda'|wmma|mma\.h|fp8|fp4|fp6`)},
	{"needs other headers of NVIDIA's", regexp.MustCompile(`['<](?:cusolver|cusparse|cudnn|nccl|nvshmem|npp|cutlass|cute|cooperative_groups/|cufft|cublas)`)},
}

var (
	errorLine     = regexp.MustCompile(`(?m)^(?:.*?(?:\(\d+\)|:\d+:\d+): )?(?:catastrophic |fatal )?error: (.*)$`)
	missingHeader = regexp.MustCompile(`'([^']+)' file not found|could not open source file "([^"]+)"`)
	unknownName   = regexp.MustCompile(`undeclared identifier|unknown type name|no member named|no template named|no type named|identifier "[^"]*" is undefined|has no member|no matching function`)
)

// failed finds the cause of an error.
func (o outcome) failed(err error, files *found) outcome {
	o.said, _, _ = strings.Cut(err.Error(), "\n")
	wrong := (*launch.CompileError)(nil)
	log := err.Error()
	if errors.As(err, &wrong) {
		log = wrong.Log
		if m := errorLine.FindString(log); m != "" {
			o.said = m
		}
	}
	if by := files.through(o.path); by != "" {
		o.cause = fragment
		o.said = fmt.Sprintf("included by %s; alone: %s", by, o.said)
		return o
	}
	if wrong == nil {
		o.cause = "its kernels are not read"
		return o
	}
	absent := strings.Join(wrong.Others, ", ")
	for _, n := range ofNVIDIA {
		if n.sign.MatchString(o.said) || n.sign.MatchString(absent) {
			o.cause = n.what
			return o
		}
	}
	switch {
	case strings.Contains(absent, "is not found"):
		o.cause, o.said = "a header is missing", o.said+"; "+absent
	case missingHeader.MatchString(log):
		m := missingHeader.FindStringSubmatch(log)
		o.cause = "a header is missing"
		o.said = m[1] + m[2]
	case unknownName.MatchString(o.said):
		o.cause = "a name is unknown"
	default:
		o.cause = "another error"
	}
	return o
}
