// Where in the program a call comes from: the frames of Python, read raw, or the return addresses of machine code.
//
// Python: PyTorch has released the GIL when its operators call the driver. The frames of a thread change only while that thread runs Python, so
// the thread itself can read them without the GIL. Nothing here allocates in Python, changes a count of references or calls what might.
//
// Machine code: unwinding takes microseconds, so what it found is kept by stack pointer and call. A later call with the same stack pointer, for
// which every return address still stands where it stood, came the same way.
#define _GNU_SOURCE
#include "place.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "file.h"

#define FRAMES 24

// A set of ids that were written already. It only grows; when it is full, ids are written again, which costs space and is harmless.
#define KNOWN (1u << 18)
static _Atomic uint64_t known[KNOWN];

static int first_time(uint64_t id) {
    for (uint64_t k = id, tries = 0; tries < 64; k++, tries++) {
        _Atomic uint64_t *at = &known[k % KNOWN];
        uint64_t there = atomic_load_explicit(at, memory_order_relaxed);
        if (there == id) return 0;
        if (there == 0 && atomic_compare_exchange_strong(at, &there, id)) return 1;
        if (there == id) return 0;
    }
    return 1;
}

static uint64_t mix(uint64_t h, uint64_t word) {
    h ^= word + 0x9e3779b97f4a7c15ull + (h << 6) + (h >> 2);
    h *= 0xff51afd7ed558ccdull;
    return h ^ (h >> 32);
}

static uint64_t written(uint64_t *words, unsigned frames) {
    if (frames == 0) return 0;
    uint64_t id = 1;
    for (unsigned k = 0; k < 2 * frames; k++) id = mix(id, words[1 + k]);
    id |= 1;
    words[0] = id;
    if (first_time(id)) file_put(RECORD_PLACE, words, 1 + 2 * frames, NULL, 0);
    return id;
}

// Python.

struct layout { // offsets in bytes
    int version;
    int frame_of_thread, frame_of_c_frame; // the second is -1 if the first leads to the frame itself
    int code, previous, instruction, owner; // of a frame; owner is -1 if there is none
    int first_line, file, name, line_table, bytecode; // of a code object; bytecode is -1 if `instruction` is an index
    int shim; // the value of owner from which on a frame runs no code of its own
    const void *code_type; // what `code` leads to may be something else; NULL if it never is
};

static const struct layout layouts[] = {
    {3 * 256 + 10, 24, -1, 32, 24, 96, -1, 40, 104, 112, 120, -1, -1, NULL},
    {3 * 256 + 11, 56, 8, 32, 48, 56, -1, 72, 112, 120, 136, 184, -1, NULL},
    {3 * 256 + 12, 56, 0, 0, 8, 56, 70, 68, 112, 120, 136, 192, 3, NULL},
};

// told_layout reads the layout that Python 3.13 and later tell debuggers at the beginning of _PyRuntime: numbers of 8 bytes, of which the minor version says where each is.
static const struct layout *told_layout(int minor) {
    static struct layout told;
    const uint64_t *w = dlsym(RTLD_DEFAULT, "_PyRuntime");
    const void *code_type = dlsym(RTLD_DEFAULT, "PyCode_Type");
    if (!w || !code_type || memcmp(w, "xdebugpy", 8) || w[1] >> 16 != (3u << 8 | (unsigned)minor) || w[2] || minor > 14) return NULL; // w[2]: threads without a GIL have code of their own
    int thread = minor == 13 ? 19 : 22, frame = thread + 9, code = frame + (minor == 13 ? 6 : 8), object = code + (minor == 13 ? 10 : 11);
    if (w[object] != 16 || w[object + 1] != 8 || w[thread + 4] >= w[thread] || w[frame + 5] >= w[frame] || w[code + 9] > w[code]) return NULL; // not as expected
    told = (struct layout){3 * 256 + minor, (int)w[thread + 4], -1, (int)w[frame + 2], (int)w[frame + 1], (int)w[frame + 3], (int)w[frame + 5],
                           (int)w[code + 5], (int)w[code + 1], (int)w[code + 2], (int)w[code + 4], (int)w[code + 9], 3, code_type};
    return &told;
}

static const struct layout *python;
static void *(*thread_state)(void);
static long (*text_length)(void *);
static uint32_t (*text_character)(void *, long);
static char *(*bytes_of)(void *);
static long (*bytes_length)(void *);

