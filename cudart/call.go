// The names of the driver calls that submit commands, for errors.

package cudart

// Call returns the name of the driver call that submits the command to a stream, "" if there is none.
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
	case Communicate:
		return c.Communication.Call()
	case RecordEvent:
		return "cuEventRecord"
	case WaitEvent:
		return "cuStreamWaitEvent"
	}
	return ""
}
