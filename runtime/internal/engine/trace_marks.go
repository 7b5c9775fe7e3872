// Events before and after the commands of nodes.

package engine

import "github.com/dagrun/dagrun/cudart"

// withMarks returns a replay's commands with a timed record before and after every node, on the node's own stream.
func withMarks(lowered []cudart.Command, before, after []cudart.Event) []cudart.Command {
	var commands []cudart.Command
	for _, c := range lowered {
		if c.Node < 0 || c.Kind == cudart.RecordEvent || c.Kind == cudart.WaitEvent {
			commands = append(commands, c)
			continue
		}
		mark := func(e cudart.Event) cudart.Command {
			return cudart.Command{Kind: cudart.RecordEvent, Stream: c.Stream, Event: e, Node: c.Node, Label: c.Label}
		}
		commands = append(commands, mark(before[c.Node]), c, mark(after[c.Node]))
	}
	return commands
}
