//go:build linux

// Hostile files: damaged pipelines, PTX, arrays, plans, descriptions of machines and files of the cache; and pipelines made to write, read or show what
// lies outside of their folder.

package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
)

func (t *trial) hostile() {
	switch t.IntN(8) {
	case 0, 1:
		t.damagedPipeline()
	case 2:
		t.damagedModule()
	case 3:
		t.damagedArray()
	case 4:
		t.damagedJSON()
	case 5:
		t.damagedCache()
	default:
		t.misleading()
	}
}

// tokens are what text is damaged with.
var tokens = []string{
	"-1", "0", "99999999999999999999", "1e308", "-9223372036854775808", "0.5", "nan", "1/0", "{}", "[]", "{", "]", ": ", "- ", "&a ", "*a", "<<: ", "!!str ",
	"|\n", "\t", "\x00", "\u00a0", "日本語", "\u202e",
	"\n", "\r", "#", "\"", "'", "$i", "$(", "%", "len(", "rand(1, i, 5)", "(0..", " of ", "..", "0..0", "true", "~", "2147483648", "foreach: {i: 4000000}, ",
	"repeat: {times: 3}", strings.Repeat("(", 200), strings.Repeat("[", 2000),
	strings.Repeat("x", 300), "../", "/dev/zero", "/proc/self/mem", "ranks", "device: 1023, ", "stream: 65535, ", "peer: true, ", "cost: {us: 1e300}, ",
}

// mangle damages text.
func (t *trial) mangle(text []byte) []byte {
	text = slices.Clone(text)
	for range 1 + t.IntN(5) {
		if len(text) == 0 {
			return text
		}
		at := t.IntN(len(text))
		end := min(len(text), at+1+t.IntN(40))
		lines := bytes.SplitAfter(text, []byte("\n"))
		one, other := t.IntN(len(lines)), t.IntN(len(lines))
		switch t.IntN(7) {
		case 0:
			text = slices.Delete(text, at, end)
		case 1:
			text = slices.Insert(text, at, []byte(tokens[t.IntN(len(tokens))])...)
		case 2:
			text = slices.Replace(text, at, min(len(text), at+1+t.IntN(4)), []byte(tokens[t.IntN(len(tokens))])...)
		case 3:
			text = slices.Insert(text, end, slices.Clone(text[at:end])...)
		case 4:
			lines[one], lines[other] = lines[other], lines[one]
			text = bytes.Join(lines, nil)
		case 5:
			text = bytes.Join(slices.Insert(slices.Clone(lines), one, lines[other]), nil)
		case 6:
			text[at] = byte(t.IntN(256))
		}
	}
	return text
}

// large is a number for which it may be right to take much memory or time.
var large = regexp.MustCompile(`[0-9]{5}|[eE][0-9]|\*\*|of [0-9]{4}|1024`)

// damagedPipeline is a pipeline with damage, a random one or one of those that come with dagrun.
func (t *trial) damagedPipeline() {
	p := t.pipeline(false, 1+t.IntN(12))
	t.place(p)
	text := []byte(p.yaml())
	if t.chance(2) {
		samples, err := filepath.Glob(filepath.Join("pipelines", "*.yaml"))
		t.must(err)
		text, err = os.ReadFile(samples[t.IntN(len(samples))])
		t.must(err)
	}
	text = t.mangle(text)
	t.write("case.yaml", text)
	args := []string{pick(t, "check", "plan", "dot", "fmt", "check", "run"), "case.yaml"}
	if args[0] == "run" {
		if large.Match(text) {
			args[0] = "check"
		} else {
			args = append(args, "--backend", "cpu", "--timeout", "20s", "--kernel-steps", "1000000")
		}
	}
	o := t.run(args...)
	t.count(fmt.Sprint(args[0], " ", o.status))
}

