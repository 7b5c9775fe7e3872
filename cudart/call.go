// The names of the driver calls that submit commands, for errors.

package cudart

// Call returns the name of the driver call that submits the command to a stream, "" if there is none.
func (c *Command) Call() string {
	switch c.Kind {
	case LaunchKernel:
		return "cuLaunchKernel"
	case CopyMemory:
		if c.Rows > 1 {
			return "cuMemcpy2DAsync"
		}
		return "cuMemcpyAsync"
	case SetMemory:
		if c.Rows > 1 {
			switch c.Width {
			case 2:
				return "cuMemsetD2D16Async"
			case 4:
				return "cuMemsetD2D32Async"
			}
			return "cuMemsetD2D8Async"
		}
		switch c.Width {
		case 2:
			return "cuMemsetD16Async"
		case 4:
			return "cuMemsetD32Async"
		}
		return "cuMemsetD8Async"
	case Communicate:
		return c.Communication.Call()
	case RunHost:
		return "cuLaunchHostFunc"
	case RecordEvent:
		return "cuEventRecord"
	case WaitEvent:
		return "cuStreamWaitEvent"
	}
	return ""
}
