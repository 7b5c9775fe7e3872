// llm.c's own model in C with random weights: reference LAYERS BATCH TOKENS CHANNELS HEADS WORDS PADDED writes what the pipeline starts from,
// parameters.bin, words.bin and targets.bin, and what it must compute, losses.want.bin and gradients.want.bin.
#define TESTING
#include "train_gpt2.c"

static void keep(const char *name, const void *data, size_t bytes) {
  FILE *f = fopen(name, "wb");
  if (!f || fwrite(data, 1, bytes, f) != bytes || fclose(f)) exit(1);
}

static unsigned state = 1;
static float uniform(void) {
  state = state * 1664525u + 1013904223u;
  return (state >> 8) / 16777216.0f - 0.5f;
}

int main(int argc, char **argv) {
  if (argc != 8) return 2;
  GPT2 m = {0};
  int layers = atoi(argv[1]), batch = atoi(argv[2]), tokens = atoi(argv[3]), words = atoi(argv[6]);
  m.config = (GPT2Config){.max_seq_len = tokens, .vocab_size = words, .padded_vocab_size = atoi(argv[7]), .num_layers = layers, .num_heads = atoi(argv[5]), .channels = atoi(argv[4])};
  fill_in_parameter_sizes(m.param_sizes, m.config);
  for (int i = 0; i < NUM_PARAMETER_TENSORS; i++) m.num_parameters += m.param_sizes[i];
  m.params_memory = malloc_and_point_parameters(&m.params, m.param_sizes);
  for (size_t i = 0; i < m.num_parameters; i++) m.params_memory[i] = 0.2f * uniform();
  for (int i = 0; i < layers * m.config.channels; i++) m.params.ln1w[i] += 1, m.params.ln2w[i] += 1;
  for (int i = 0; i < m.config.channels; i++) m.params.lnfw[i] += 1;
  for (size_t i = (size_t)words * m.config.channels; i < m.param_sizes[0]; i++) m.params.wte[i] = 0; // as in checkpoints
  int n = batch * tokens, *in = malloc(n * sizeof(int)), *targets = malloc(n * sizeof(int));
  for (int i = 0; i < n; i++) in[i] = (int)((uniform() + 0.5f) * words), targets[i] = (int)((uniform() + 0.5f) * words);
  gpt2_forward(&m, in, targets, batch, tokens);
  gpt2_zero_grad(&m);
  gpt2_backward(&m);
  keep("parameters.bin", m.params_memory, m.num_parameters * sizeof(float));
  keep("words.bin", in, n * sizeof(int));
  keep("targets.bin", targets, n * sizeof(int));
  keep("losses.want.bin", m.acts.losses, n * sizeof(float));
  keep("gradients.want.bin", m.grads_memory, m.num_parameters * sizeof(float));
  printf("mean loss in C %g\n", m.mean_loss);
  return 0;
}