// damagedModule is a pipeline whose module is damaged.
func (t *trial) damagedModule() {
	d := &drawing{trial: t, p: &pipeline{element: elements[0], rows: 24, module: true}}
	d.add("x", false, "3", nil)
	d.add("y", false, "4", nil)
	for range 4 {
		d.p.nodes = append(d.p.nodes, d.kernel())
	}
	t.place(d.p)
	t.write("own.ptx", t.mangle([]byte(ownPTX)))
	o := t.run("run", "case.yaml", "--backend", "cpu", "--learn", "off", "--kernel-steps", "1000000", "--sanitize", pick(t, "full", "fast", "off"))
	t.count(fmt.Sprint("module ", o.status))
	if t.chance(3) {
		t.run("kernels", "own.ptx")
	}
}

// damagedArray is a pipeline that reads a .npy file which is damaged or lies about its size.
func (t *trial) damagedArray() {
	or := func(right string, wrong ...string) string { // right, or else wrong
		if t.chance(4) {
			return pick(t, wrong...)
		}
		return right
	}
	header := fmt.Sprintf("{'descr': '%s', 'fortran_order': %s, 'shape': (%s), }", or("<i4", ">i4", "<i8", "|u1", "<f4", "O"), or("False", "True", "x"),
		or("8,", "8", "4, 2", "-8,", "99999999999,", "2147483648, 4294967296", "", strings.Repeat("9", 5000)+",", strings.Repeat("8, ", 3000)))
	if t.chance(4) {
		header = string(t.mangle([]byte(header)))
	}
	header += strings.Repeat(" ", (64-(len(header)+11)%64)%64) + "\n"
	file := append([]byte("\x93NUMPY\x01\x00"), binary.LittleEndian.AppendUint16(nil,
		uint16(pick(t, len(header), len(header), len(header), len(header), 0, 65535)))...)
	file = append(file, header...)
	file = append(file, make([]byte, pick(t, 32, 32, 32, 32, 31, 0, 4096))...)
	if t.chance(5) {
		file = t.damage(file)
	}
	t.write("x.npy", file)
	key := pick(t, "init", "expect")
	t.write("case.yaml", fmt.Appendf(nil, "version: 1\nname: case\nbuffers:\n  x: {place: host, dtype: i32, shape: [8], %s: {file: x.npy}}\n  d: {place: device, dtype: i32, shape: [8]}\nnodes:\n  - {name: up, memcpy: {from: x, to: d}}\n", key))
	o := t.run("case.yaml", "--backend", "cpu", "--learn", "off")
	t.count(fmt.Sprint("array ", o.status))
}

// damagedJSON is a plan or a description of a machine with damage to its text.
func (t *trial) damagedJSON() {
	p := t.pipeline(false, 1+t.IntN(8))
	t.place(p)
	if t.chance(2) {
		t.run("plan", "case.yaml", "--save-plan", "plan.json")
		t.write("plan.json", t.mangle(t.read("plan.json")))
		o := t.run("case.yaml", "--backend", "cpu", "--plan", "plan.json", "--learn", "off")
		if o.status == 0 {
			t.compare(p, 1)
		}
		t.count(fmt.Sprint("plan ", o.status))
		return
	}
	page, err := os.ReadFile(filepath.Join("docs", "machines.md"))
	t.must(err)
	_, machine, _ := bytes.Cut(page, []byte("```json\n"))
	machine, _, _ = bytes.Cut(machine, []byte("```"))
	t.write("machine.json", t.mangle(machine))
	o := t.run("plan", "case.yaml", "--machine", "machine.json")
	t.count(fmt.Sprint("machine ", o.status))
}

// damagedCache runs a pipeline several times while the files of its cache are damaged: it runs all the same, and right.
func (t *trial) damagedCache() {
	p := t.pipeline(false, 1+t.IntN(8))
	t.place(p)
	t.must(os.Mkdir(filepath.Join(t.folder, "cache"), 0o700)) // of some pipelines nothing is learned
	for range 3 {
		o := t.run("case.yaml", "--backend", "cpu", "--iterations", "2")
		if o.status != 0 {
			t.wrong("exit status %d:\n%s", o.status, shortened(o.text()))
			return
		}
		t.compare(p, 2)
		t.must(filepath.WalkDir(filepath.Join(t.folder, "cache"), func(path string, entry os.DirEntry, err error) error {
			if err != nil || !entry.Type().IsRegular() || t.chance(3) {
				return err
			}
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			if t.chance(2) {
				content = t.mangle(content)
			} else {
				content = t.damage(content)
			}
			return os.WriteFile(path, content, 0o600)
		}))
	}
	t.count("cache")
}

