// Tests of text from outside on a terminal: names, arrays, plans and messages cannot control the terminal; only dagrun's own colours and
// progress line do. The terminal is a pseudo-terminal.

package main

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// hostile has 7-bit and 8-bit sequences that change colours, titles and the cursor, and marks that reverse the direction of text.
const hostile = "evil\x1b[7m\x1b]0;title\x07\x1b[2J\u009b7m\u202e\u2066\u200f\b\rX"

// turning has only the marks, because names and strings in a pipeline may not contain control characters.
const turning = "evil\u202e\u2066\u200fX"

// ownSequences are the sequences that dagrun itself writes to a terminal: its five colours, their reset, and clearing the progress line.
var ownSequences = regexp.MustCompile(`\x1b\[(31|32|33|1|2|0)m|\r\x1b\[K|\r\n`)

// requireHarmless checks that what was written to a terminal is text, apart from dagrun's own sequences.
func requireHarmless(t *testing.T, written string) {
	t.Helper()
	for _, r := range ownSequences.ReplaceAllString(written, "\n") {
		bad := r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 || r == 0x61c || r == 0x200e || r == 0x200f ||
			r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069
		require.False(t, bad, "%U in %q", r, written)
	}
}

// inYAML is a text as a double-quoted string of YAML.
func inYAML(text string) string {
	var b strings.Builder
	for _, r := range text {
		if r < ' ' || r > '~' || r == '"' || r == '\\' {
			fmt.Fprintf(&b, `\U%08x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return `"` + b.String() + `"`
}

// hostileFolder makes pipelines, an array, plans and a profile with hostile text wherever they allow text.
func hostileFolder(t *testing.T) (folder string, at func(name string) string) {
	t.Helper()
	folder = t.TempDir()
	at = func(name string) string { return filepath.Join(folder, name) }
	write := func(name, text string) { require.NoError(t, os.WriteFile(at(name), []byte(text), 0o644)) }
	write("named.yaml", fmt.Sprintf(`version: 1
name: %[1]s
buffers:
  x: {place: host, dtype: u8, shape: [4], save: %[2]s, expect: {value: 2}}
  d: {place: device, dtype: u8, shape: [4]}
nodes:
  - {name: %[1]s, memset: {to: d, value: 1}}
  - {name: down, memcpy: {from: d, to: x}}
`, inYAML(turning), inYAML(turning+".bin")))
	for what, line := range map[string]string{
		"name":   "name: %s",
		"node":   "  - {name: %s, memset: {to: d, value: 1}}",
		"key":    "  - {name: set, %s: 1}",
		"kernel": "  - {name: set, kernel: %s, args: [1]}",
		"value":  "  - {name: set, memset: {to: d, value: %s}}",
		"after":  "  - {name: set, memset: {to: d, value: 1}, after: [%s]}",
	} {
		write("wrong-"+what+".yaml", "version: 1\nbuffers:\n  d: {place: device, dtype: u8, shape: [4]}\nnodes:\n"+fmt.Sprintf(line, inYAML(hostile))+"\n")
	}
	write("raw.yaml", "version: 1\nname: raw # "+hostile+"\nnodes: wrong "+hostile+"\n")
	write("array.yaml", `version: 1
name: array
buffers:
  x: {place: host, dtype: f32, shape: [2], init: {file: x.npy}}
  d: {place: device, dtype: f32, shape: [2]}
nodes:
  - {name: up, memcpy: {from: x, to: d}}
`)
	header := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (2,), }", hostile)
	write("x.npy", "\x93NUMPY\x01\x00"+string(binary.LittleEndian.AppendUint16(nil, uint16(len(header)+1)))+header+"\n"+strings.Repeat("\x00", 8))
	quoted := strings.TrimSuffix(strings.TrimPrefix(inJSON(hostile), `"`), `"`)
	write("key.json", `{"`+quoted+`": 1}`)
	write("profile.json", `{"version": 1, "machine": "`+quoted+`", "nodes_us": {"`+quoted+`": 4}}`)
	return folder, at
}

// inJSON is a text as a string of JSON, in ASCII.
func inJSON(text string) string {
	var b strings.Builder
	for _, r := range text {
		if r < ' ' || r > '~' {
			fmt.Fprintf(&b, `\u%04x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return `"` + b.String() + `"`
}

func TestNothingFromOutsideSteersATerminal(t *testing.T) {
	folder, at := hostileFolder(t)
	good := at("good.json")
	c := newConsole(t, 200)
	require.Zero(t, c.run(t, nil, nil, "plan", at("named.yaml"), "--quiet", "--save-plan", good), "%s", &c.written)
	text, err := os.ReadFile(good)
	require.NoError(t, err)
	for key, change := range map[string]func(string) string{
		"machine": func(s string) string { return strings.Replace(s, `"h200"`, inJSON(hostile), 1) },
		"strategy": func(s string) string {
			return strings.Replace(s, `"strategy": "list"`, `"strategy": `+inJSON(hostile), 1)
		},
		"note": func(s string) string {
			return strings.Replace(s, `"streams":`, `"note": `+inJSON(hostile)+`, "streams":`, 1)
		},
		"node": func(s string) string { return strings.Replace(s, `"node": "down"`, `"node": `+inJSON(hostile), 1) },
		"work": func(s string) string {
			return strings.ReplaceAll(s, `estimated bytes=4`, strings.Trim(inJSON("estimated bytes="+hostile), `"`))
		},
	} {
		changed := change(string(text))
		require.NotEqual(t, string(text), changed, key)
		if key == "work" { // so that the plan is compared with the pipeline
			changed = regexp.MustCompile(`"work": "sha256:[0-9a-f]*"`).ReplaceAllString(changed, `"work": "sha256:0"`)
		}
		require.NoError(t, os.WriteFile(at("plan-"+key+".json"), []byte(changed), 0o644))
	}
	named := at("named.yaml")
	for _, args := range [][]string{
		{"plan", named}, {"plan", named, "--explain"}, {"plan", named, "--compare"}, {"plan", named, "--output", "json"},
		{"check", named}, {"check", named, "--output", "json"}, {"dot", named}, {"dot", named, "--format", "mermaid"}, {"fmt", named},
		{"run", named, "--backend", "cpu"}, {"run", named, "--backend", "cpu", "--verbose", "--verify", "--memory-stats"}, {"run", named, "--backend", "cpu", "--output", "json"},
		{"bench", named, "--backend", "cpu", "--iterations", "1"}, {"trace", named, "--backend", "cpu", "-o", at(hostile + ".trace")},
		{"run", at("wrong-node.yaml")}, {"run", at("wrong-name.yaml")}, {"check", at("wrong-key.yaml")}, {"plan", at("wrong-kernel.yaml")}, {"check", at("wrong-value.yaml")},
		{"check", at("wrong-after.yaml"), "--output", "json"}, {"check", at("raw.yaml")}, {"run", at("array.yaml"), "--backend", "cpu"},
		{"plan", named, "--plan", at("plan-machine.json")}, {"plan", named, "--plan", at("plan-strategy.json")}, {"plan", named, "--plan", at("plan-note.json")},
		{"plan", named, "--plan", at("plan-node.json")}, {"run", named, "--backend", "cpu", "--plan", at("plan-work.json")},
		{"plan", named, "--plan", at("key.json")},
		{"plan", named, "--profile", at("profile.json")}, {"plan", named, "--machine", at("key.json")},
		{"run", at(hostile)}, {"run", named, "-p", hostile + "=1"}, {"run", named, "-p", "n=" + hostile}, {"plan", named, "--strategy", hostile},
		{hostile, hostile}, {"--" + hostile}, {"kernels", hostile}, {"plan", named, "--save-plan", filepath.Join(folder, "none", hostile)},
	} {
		t.Run(strings.ReplaceAll(strings.ReplaceAll(strings.Join(args, " "), folder, ""), hostile, "hostile"), func(t *testing.T) {
			c := newConsole(t, 200)
			c.run(t, nil, nil, args...)
			written := c.written.String()
			require.Contains(t, written, "evil", "what is hostile is shown")
			requireHarmless(t, written)
		})
	}
}
