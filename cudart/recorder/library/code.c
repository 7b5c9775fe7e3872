// What the machine code of a module can do that patches do not see: tensor copies by descriptor, textures, surfaces, multicast memory, launches from the
// device. A function with such an instruction is opaque, whatever was measured. Instructions have 16 bytes since compute capability 7.0; the lowest
// twelve bits tell which they are.
#include "code.h"

#include <elf.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "file.h"

#define BUCKETS 65536

struct known {
    uint64_t name; // its hash
    unsigned flags;
    struct known *next;
};
static struct known *buckets[BUCKETS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void remember(const char *name, unsigned flags) {
    uint64_t h = file_hash(name, strlen(name));
    struct known *k = buckets[h % BUCKETS];
    while (k && k->name != h) k = k->next;
    if (!k && (k = calloc(1, sizeof *k))) {
        k->name = h;
        k->next = buckets[h % BUCKETS];
        buckets[h % BUCKETS] = k;
    }
    if (k) k->flags |= flags;
}

unsigned code_flags(const char *name) {
    uint64_t h = file_hash(name, strlen(name));
    unsigned flags = 0;
    pthread_mutex_lock(&lock);
    for (struct known *k = buckets[h % BUCKETS]; k; k = k->next)
        if (k->name == h) flags = k->flags;
    pthread_mutex_unlock(&lock);
    return flags;
}

static int unseen(const unsigned char *code, size_t bytes) {
    static const uint16_t opcodes[] = {
#include "opcodes.h"
    };
    static uint8_t is[4096];
    if (!is[opcodes[0]])
        for (size_t k = 0; k < sizeof opcodes / sizeof *opcodes; k++) is[opcodes[k]] = 1;
    for (size_t k = 0; k + 16 <= bytes; k += 16)
        if (is[(code[k] | code[k + 1] << 8) & 0xfff]) return 1;
    return 0;
}

// each calls visit for every function of a cubin, with its name and code. A cubin that is not what it should be has no functions.
static void each(const unsigned char *cubin, size_t bytes, void (*visit)(const char *name, const unsigned char *code, size_t size, void *argument), void *argument) {
    const Elf64_Ehdr *h = (const void *)cubin;
    if (bytes < sizeof *h || memcmp(h->e_ident, ELFMAG, SELFMAG) || h->e_shentsize != sizeof(Elf64_Shdr)) return;
    if (h->e_shoff > bytes || (bytes - h->e_shoff) / sizeof(Elf64_Shdr) < h->e_shnum || h->e_shstrndx >= h->e_shnum) return;
    const Elf64_Shdr *sections = (const void *)(cubin + h->e_shoff);
    const Elf64_Shdr *names = &sections[h->e_shstrndx];
    if (names->sh_offset > bytes || names->sh_size > bytes - names->sh_offset || !names->sh_size) return;
    const char *text = (const char *)cubin + names->sh_offset;
    if (text[names->sh_size - 1]) return;
    for (unsigned k = 0; k < h->e_shnum; k++) {
        const Elf64_Shdr *s = &sections[k];
        if (s->sh_name >= names->sh_size || s->sh_type != SHT_PROGBITS || s->sh_offset > bytes || s->sh_size > bytes - s->sh_offset) continue;
        const char *name = text + s->sh_name;
        if (!strncmp(name, ".text.", 6)) visit(name + 6, cubin + s->sh_offset, s->sh_size, argument);
    }
}

static void look(const char *name, const unsigned char *code, size_t size, void *nccl) {
    remember(name, unseen(code, size) ? FUNCTION_OPAQUE : 0);
    if (!strncmp(name, "ncclDev", 7) || !strncmp(name, "_Z20ncclDev", 11) || strstr(name, "ncclDevKernel")) *(int *)nccl = 1;
}

int code_read(const void *cubin, size_t bytes) {
    int nccl = 0;
    pthread_mutex_lock(&lock);
    each(cubin, bytes, look, &nccl);
    pthread_mutex_unlock(&lock);
    return nccl;
}

static void mark(const char *name, const unsigned char *code, size_t size, void *nothing) {
    (void)code, (void)size, (void)nothing;
    remember(name, FUNCTION_UNPATCHED);
}

void code_unpatched(const void *cubin, size_t bytes) {
    pthread_mutex_lock(&lock);
    each(cubin, bytes, mark, NULL);
    pthread_mutex_unlock(&lock);
}