// secret is in files outside of the folder. No message may quote it.
const secret = "swordfish"

// misleading is a pipeline that reaches outside of its folder, by .., a full path, a link, a hard link or a FIFO.
func (t *trial) misleading() {
	outside := filepath.Join(filepath.Dir(t.folder), "outside")
	t.must(os.MkdirAll(outside, 0o700))
	content := fmt.Sprintf("%s: [%s, {\n#include %s\n#error %s\n", secret, secret, secret, secret)
	written := []string{"kept.bin", "kept.npy"}
	for _, name := range append(written, "in.bin", "in.npy", "part.yaml", "k.cu", "k.ptx", "k.h", "plan.json") {
		t.must(os.WriteFile(filepath.Join(outside, name), []byte(content), 0o600))
	}
	// reach is the path of a file outside, in one of several ways.
	links, shown := 0, false
	reach := func(name string) string {
		links++
		link := fmt.Sprintf("l%d%s", links, filepath.Ext(name))
		switch t.IntN(5) {
		case 0:
			return "../outside/" + name
		case 1:
			return filepath.Join(outside, name)
		case 2:
			t.must(os.Symlink(filepath.Join(outside, name), filepath.Join(t.folder, link)))
			return link
		case 3:
			t.must(os.Symlink("../outside", filepath.Join(t.folder, "f"+link)))
			return "f" + link + "/" + name
		}
		t.must(os.Link(filepath.Join(outside, name), filepath.Join(t.folder, link)))
		shown = true // nobody can tell such a file from others of the folder
		return link
	}
	fifo := func() string {
		t.must(syscall.Mkfifo(filepath.Join(t.folder, "pipe.bin"), 0o600))
		return "pipe.bin"
	}
	module, init, save, extra := "", "zeros", "out.bin", ""
	var what string
	switch kind := t.IntN(7); kind {
	case 0:
		what, save = "save", reach(written[t.IntN(2)])
	case 1:
		init = fmt.Sprintf("{file: %s}", reach(pick(t, "in.bin", "in.npy")))
		what = "init"
	case 2:
		what, module = "module", reach(pick(t, "k.cu", "k.ptx"))
	case 3:
		t.write("own.cu", fmt.Appendf(nil, "#include %q\n__global__ void k(int n, int* x) {}\n", reach("k.h")))
		what, module = "include", "own.cu"
	case 4:
		what, extra = "use", fmt.Sprintf("  - {name: u, use: %s}\n", reach("part.yaml"))
	case 5:
		what, save = "save to a FIFO", fifo()
	case 6:
		what, init = "init from a FIFO", fmt.Sprintf("{file: %s}", fifo())
	}
	text := "version: 1\nname: case\n"
	if module != "" {
		text += fmt.Sprintf("modules:\n  own: {source: %s, compiler: clang}\n", module)
		extra += "  - {name: k, kernel: own.k, args: [2, d], grid: 1, block: 32}\n"
	}
	text += fmt.Sprintf("buffers:\n  x: {place: host, dtype: i32, shape: [2], init: %s, save: %s}\n  d: {place: device, dtype: i32, shape: [2], init: 3}\nnodes:\n%s  - {name: down, memcpy: {from: d, to: x}}\n", init, save, extra)
	t.write("case.yaml", []byte(text))
	confined := t.chance(2)
	args := []string{pick(t, "run", "run", "check", "plan", "dot"), "case.yaml"}
	if args[0] == "run" {
		args = append(args, "--backend", "cpu", "--learn", "off", "--timeout", "5s")
	}
	if confined {
		args = append(args, "--confined")
	}
	o := t.run(args...)
	t.count(fmt.Sprintf("%s %d", what, o.status))
	if strings.Contains(o.text(), secret) && !shown {
		t.wrong("it quotes what lies outside:\n%s", shortened(o.text()))
	}
	for _, name := range written {
		now, err := os.ReadFile(filepath.Join(outside, name))
		t.must(err)
		if string(now) != content && confined {
			t.wrong("it writes to %s, outside of the folder", name)
		}
	}
}
