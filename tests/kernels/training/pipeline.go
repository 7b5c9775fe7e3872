// The pipeline: llm.c's gpt2_forward and gpt2_backward, launch by launch. Two kernels are those of dev/cuda, because those of train_gpt2_fp32.cu
// race: fused_classifier_kernel3 overwrites the logit that its first thread reads, and warps that are late in
// softmax_autoregressive_backward_kernel read sums of the next row.

package main

import (
	"fmt"
	"path/filepath"
	"strings"
)

// model has the sizes of a GPT-2.
type model struct{ layers, batch, tokens, channels, heads, words, padded int }

func (m *model) rows() int { return m.batch * m.tokens }

// tensor is a matrix of parameters, or several below each other.
type tensor struct {
	name          string
	rows, columns int
}

func (t tensor) size() int { return t.rows * t.columns }

// layered are the tensors that each layer has its part of.
func (m *model) layered() []tensor {
	c := m.channels
	return []tensor{{"ln1w", 1, c}, {"ln1b", 1, c}, {"qkvw", 3 * c, c}, {"qkvb", 1, 3 * c}, {"attprojw", c, c}, {"attprojb", 1, c}, {"ln2w", 1, c}, {"ln2b", 1, c},
		{"fcw", 4 * c, c}, {"fcb", 1, 4 * c}, {"fcprojw", c, 4 * c}, {"fcprojb", 1, c}}
}

// parameters are all tensors in llm.c's order.
func (m *model) parameters() []tensor {
	list := []tensor{{"wte", m.padded, m.channels}, {"wpe", m.tokens, m.channels}}
	for _, t := range m.layered() {
		list = append(list, tensor{t.name, m.layers * t.rows, t.columns})
	}
	return append(list, tensor{"lnfw", 1, m.channels}, tensor{"lnfb", 1, m.channels})
}

// writer writes a pipeline.
type writer struct {
	*model
	buffers, nodes strings.Builder
	n              int
}

func (w *writer) buffer(name string, rows, columns int) {
	fmt.Fprintf(&w.buffers, "  %s: {place: device, dtype: f32, shape: [%d, %d]}\n", name, rows, columns)
}

// node adds a node, whose name starts with what it does.
func (w *writer) node(what, format string, args ...any) {
	w.n++
	fmt.Fprintf(&w.nodes, "  - {name: %s_%d, %s}\n", what, w.n, fmt.Sprintf(format, args...))
}

func (w *writer) clear(buffers ...string) {
	for _, b := range buffers {
		w.node("clear", "memset: {to: %s, value: 0}", b)
	}
}

// kernel launches one of llm.c's.
func (w *writer) kernel(name string, grid string, block int, args string, more ...string) {
	w.node(name, "kernel: gpt2.%s, args: {%s}, grid: [%s], block: [%d]%s", name, args, grid, block, strings.Join(more, ""))
}

