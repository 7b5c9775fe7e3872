// The names of the driver's calls behind commands, for errors. Calls nothing.

package cudart

// Call is the driver's call that submits the command to a stream, "" where there is none.
func (c *Command) Call() string {
	switch c.Kind {
	case LaunchKernel:
		return "cuLaunchKernel"
	case CopyMemory:
		return "cuMemcpyAsync"
	case SetMemory:
		switch c.Width {
		case 2:
			return "cuMemsetD16Async"
		case 4:
			return "cuMemsetD32Async"
		}
		return "cuMemsetD8Async"
	case RecordEvent:
		return "cuEventRecord"
	case WaitEvent:
		return "cuStreamWaitEvent"
	}
	return ""
}