static void find_python(void) {
    static atomic_int tries;
    if (python || atomic_load_explicit(&tries, memory_order_relaxed) > 1000) return;
    atomic_fetch_add(&tries, 1);
    const char *(*version)(void) = (const char *(*)(void))dlsym(RTLD_DEFAULT, "Py_GetVersion");
    if (!version) return;
    int major = 0, minor = 0;
    if (sscanf(version(), "%d.%d", &major, &minor) != 2) return;
    const struct layout *found = NULL;
    for (unsigned k = 0; k < sizeof layouts / sizeof *layouts; k++)
        if (layouts[k].version == major * 256 + minor) found = &layouts[k];
    if (major == 3 && minor >= 13) found = told_layout(minor);
    thread_state = (void *(*)(void))dlsym(RTLD_DEFAULT, "PyGILState_GetThisThreadState");
    text_length = (long (*)(void *))dlsym(RTLD_DEFAULT, "PyUnicode_GetLength");
    text_character = (uint32_t(*)(void *, long))dlsym(RTLD_DEFAULT, "PyUnicode_ReadChar");
    bytes_of = (char *(*)(void *))dlsym(RTLD_DEFAULT, "PyBytes_AsString");
    bytes_length = (long (*)(void *))dlsym(RTLD_DEFAULT, "PyBytes_Size");
    if (!found || !thread_state || !text_length || !text_character || !bytes_of || !bytes_length) {
        atomic_store(&tries, 1 << 20);
        file_note(NOTE_TEXT, 0, "Python %d.%d: its frames cannot be read, so calls have no place in Python", major, minor);
        return;
    }
    python = found;
}

static void *pointer_at(void *base, int offset) {
    void *p;
    memcpy(&p, (char *)base + offset, sizeof p);
    return p;
}

// put_text appends a Python string as UTF-8, and a zero.
static size_t put_text(char *to, size_t room, void *text) {
    size_t n = 0;
    long length = text ? text_length(text) : 0;
    for (long k = 0; k < length && n + 5 < room; k++) {
        uint32_t c = text_character(text, k);
        if (c < 0x80) to[n++] = (char)c;
        else if (c < 0x800) to[n++] = (char)(0xc0 | c >> 6), to[n++] = (char)(0x80 | (c & 63));
        else if (c < 0x10000) to[n++] = (char)(0xe0 | c >> 12), to[n++] = (char)(0x80 | (c >> 6 & 63)), to[n++] = (char)(0x80 | (c & 63));
        else to[n++] = (char)(0xf0 | c >> 18), to[n++] = (char)(0x80 | (c >> 12 & 63)), to[n++] = (char)(0x80 | (c >> 6 & 63)), to[n++] = (char)(0x80 | (c & 63));
    }
    to[n++] = 0;
    return n;
}

// code_id names a code object: by its address and by what it holds, since an address is used again.
static uint64_t code_id(const struct layout *l, void *code) {
    int line;
    memcpy(&line, (char *)code + l->first_line, sizeof line);
    uint64_t id = mix((uint64_t)code, (uint64_t)line);
    id = mix(id, (uint64_t)pointer_at(code, l->file));
    id = mix(id, (uint64_t)pointer_at(code, l->name));
    id = mix(id, (uint64_t)pointer_at(code, l->line_table)) & ((1ull << 56) - 1);
    if (!first_time(id | 1ull << 63)) return id;
    static __thread char buffer[24 << 10];
    size_t n = put_text(buffer, 4096, pointer_at(code, l->file));
    n += put_text(buffer + n, 4096, pointer_at(code, l->name));
    void *table = pointer_at(code, l->line_table);
    size_t lines = table ? (size_t)bytes_length(table) : 0;
    if (lines > sizeof buffer - n) lines = sizeof buffer - n;
    if (lines) memcpy(buffer + n, bytes_of(table), lines);
    uint64_t words[3] = {id, (uint64_t)line, (uint64_t)l->version};
    file_put(RECORD_CODE, words, 3, buffer, n + lines);
    return id;
}

