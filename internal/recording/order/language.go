// The call that would order a race, in the words of the program's language.

package order

import "github.com/dagrun/dagrun/internal/recording"

// defaultStream is what the legacy default stream is called.
const defaultStream = "the default stream"

// codeOf is the line to add before the place of a fix, "" where no single call would do.
func codeOf(p *recording.Process, f *Fix) string {
	frames := p.Places[f.Before]
	if len(frames) == 0 {
		return ""
	}
	switch python := frames[0].Python; {
	case f.Kind == StreamWaits && python:
		return "torch.cuda.current_stream().wait_stream(" + torchStream(f.For) + ")"
	case f.Kind == BeforeFree && python:
		return "tensor.record_stream(" + torchStream(f.For) + ")"
	case f.Kind == HostWaits && python:
		return torchStream(f.For) + ".synchronize()"
	case f.Kind == StreamWaits:
		return "cudaEventRecord(event, " + cudaStream(f.For) + "); cudaStreamWaitEvent(" + cudaStream(f.Waiting) + ", event)"
	case f.Kind == HostWaits:
		return "cudaStreamSynchronize(" + cudaStream(f.For) + ")"
	}
	return ""
}

func torchStream(name string) string {
	if name == defaultStream {
		return "torch.cuda.default_stream()"
	}
	return "<" + name + ">"
}

func cudaStream(name string) string {
	if name == defaultStream {
		return "0"
	}
	return "<" + name + ">"
}