// pipeline writes it all.
func (m *model) pipeline(source string) string {
	w := &writer{model: m}
	total, at := 0, 0
	for _, t := range m.parameters() {
		total += t.size()
	}
	for _, t := range m.parameters() {
		w.parameter(t, &at)
	}
	for _, b := range []string{"lnf", "dbtc", "encoded", "dresidual"} {
		w.buffer(b, m.rows(), m.channels)
	}
	for _, b := range []string{"lnf_mean", "lnf_rstd", "losses"} {
		fmt.Fprintf(&w.buffers, "  %s: {place: device, dtype: f32, shape: [%d]}\n", b, m.rows())
	}
	w.buffer("qkv", m.rows(), 3*m.channels)
	w.buffer("dqkv", m.rows(), 3*m.channels)
	w.buffer("dbt4c", m.rows(), 4*m.channels)
	w.buffer("logits", m.rows(), m.padded)
	w.buffer("dlogits", m.rows(), m.padded)
	heads, size := m.batch*m.heads*m.tokens, m.channels/m.heads
	for _, b := range []string{"preatt", "datt", "dpreatt"} {
		w.buffer(b, heads, m.tokens)
	}
	for _, b := range []string{"vaccum", "dq", "dk", "dv"} {
		w.buffer(b, heads, size)
	}
	for l := range m.layers {
		for _, b := range []string{"ln1", "atty", "attproj", "residual2", "ln2", "fcproj", "residual3"} {
			w.buffer(fmt.Sprintf("%s%d", b, l), m.rows(), m.channels)
		}
		for _, b := range []string{"ln1_mean", "ln1_rstd", "ln2_mean", "ln2_rstd"} {
			fmt.Fprintf(&w.buffers, "  %s%d: {place: device, dtype: f32, shape: [%d]}\n", b, l, m.rows())
		}
		for _, b := range []string{"fch", "fch_gelu"} {
			w.buffer(fmt.Sprintf("%s%d", b, l), m.rows(), 4*m.channels)
		}
		w.buffer(fmt.Sprintf("att%d", l), heads, m.tokens)
		for _, b := range []string{"q", "k", "v"} {
			w.buffer(fmt.Sprintf("%s%d", b, l), heads, size)
		}
	}
	w.node("up", "memcpy: {from: words, to: inputs}")
	w.node("up", "memcpy: {from: answers, to: targets}")
	w.forward()
	w.backward()
	at = 0
	for _, t := range m.parameters() {
		w.down(t, &at)
	}
	w.node("down", "memcpy: {from: losses, to: h_losses}")
	return fmt.Sprintf(`version: 1
name: gpt2
modules:
  gpt2: {source: %[1]q}
  attention: {source: %[6]q}
  classifier: {source: %[7]q}
buffers:
  parameters: {place: host, dtype: f32, shape: [%[2]d], init: {file: parameters.bin}}
  gradients: {place: host, dtype: f32, shape: [%[2]d], save: gradients.bin}
  words: {place: host, dtype: i32, shape: [%[3]d], init: {file: words.bin}}
  answers: {place: host, dtype: i32, shape: [%[3]d], init: {file: targets.bin}}
  h_losses: {place: host, dtype: f32, shape: [%[3]d], save: losses.bin}
  inputs: {place: device, dtype: i32, shape: [%[3]d]}
  targets: {place: device, dtype: i32, shape: [%[3]d]}
%[4]snodes:
%[5]s`, filepath.Join(source, "train_gpt2_fp32.cu"), total, m.rows(), w.buffers.String(), w.nodes.String(), filepath.Join(source, "dev/cuda/attention_backward.cu"), filepath.Join(source, "dev/cuda/classifier_fused.cu"))
}

// parts calls visit for a tensor, or for each layer's part of it.
func (m *model) parts(t tensor, visit func(name string, rows, columns int)) {
	for _, own := range m.layered() {
		if own.name == t.name {
			for l := range m.layers {
				visit(fmt.Sprintf("%s%d", t.name, l), own.rows, own.columns)
			}
			return
		}
	}
	visit(t.name, t.rows, t.columns)
}

func (w *writer) parameter(t tensor, at *int) {
	w.parts(t, func(name string, rows, columns int) {
		w.buffer(name, rows, columns)
		w.buffer("d_"+name, rows, columns)
		w.node("up", "memcpy: {from: parameters(%d..%d), to: %s}", *at, *at+rows*columns, name)
		w.clear("d_" + name)
		*at += rows * columns
	})
}

func (w *writer) down(t tensor, at *int) {
	w.parts(t, func(name string, rows, columns int) {
		w.node("down", "memcpy: {from: d_%s, to: gradients(%d..%d)}", name, *at, *at+rows*columns)
		*at += rows * columns
	})
}

func ceil(a, b int) string { return fmt.Sprint((a + b - 1) / b) }

// matmul is llm.c's matmul_forward.
func (w *writer) matmul(out, in, weight, bias string, columns, outputs int) {
	w.node("matmul", "kernel: gpt2.matmul_forward_kernel4, args: {out: {out: %s}, inp: %s, weight: %s, bias: %s, C: %d, OC: %d}, grid: [%s, %s], block: [16, 16]",
		out, in, weight, bias, columns, outputs, ceil(w.rows(), 128), ceil(outputs, 128))
}

func (w *writer) layernorm(out, mean, rstd, in, weight, bias string) {
	w.kernel("layernorm_forward_kernel3", ceil(w.rows()*32, 512), 512,
		fmt.Sprintf("out: {out: %s}, mean: {out: %s}, rstd: {out: %s}, inp: %s, weight: %s, bias: %s, N: %d, C: %d",
			out, mean, rstd, in, weight, bias, w.rows(), w.channels))
}