static uint64_t python_place(void) {
    find_python();
    const struct layout *l = python;
    void *state = l ? thread_state() : NULL;
    if (!state) return 0;
    void *frame = pointer_at(state, l->frame_of_thread);
    if (frame && l->frame_of_c_frame >= 0) frame = pointer_at(frame, l->frame_of_c_frame);
    uint64_t words[1 + 2 * FRAMES];
    unsigned n = 0;
    for (int depth = 0; frame && n < FRAMES && depth < 4 * FRAMES; depth++, frame = pointer_at(frame, l->previous)) {
        if (l->owner >= 0 && ((char *)frame)[l->owner] >= l->shim) continue;
        void *code = pointer_at(frame, l->code);
        if (l->code_type) code = (void *)((uint64_t)code & ~7ull); // 3.14 keeps marks there
        if (!code || (l->code_type && pointer_at(code, 8) != l->code_type)) continue;
        uint64_t offset;
        if (l->bytecode >= 0) {
            offset = (uint64_t)((char *)pointer_at(frame, l->instruction) - ((char *)code + l->bytecode));
        } else {
            int index;
            memcpy(&index, (char *)frame + l->instruction, sizeof index);
            offset = index < 0 ? 0 : 2 * (uint64_t)index;
        }
        if (offset > 1u << 30) offset = 0; // the frame has not begun
        words[1 + 2 * n] = 1ull << 56 | code_id(l, code);
        words[2 + 2 * n] = offset;
        n++;
    }
    return written(words, n);
}

// Machine code.

#define IMAGES 4096
struct image {
    uint64_t low, high;
};
static struct image images[IMAGES];
static atomic_uint image_count;
static pthread_mutex_t adding = PTHREAD_MUTEX_INITIALIZER;

static int image_of(uint64_t address) {
    unsigned n = atomic_load_explicit(&image_count, memory_order_acquire);
    for (unsigned k = 0; k < n; k++)
        if (address >= images[k].low && address < images[k].high) return (int)k;
    return -1;
}

static int add_image(struct dl_phdr_info *info, size_t size, void *wanted) {
    (void)size;
    uint64_t low = UINT64_MAX, high = 0;
    const unsigned char *id = NULL;
    size_t id_bytes = 0;
    for (int k = 0; k < info->dlpi_phnum; k++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[k];
        uint64_t at = info->dlpi_addr + p->p_vaddr;
        if (p->p_type == PT_LOAD) {
            if (at < low) low = at;
            if (at + p->p_memsz > high) high = at + p->p_memsz;
        }
        if (p->p_type != PT_NOTE) continue;
        for (uint64_t n = at; n + 12 <= at + p->p_memsz;) {
            const uint32_t *note = (const uint32_t *)n;
            uint64_t name = (note[0] + 3u) & ~3u, body = (note[1] + 3u) & ~3u;
            if (note[2] == NT_GNU_BUILD_ID && note[0] == 4 && !memcmp(note + 3, "GNU", 4)) id = (const unsigned char *)(note + 3) + name, id_bytes = note[1];
            n += 12 + name + body;
        }
    }
    uint64_t address = *(uint64_t *)wanted;
    if (address < low || address >= high) return 0;
    unsigned index = atomic_load(&image_count);
    if (index == IMAGES) return 1;
    char tail[4200];
    const char *path = info->dlpi_name;
    char self[4096];
    if (!path || !*path) {
        ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
        self[n > 0 ? n : 0] = 0;
        path = self;
    }
    size_t n = (size_t)snprintf(tail, 4096, "%s", path) + 1;
    if (n > 4096) n = 4096;
    if (id_bytes > 64) id_bytes = 64;
    if (id) memcpy(tail + n, id, id_bytes);
    images[index] = (struct image){low, high};
    // the offset of a frame is the address within the image as it was linked
    uint64_t words[3] = {index, info->dlpi_addr, high - low};
    file_put(RECORD_IMAGE, words, 3, tail, n + (id ? id_bytes : 0));
    atomic_store_explicit(&image_count, index + 1, memory_order_release);
    return 1;
}

static int known_image(uint64_t address) {
    int at = image_of(address);
    if (at >= 0) return at;
    pthread_mutex_lock(&adding);
    at = image_of(address);
    if (at < 0 && dl_iterate_phdr(add_image, &address)) at = image_of(address);
    pthread_mutex_unlock(&adding);
    return at;
}

// What unwinding found: the frames' return addresses and where on the stack they stand.
struct walk {
    uint64_t stack, place;
    uint64_t frame; // the register of the frame before that leads to its return address, where the machine has one
    uint32_t api;
    unsigned frames;
    uint64_t slot[FRAMES], address[FRAMES];
};

struct context; // of the unwinder
static int (*unwind)(int (*)(struct context *, void *), void *);
static uint64_t (*unwound_address)(struct context *, int *exact); // exact: a signal came there; else a call returns there
static uint64_t (*unwound_stack)(struct context *);
static uint64_t (*unwound_register)(struct context *, int);
static uint64_t own_low, own_high; // this library, whose frames are left out

