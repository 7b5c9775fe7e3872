// Decisions: what -v prints, one line each, from the command and from the packages below through slog.

package cli

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
)

// logHandler prints records on stderr: all of them with -v, warnings without.
type logHandler struct {
	console *Console
	attrs   []slog.Attr
	group   string
}

func (h *logHandler) Enabled(_ context.Context, level slog.Level) bool {
	if h.console.Flags.Verbose {
		return level >= slog.LevelInfo
	}
	return level >= slog.LevelWarn && !h.console.Flags.Quiet
}

func (h *logHandler) Handle(_ context.Context, record slog.Record) error {
	var b strings.Builder
	b.WriteString(record.Message)
	separator := ": "
	add := func(attr slog.Attr) bool {
		if attr.Equal(slog.Attr{}) {
			return true
		}
		fmt.Fprintf(&b, "%s%s%s %s", separator, h.group, strings.ReplaceAll(attr.Key, "_", " "), attr.Value.Resolve())
		separator = ", "
		return true
	}
	for _, attr := range h.attrs {
		add(attr)
	}
	record.Attrs(add)
	prefix := h.console.Paint(h.console.Stderr, Dim, "dagrun:")
	if record.Level >= slog.LevelWarn {
		prefix = h.console.Paint(h.console.Stderr, yellow, "warning:")
	}
	h.console.Progress.Clear()
	return h.console.Stderr.Printf("%s %s\n", prefix, b.String())
}

func (h *logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &logHandler{console: h.console, attrs: append(append([]slog.Attr{}, h.attrs...), attrs...), group: h.group}
}

func (h *logHandler) WithGroup(name string) slog.Handler {
	return &logHandler{console: h.console, attrs: h.attrs, group: h.group + name + "."}
}