func (w *writer) batched(flags, a, b, c string) {
	w.node("product", "call: cublas.gemm_batched, args: {batches: %d%s, a: %s, b: %s, c: %s}", w.batch*w.heads, flags, a, b, c)
}

func (w *writer) residual(out, first, second string) {
	n := w.rows() * w.channels
	w.kernel("residual_forward_kernel", ceil(n, 256), 256, fmt.Sprintf("out: {out: %s}, inp1: {in: %s}, inp2: {in: %s}, N: %d", out, first, second, n))
}

// inputOf is where a layer starts from.
func inputOf(l int) string {
	if l == 0 {
		return "encoded"
	}
	return fmt.Sprintf("residual3%d", l-1)
}

func (w *writer) forward() {
	c, n := w.channels, w.rows()*w.channels
	split := fmt.Sprintf("B: %d, N: %d, NH: %d, d: %d", w.batch, w.tokens, w.heads, c/w.heads)
	w.kernel("encoder_forward_kernel3", ceil(n/4, 512), 512,
		fmt.Sprintf("out: {out: encoded}, inp: inputs, wte: wte, wpe: wpe, B: %d, T: %d, C: %d", w.batch, w.tokens, c))
	for l := range w.layers {
		own := func(name string) string { return fmt.Sprintf("%s%d", name, l) }
		w.layernorm(own("ln1"), own("ln1_mean"), own("ln1_rstd"), inputOf(l), own("ln1w"), own("ln1b"))
		w.matmul("qkv", own("ln1"), own("qkvw"), own("qkvb"), c, 3*c)
		w.kernel("permute_kernel", ceil(n, 256), 256, fmt.Sprintf("q: {out: %s}, k: {out: %s}, v: {out: %s}, inp: qkv, %s", own("q"), own("k"), own("v"), split))
		w.batched(", tb: true", own("q"), own("k"), "preatt")
		w.clear(own("att")) // the kernel writes one triangle
		w.kernel("softmax_forward_kernel5", ceil(w.batch*w.heads*w.tokens*32, 256), 256,
			fmt.Sprintf("out: %s, inv_temperature: 1/sqrt(%d), inp: preatt, N: %d, T: %d", own("att"), c/w.heads, w.batch*w.heads, w.tokens))
		w.batched("", own("att"), own("v"), "vaccum")
		w.kernel("unpermute_kernel", ceil(n, 256), 256, fmt.Sprintf("inp: {in: vaccum}, out: {out: %s}, %s", own("atty"), split))
		w.matmul(own("attproj"), own("atty"), own("attprojw"), own("attprojb"), c, c)
		w.residual(own("residual2"), inputOf(l), own("attproj"))
		w.layernorm(own("ln2"), own("ln2_mean"), own("ln2_rstd"), own("residual2"), own("ln2w"), own("ln2b"))
		w.matmul(own("fch"), own("ln2"), own("fcw"), own("fcb"), c, 4*c)
		w.kernel("gelu_forward_kernel", ceil(4*n, 128), 128, fmt.Sprintf("out: {out: %s}, inp: %s, N: %d", own("fch_gelu"), own("fch"), 4*n))
		w.matmul(own("fcproj"), own("fch_gelu"), own("fcprojw"), own("fcprojb"), 4*c, c)
		w.residual(own("residual3"), own("residual2"), own("fcproj"))
	}
	w.layernorm("lnf", "lnf_mean", "lnf_rstd", inputOf(w.layers), "lnfw", "lnfb")
	w.matmul("logits", "lnf", "wte", "null", c, w.padded)
	w.clear("dlogits") // the kernel leaves padded words
	w.node("classifier", "kernel: classifier.fused_classifier_kernel3, args: {dlogits: dlogits, losses: {out: losses}, probs: null, logits: logits, dlosses: null, targets: targets, B: %d, T: %d, V: %d, P: %d}, grid: [%d], block: [1024]",
		w.batch, w.tokens, w.words, w.padded, w.rows())
}