// slot_of returns where on the stack the return address to a frame stands, 0 if that is not known. The stack pointer of the frame is above it.
static uint64_t slot_of(struct context *c, struct walk *w, uint64_t address) {
    uint64_t above = unwound_stack(c);
#if defined(__x86_64__)
    (void)w;
    return above >= 8 && *(uint64_t *)(above - 8) == address ? above - 8 : 0; // just below
#elif defined(__aarch64__)
    // register 29 leads to a pair: that register of the caller, and the return address
    uint64_t pair = w->frame, before = unwound_register(c, 29);
    w->frame = before;
    if (pair % 8 || pair < (uint64_t)__builtin_frame_address(0) || pair + 16 > above) return 0; // the frame has none
    return ((uint64_t *)pair)[0] == before && ((uint64_t *)pair)[1] == address ? pair + 8 : 0;
#else
#error "where the return address stands is not known for this machine"
#endif
}

static int note_frame(struct context *c, void *argument) {
    struct walk *w = argument;
    int exact = 0;
    uint64_t address = unwound_address(c, &exact);
    uint64_t slot = slot_of(c, w, address);
    if (!address || w->frames == FRAMES) return 5; // _URC_END_OF_STACK
    if (address >= own_low && address < own_high) return 0;
    w->slot[w->frames] = slot;
    w->address[w->frames] = address + (exact != 0); // readers look before the address
    w->frames++;
    return 0;
}

#define WALKS 64
static uint64_t machine_place(uint32_t api) {
    static __thread struct walk walks[WALKS];
    static __thread unsigned oldest;
    if (!unwind) return 0;
    uint64_t stack = (uint64_t)__builtin_frame_address(0);
    uint64_t home = mix(stack, api) % WALKS;
    for (unsigned k = 0; k < 4; k++) {
        struct walk *w = &walks[(home + k) % WALKS];
        if (w->stack != stack || w->api != api) continue;
        unsigned same = 0;
        while (same < w->frames && *(uint64_t *)w->slot[same] == w->address[same]) same++;
        if (same == w->frames) return w->place;
    }
    struct walk *w = &walks[(home + oldest++ % 4) % WALKS];
    w->stack = 0;
    w->api = api;
    w->frames = 0;
    w->frame = 0;
    unwind(note_frame, w);
    uint64_t words[1 + 2 * FRAMES];
    unsigned n = 0;
    for (unsigned k = 0; k < w->frames; k++) {
        int at = known_image(w->address[k]);
        if (at < 0) continue;
        words[1 + 2 * n] = (uint64_t)at;
        words[2 + 2 * n] = w->address[k];
        n++;
    }
    w->place = written(words, n);
    int found = 1;
    for (unsigned k = 0; k < w->frames; k++) found &= w->slot[k] != 0;
    if (found) w->stack = stack;
    return w->place;
}

uint64_t place_of_call(uint32_t api) {
    uint64_t place = python_place();
    return place ? place : machine_place(api);
}

static int own_image(struct dl_phdr_info *info, size_t size, void *found) {
    (void)size;
    uint64_t here = (uint64_t)&place_of_call, low = UINT64_MAX, high = 0;
    for (int k = 0; k < info->dlpi_phnum; k++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[k];
        if (p->p_type != PT_LOAD) continue;
        uint64_t at = info->dlpi_addr + p->p_vaddr;
        if (at < low) low = at;
        if (at + p->p_memsz > high) high = at + p->p_memsz;
    }
    if (here < low || here >= high) return 0;
    own_low = low, own_high = high;
    (void)found;
    return 1;
}

// A forked child writes a file of its own, in which nothing is known yet.
static void forked(void) {
    for (unsigned k = 0; k < KNOWN; k++) atomic_store_explicit(&known[k], 0, memory_order_relaxed);
    atomic_store(&image_count, 0);
}

void place_start(void) {
    pthread_atfork(NULL, NULL, forked);
    dl_iterate_phdr(own_image, NULL);
    void *library = dlopen("libgcc_s.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        file_note(NOTE_TEXT, 0, "libgcc_s.so.1 is missing: calls of machine code have no place");
        return;
    }
    unwound_address = (uint64_t(*)(struct context *, int *))dlsym(library, "_Unwind_GetIPInfo");
    unwound_stack = (uint64_t(*)(struct context *))dlsym(library, "_Unwind_GetCFA");
    unwound_register = (uint64_t(*)(struct context *, int))dlsym(library, "_Unwind_GetGR");
    unwind = (int (*)(int (*)(struct context *, void *), void *))dlsym(library, "_Unwind_Backtrace");
}
