// GPT-2's forward and backward pass with llm.c's own kernels on the CPU device, against llm.c's program in C.

// Command training makes a pipeline of the kernels of llm.c's train_gpt2_fp32.cu and dev/cuda, which are left as they are, and of
// cuBLAS calls; runs it with random
// weights on the CPU device; runs train_gpt2.c, compiled by a C compiler, with the same weights; and compares the losses and all gradients.
// tests/kernels/gpt2 runs it.
package main

import (
	_ "embed"
	"encoding/binary"
	"flag"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
)

//go:embed testdata/reference.c
var reference []byte

func main() {
	m := model{}
	flag.IntVar(&m.layers, "layers", 2, "layers")
	flag.IntVar(&m.tokens, "tokens", 64, "tokens of a sequence, a multiple of 4")
	flag.IntVar(&m.channels, "channels", 128, "channels, a multiple of 128")
	flag.IntVar(&m.heads, "heads", 4, "heads")
	flag.IntVar(&m.words, "words", 250, "words")
	dagrun := flag.String("dagrun", "dagrun", "the command")
	keep := flag.String("keep", "", "write the pipeline and its files to this `folder`")
	sanitize := flag.String("sanitize", "full", "what --sanitize checks")
	most := flag.Float64("most", 5e-6, "the largest difference, relative to the largest element of a tensor")
	flag.Parse()
	m.batch, m.padded = 128/m.tokens, (m.words+127)/128*128
	if flag.NArg() != 1 || m.batch*m.tokens != 128 || m.channels%128 != 0 || m.channels%m.heads != 0 {
		fmt.Fprintln(os.Stderr, "usage: tests/kernels/gpt2 [FLAG...] LLM.C (128 must be a multiple of the tokens)")
		os.Exit(2)
	}
	if err := compare(&m, flag.Arg(0), *dagrun, *sanitize, *keep, *most); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func compare(m *model, source, dagrun, sanitize, folder string, most float64) error {
	source, err := filepath.Abs(source)
	if err != nil {
		return err
	}
	if folder == "" {
		if folder, err = os.MkdirTemp("", "gpt2-*"); err != nil {
			return err
		}
		defer os.RemoveAll(folder)
	}
	in := func(name string) string { return filepath.Join(folder, name) }
	for name, text := range map[string][]byte{"reference.c": reference, "gpt2.yaml": []byte(m.pipeline(source))} {
		if err := os.WriteFile(in(name), text, 0o644); err != nil {
			return err
		}
	}
	run := func(program string, args ...string) error {
		command := exec.Command(program, args...)
		command.Dir, command.Stdout, command.Stderr = folder, os.Stdout, os.Stderr
		if err := command.Run(); err != nil {
			return fmt.Errorf("%s: %w", program, err)
		}
		return nil
	}
	// Every product and every sum is rounded once, as GPUs' f32 is in the order that the program says.
	if err := run("gcc", "-O2", "-w", "-ffp-contract=off", "-I", source, "-o", "reference", "reference.c", "-lm"); err != nil {
		return err
	}
	sizes := []string{fmt.Sprint(m.layers), fmt.Sprint(m.batch), fmt.Sprint(m.tokens), fmt.Sprint(m.channels), fmt.Sprint(m.heads), fmt.Sprint(m.words),
		fmt.Sprint(m.padded)}
	if err := run(in("reference"), sizes...); err != nil {
		return err
	}
	if err := run(dagrun, "gpt2.yaml", "--backend", "cpu", "--sanitize", sanitize); err != nil {
		return err
	}
	worst := 0.0
	for _, what := range []struct {
		name    string
		tensors []tensor
	}{{"losses", []tensor{{"losses", 1, m.rows()}}}, {"gradients", m.parameters()}} {
		got, err := floats(in(what.name + ".bin"))
		if err != nil {
			return err
		}
		want, err := floats(in(what.name + ".want.bin"))
		if err != nil {
			return err
		}
		if len(got) != len(want) {
			return fmt.Errorf("%d numbers of %s, and %d in C", len(got), what.name, len(want))
		}
		at := 0
		for _, t := range what.tensors {
			off := difference(got[at:at+t.size()], want[at:at+t.size()])
			fmt.Printf("%-12s %8d elements, largest difference %.2g of the largest\n", t.name, t.size(), off)
			worst, at = max(worst, off), at+t.size()
		}
	}
	fmt.Printf("largest difference %.2g\n", worst)
	if !(worst <= most) {
		return fmt.Errorf("they differ by more than %g", most)
	}
	return nil
}

// difference is the largest one between two tensors, relative to the largest element.
func difference(got, want []float32) float64 {
	off, largest := 0.0, 0.0
	for i := range want {
		d := math.Abs(float64(got[i]) - float64(want[i]))
		if d != d {
			return math.Inf(1)
		}
		off, largest = max(off, d), max(largest, math.Abs(float64(want[i])))
	}
	if off == 0 {
		return 0
	}
	return off / largest
}

func floats(path string) ([]float32, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	list := make([]float32, len(raw)/4)
	for i := range list {
		list[i] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
	}
	return list, nil
}