// matmulBackward is llm.c's, without a bias where it is "".
func (w *writer) matmulBackward(dinp, weight, bias, dout, inp string, outputs int) {
	w.node("dinp", "call: cublas.gemm, args: {a: %s, b: %s, c: %s}", dout, weight, dinp)
	w.node("dweight", "call: cublas.gemm, args: {ta: true, a: %s, b: %s, beta: 1, c: d_%s}", dout, inp, weight)
	if bias != "" {
		w.kernel("matmul_backward_bias_kernel4", fmt.Sprint(outputs/32), 1024,
			fmt.Sprintf("dbias: d_%s, dout: %s, B: %d, T: %d, OC: %d", bias, dout, w.batch, w.tokens, outputs), ", shared: 4096")
	}
}

func (w *writer) layernormBackward(dinp, weight, bias, dout, inp, mean, rstd string) {
	w.kernel("layernorm_backward_kernel2", ceil(32*w.rows(), 512), 512,
		fmt.Sprintf("dinp: %s, dweight: d_%s, dbias: d_%s, dout: %s, inp: %s, weight: %s, mean: %s, rstd: %s, B: %d, T: %d, C: %d",
			dinp, weight, bias, dout, inp, weight, mean, rstd, w.batch, w.tokens, w.channels), fmt.Sprintf(", shared: %d", 8*w.channels))
}

func (w *writer) backward() {
	c, n := w.channels, w.rows()*w.channels
	split := fmt.Sprintf("B: %d, N: %d, NH: %d, d: %d", w.batch, w.tokens, w.heads, c/w.heads)
	w.matmulBackward("dbtc", "wte", "", "dlogits", "lnf", w.padded)
	w.clear("dresidual")
	w.layernormBackward("dresidual", "lnfw", "lnfb", "dbtc", inputOf(w.layers), "lnf_mean", "lnf_rstd")
	for l := w.layers - 1; l >= 0; l-- {
		own := func(name string) string { return fmt.Sprintf("%s%d", name, l) }
		w.matmulBackward("dbt4c", own("fcprojw"), own("fcprojb"), "dresidual", own("fch_gelu"), c)
		w.kernel("gelu_backward_kernel", ceil(4*n, 128), 128, fmt.Sprintf("dinp: dbt4c, inp: %s, dout: dbt4c, N: %d", own("fch"), 4*n))
		w.matmulBackward("dbtc", own("fcw"), own("fcb"), "dbt4c", own("ln2"), 4*c)
		w.layernormBackward("dresidual", own("ln2w"), own("ln2b"), "dbtc", own("residual2"), own("ln2_mean"), own("ln2_rstd"))
		w.matmulBackward("dbtc", own("attprojw"), own("attprojb"), "dresidual", own("atty"), c)
		w.kernel("unpermute_kernel_backward", ceil(n, 256), 256, fmt.Sprintf("dinp: {out: vaccum}, dout: dbtc, %s", split))
		w.batched(", tb: true", "vaccum", own("v"), "datt")
		w.batched(", ta: true", own("att"), "vaccum", "dv")
		w.clear("dpreatt") // the kernel writes one triangle
		w.node("softmax_backward", "kernel: attention.softmax_autoregressive_backward_kernel3, args: {dpreatt: dpreatt, datt: datt, att: %s, B: %d, T: %d, C: %d, NH: %d}, grid: [%s, %d], block: [256]",
			own("att"), w.batch, w.tokens, c, w.heads, ceil(32*w.tokens, 256), w.batch*w.heads)
		w.batched("", "dpreatt", own("k"), "dq")
		w.batched(", ta: true", "dpreatt", own("q"), "dk")
		w.kernel("permute_kernel_backward", ceil(n, 256), 256, fmt.Sprintf("dinp: {out: dqkv}, dq: dq, dk: dk, dv: dv, %s", split))
		w.matmulBackward("dbtc", own("qkvw"), own("qkvb"), "dqkv", own("ln1"), 3*c)
		w.layernormBackward("dresidual", own("ln1w"), own("ln1b"), "dbtc", inputOf(l), own("ln1_mean"), own("ln1_rstd"))
	}
	w.kernel("encoder_backward_kernel", ceil(n, 256), 256,
		fmt.Sprintf("dwte: d_wte, dwpe: d_wpe, dout: dresidual, inp: inputs, B: %d, T: %d, C: %d", w.batch, w.tokens, c))
}
